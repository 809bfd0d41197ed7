#!/usr/bin/env python3
"""terrane agent runs a program again whenever it ends, as a new incarnation each time, waits longer for one that dies
young, passes on what stops it, takes nobody along that it should not, and does not repeat what makes no sense."""
import os
import signal
import subprocess
import tempfile

from cluster import TERRANE, alive, await_condition, check, passed


def agent(*arguments, **more):
    return subprocess.Popen([TERRANE, "agent", "--coordinator-query", "tcp://127.0.0.1:9", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def lines_of(path):
    with open(path, encoding="ascii") as file:
        return file.read().split()


with tempfile.TemporaryDirectory() as folder:
    # Each life says who it is, and dies.
    said = os.path.join(folder, "said")
    process = agent("--restart-ms", "20", "--", "sh", "-c", f"echo $TERRANE_NODE_ID >>{said}; exit 0")
    await_condition("four lives", lambda: os.path.exists(said) and len(lines_of(said)) >= 4)
    process.terminate()
    _, errors = process.communicate(timeout=30)
    lives = lines_of(said)
    check(len(set(lives)) == len(lives) and all(len(life) == 16 for life in lives), f"incarnations: {lives}")
    waits = [float(line.rsplit("starts again in ", 1)[1].split()[0]) for line in errors.splitlines() if "again in" in line]
    check(waits == sorted(waits) and len(waits) >= 3, f"it does not wait longer each time: {waits}")

    # What stops the agent reaches the program, whose end is waited for, and whose exit code is passed on.
    said = os.path.join(folder, "ready")
    process = agent("--", "sh", "-c", f"trap 'exit 7' TERM; echo $$ >{said}; while :; do sleep 0.05; done")
    await_condition("the program", lambda: os.path.exists(said) and lines_of(said))
    child = int(lines_of(said)[0])
    process.terminate()
    process.communicate(timeout=30)
    check(process.returncode == 7 and not alive(child), f"exit code {process.returncode}")

    # An agent that is killed takes its program along: nobody could vouch for its death any more.
    said = os.path.join(folder, "orphan")
    process = agent("--", "sh", "-c", f"echo $$ >{said}; exec sleep 1000")
    await_condition("the program", lambda: os.path.exists(said) and lines_of(said))
    child = int(lines_of(said)[0])
    os.kill(process.pid, signal.SIGKILL)
    await_condition("the program's end", lambda: not alive(child))
    process.communicate(timeout=30)

# A program that is not there, and one that refuses its command line.
process = agent("--", "/nowhere/at-all")
_, errors = process.communicate(timeout=30)
check(process.returncode == 127 and "/nowhere/at-all" in errors, f"{process.returncode}: {errors}")
process = agent("--", os.path.join(os.path.dirname(TERRANE), "terrane-cellserver"), "--nope")
_, errors = process.communicate(timeout=30)
check(process.returncode == 2 and "--nope" in errors, f"{process.returncode}: {errors}")
passed()
