#!/usr/bin/env python3
"""top and map in a terminal of their own: what they show, keys, another size, a clean end; and map's picture."""
import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

try:
    import pyte
except ImportError:  # Debian's python3-pyte belongs to Debian's Python
    if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])
    print("python3-pyte is missing: scripts/install --test installs it", file=sys.stderr)
    sys.exit(77)
from cluster import Cluster, TERRANE, check, check_result, passed, run


class Terminal:
    """A command in a pseudo-terminal; .text is all that it has written."""

    def __init__(self, rows, columns, *arguments, **environment):
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end within a character
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment})
            os.execv(TERRANE, [TERRANE, *arguments])

    def read(self, seconds=0.1):
        """False: it has ended."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += self.decoder.decode(data)
        self.stream.feed(data)
        return bool(data)

    def expect(self, what, seconds=30):
        """The screen comes to show that pattern."""
        until = time.monotonic() + seconds
        while not re.search(what, "\n".join(self.screen.display)) and time.monotonic() < until and self.read():
            continue
        shown = "\n".join(self.screen.display)
        check(re.search(what, shown), f"{what} does not appear:\n{shown}")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def finish(self):
        """The exit code; what is still written is read."""
        while self.read(1):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


cluster = Cluster("--servers", "2", "--bots", "100", "--seed", "4")
inbox = cluster.words("coordinator ")[1]
cluster.await_moving()
check(run("status", "--coordinator", inbox, "--wait-protected", "40000").returncode == 0, "unprotected")
AT = ["--coordinator", inbox]

top = Terminal(30, 130, "top", "--interval", "0.3", *AT)
top.expect(r"server\*")
top.expect("cell-1")
top.expect("cell-2")
top.expect("2 servers  64 regions  100 entities")
top.type(">")
top.expect(r"leaves\*")
top.type("<")
top.expect(r"server\*")
top.type("p")
top.expect("PAUSED")
top.type("p")
top.resize(12, 120)
top.expect("q quit")
top.type("q")
check(top.finish() == 0, "top does not end well at q")
check("\x1b[?1049l" in top.text, f"the screen is not given back: {top.text!r}")
gone = Terminal(24, 100, "top", "--interval", "0.2", *AT)
gone.expect("cell-1")
os.kill(gone.pid, signal.SIGTERM)
check(gone.finish() == 0 and "\x1b[?1049l" in gone.text, "SIGTERM leaves the terminal in disorder")
piped = run("top", *AT)
check(piped.returncode == 2 and "no terminal" in piped.stderr, f"{piped}")
lines = [json.loads(line) for line in run("top", "--json", "--count", "3", "--interval", "0.4", *AT).stdout.splitlines()]
check(len(lines) == 3 and all(line["reached"] and len(line["servers"]) == 2 for line in lines), f"{lines}")
check(sum(server["moves_per_s"] for server in lines[2]["servers"]) > 0, f"nothing moves: {lines[2]}")
check(sum(server["owned"] for server in lines[2]["servers"]) == 100, f"{lines[2]}")

coloured = Terminal(30, 100, "map", *AT)
check(coloured.finish() == 0, coloured.text)
check(coloured.text.count("▀") == 50 * 25 and "\x1b[38;2;" in coloured.text, f"{coloured.text.count('▀')} blocks")
plain = Terminal(30, 100, "map", *AT, NO_COLOR="1")
check(plain.finish() == 0 and "\x1b[" not in plain.text, f"{plain.text!r}")
text = run("map", "--width", "16", *AT).stdout
for _ in range(20):  # the same map before and after: leaves are moved between servers meanwhile
    before, drawn = text, run("map", "--json", *AT).stdout
    text = run("map", "--width", "16", *AT).stdout
    if text.splitlines()[:8] == before.splitlines()[:8]:
        break
rows = text.splitlines()[:8]
check(all(re.fullmatch("[AB]{16}", row) for row in rows), text)
check("A" in "".join(rows) and "B" in "".join(rows) and "64 regions" in text and "A cell-1" in text, text)
regions = json.loads(drawn)["regions"]
check(len(regions) == 64 and sum(region["owned"] for region in regions) > 0, f"{len(regions)} regions")
south_west = next(region for region in regions if region["quadkey"] == "000")
check((south_west["x"], south_west["y"], south_west["side"]) == (0, 0, 200), f"{south_west}")
check({"A": "cell-1", "B": "cell-2"}[rows[7][0]] == south_west["server"], f"{south_west} {text}")
with tempfile.TemporaryDirectory() as folder:
    picture = os.path.join(folder, "world.png")
    drawn = run("map", "--png", picture, "--size", "256", *AT)
    with open(picture, "rb") as file:
        head = file.read(24)
    check(drawn.returncode == 0 and head[:8] == b"\x89PNG\r\n\x1a\n", f"{drawn}")
    check(struct.unpack(">II", head[16:24]) == (256, 256), f"{head}")
bad = run("map", "--png", "/nowhere/world.png", *AT)
check(bad.returncode == 2 and "/nowhere/world.png" in bad.stderr, f"{bad}")

cluster.stop()
code, line = cluster.finish()
check_result(code, line, cluster.errors())
passed()
