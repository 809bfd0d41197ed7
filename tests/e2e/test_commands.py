#!/usr/bin/env python3
"""Every command says with --json what a script can read, commands that ask a cluster have the same flags, and bash completes
them all from the programs' own tables."""
import json
import os
import pty
import re
import subprocess

from cluster import BUILD, TERRANE, Cluster, await_condition, check, check_result, passed, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = [name for name in run("--flags").stdout.split() if not name.startswith("-")]
# Not about a cluster: an agent says nothing on standard output, that is its program's.
OTHERS = {"up", "bots", "ready", "agent"}


def flags_of(*command):
    told = run(*command, "--flags").stdout.splitlines()
    return {words[0]: words[1:] for words in map(str.split, told)}


def check_flags():
    """What --flags lists is what --help explains, and the commands that ask a cluster agree about theirs."""
    for command in COMMANDS:
        listed = set(flags_of(command))
        explained = {name.replace("[no-]", "") for name in re.findall(r"^  (--\S+)", run(command, "--help").stdout, re.M)}
        check(listed == explained, f"{command}: --flags and --help differ: {listed ^ explained}")
        check("--json" in listed or command == "agent", f"{command} has no --json")
        if command not in OTHERS:
            check({"--coordinator", "--query", "--patience"} <= listed, f"{command} has {listed}")


def check_json():
    cluster = Cluster("--servers", "3", "--bots", "100", "--seed", "3", "--first-group", "4")
    inbox, console = cluster.words("coordinator ")[1], cluster.words("console ")[1]
    cluster.await_moving()

    def say(command, *arguments, well=(0,)):
        target = [] if command in OTHERS else ["--coordinator", inbox]
        told = run(command, *arguments, *target, "--json")
        check(told.returncode in well, f"{command}: {told}")
        lines = [json.loads(line) for line in told.stdout.splitlines()]
        check(lines != [], f"{command} --json says nothing: {told.stderr}")
        said.add(command)
        return lines[-1]

    said = {"up", "agent"}
    status = say("status", "--interval", "0.1", "--wait-protected", "30000")
    key = status["coordinator"]["regions"][0]["quadkey"]
    names = [server["name"] for server in status["coordinator"]["servers"]]
    check(len(names) == 3, f"{names}")
    check(len(say("top", "--count", "1", "--interval", "0.2")) > 0, "top")
    # A machine of its own for each server is what doctor wants to see.
    check(isinstance(say("doctor", "--interval", "0.2", well=(0, 1))["findings"], list), "doctor")
    check(len(say("map")["regions"]) > 1, "map")
    bots = run("watch", "r/", "--coordinator", inbox, "--count", "300", "--for", "5").stdout
    entity = re.search(r"#\d+=(\d+) at", bots)
    entity = entity.group(1) if entity else "7"
    check("found" in say("find", entity, well=(0, 1)) and "steps" in say("trace", entity, well=(0, 1)), "find, trace")
    check(say("watch", "r/", "--count", "1", "--for", "5")["topic"].startswith("r/"), "watch")
    check(isinstance(say("events"), dict) and isinstance(say("plan"), dict), "events, plan")
    check(isinstance(say("pin", key), dict) and isinstance(say("pin", key, "--off"), dict), "pin")
    owner = next(r["server"] for r in say("status", "--interval", "0.1")["coordinator"]["regions"] if r["quadkey"] == key)
    check(isinstance(say("move", key, next(name for name in names if name != owner), "--wait"), dict), "move")
    check(isinstance(say("drain", names[-1], "--wait"), dict), "drain")
    at = console.removeprefix("http://").rstrip("/")
    check(say("ready", "--http", at) == {"http": at, "ready": True, "why": ""}, "ready")
    check(say("ready", "--http", "127.0.0.1:1", well=(1,))["ready"] is False, "ready of nobody")
    check(say("bots", "--coordinator", inbox, "--bots", "10", "--seed", "77", "--for", "1", "--calm-every", "1")["entities"] == 10,
          "bots")
    check(said == set(COMMANDS), f"not asked for JSON: {set(COMMANDS) - said}")
    cluster.stop()
    check_result(*cluster.finish(), cluster.errors())


class Bash:
    """An interactive bash with the completion, in a terminal of its own."""

    def __init__(self):
        pid, self.terminal = pty.fork()
        if pid == 0:
            path = os.path.abspath(BUILD) + ":" + os.environ["PATH"]
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "-i"], {**os.environ, "PATH": path, "TERM": "dumb", "PS1": "> "})
        os.set_blocking(self.terminal, False)
        self.said = ""
        self.type(f"bind 'set enable-bracketed-paste off'; . {ROOT}/deploy/completion/terrane.bash; echo sour''ced\n")
        await_condition("bash", lambda: "sourced" in self.read())

    def read(self):
        try:
            self.said += os.read(self.terminal, 65536).decode(errors="replace")
        except BlockingIOError:
            pass
        return self.said

    def type(self, text):
        os.write(self.terminal, text.encode())

    def completes(self, typed, wanted):
        """The line that the keys make, TAB being a key; then it is thrown away."""
        self.said = ""
        self.type(typed)
        await_condition(f"{typed!r} to become {wanted!r}", lambda: wanted in re.sub(r"[\a\r]", "", self.read()), 10)
        self.type("\x15\n")

    def close(self):
        self.type("\x15exit\n")
        os.close(self.terminal)


def check_completion():
    bash = Bash()
    bash.completes("terrane sta\t", "terrane status ")
    bash.completes("terrane doc\t--pat\t", "terrane doctor --patience ")
    bash.completes("terrane bots --workload hot\t", "terrane bots --workload hotspot ")
    bash.completes("terrane bots --workload=hot\t", "terrane bots --workload=hotspot ")
    bash.completes("terrane drain --no-w\t", "terrane drain --no-wait ")
    bash.completes("terrane-cellserver --session-e\t", "terrane-cellserver --session-entities ")
    bash.completes(f"terrane map --png {ROOT}/READ\t", "README.md ")
    bash.completes("terrane-coordinator --\t\t", "--leader-lease-ms")
    bash.close()
    with open(os.path.join(BUILD, "tools/cmake_install.cmake"), encoding="utf-8") as script:
        installed = script.read()
    for program in ("terrane", "terrane-coordinator", "terrane-cellserver"):
        check("bash-completion/completions" in installed and f'RENAME "{program}"' in installed, f"no completion of {program}")
    told = subprocess.run([TERRANE, "nothing", "--flags"], capture_output=True, text=True, timeout=10)
    check(told.returncode == 2, "a command that there is not")


check_flags()
check_completion()
check_json()
passed()
