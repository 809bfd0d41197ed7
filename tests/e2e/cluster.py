"""What the end-to-end tests share: a cluster run by `terrane up`, waiting for conditions, checks that say what failed."""
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1]
TERRANE = os.path.join(BUILD, "terrane")
# Delays that a loaded machine with sanitizers may add; what must hold is the same.
PATIENT = ["--window", "4000", "--patience", "30000"]
RIGHT = ["lost", "doubled", "views_wrong", "events_wrong", "gaps_unrepaired", "misplaced", "states_wrong", "queries_wrong"]
FIELDS = ["entities", "moves", "handoffs", "lost", "doubled", "views_wrong", "events_wrong", "gaps", "gaps_unrepaired",
          "ticks", "ticks_late", "bytes_per_move"]

checks = 0


def check(holds, text):
    global checks
    checks += 1
    if not holds:
        print(f"FAILED: {text}", file=sys.stderr)
        sys.exit(1)


def passed():
    check(checks > 0, "the test checked nothing")
    print(f"{checks} checks hold")


def run(*arguments, timeout=120):
    return subprocess.run([TERRANE, *arguments], capture_output=True, text=True, timeout=timeout)


def await_condition(what, condition, seconds=60):
    """The condition's first true value; fails when it has not come in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    check(False, f"{what} did not come within {seconds} s")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Cluster:
    """`terrane up` in the background; what it says is in .errors()."""

    def __init__(self, *arguments):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen([TERRANE, "up", "--json", *PATIENT, *arguments], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        atexit.register(self.end)

    def end(self):
        """A test that fails leaves nothing running."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def errors(self):
        with open(self.log.name, encoding="utf-8") as log:
            return log.read()

    def words(self, first):
        """The words of the line that begins so, once it is there."""
        def line():
            check(self.process.poll() is None or first in self.errors(), "up has ended: " + self.errors())
            return next((text.split() for text in self.errors().splitlines() if text.startswith(first)), None)
        return await_condition(f"the line \"{first}\"", line)

    def await_moving(self):
        await_condition("moving bots", lambda: " moves/s" in self.errors())

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [int(pid) for pid in children.read().split()]

    def line(self, argument):
        """The command line of the child that has that word on it."""
        with open(f"/proc/{self.child(argument)}/cmdline", encoding="utf-8") as line:
            return line.read().split("\0")

    def find(self, argument):
        """The child with that word on its command line; 0: none."""
        for pid in self.children():
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:
                    if argument in line.read().split("\0"):
                        return pid
            except FileNotFoundError:
                continue
        return 0

    def child(self, argument):
        pid = self.find(argument)
        check(pid != 0, f"no child with {argument}")
        return pid

    def child_of_program(self, program):
        """Redis names itself anew: its command line is one word."""
        for pid in self.children():
            with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                if name.read().strip() == program:
                    return pid
        check(False, f"no child that runs {program}")
        return 0

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)

    def finish(self, seconds=120):
        """Exit code and last line of standard output."""
        output, _ = self.process.communicate(timeout=seconds)
        lines = output.strip().splitlines()
        return self.process.returncode, lines[-1] if lines else ""


def check_result(code, line, errors):
    check(code == 0, f"exit code {code}: {line}\n{errors}")
    result = json.loads(line)
    for field in FIELDS:
        check(field in result, f"{field} is missing in {line}")
    for field in RIGHT:
        check(result[field] == 0, f"{field} is {result[field]}\n{errors}")
    return result
