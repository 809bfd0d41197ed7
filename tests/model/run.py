#!/usr/bin/env python3
"""Checks the model of hand-off and fail-over (handoff.pml) with spin, all states; and that each rule of the protocol is
needed: with any one left out (BREAK) spin must find a state that should not be.

Usage: run.py [--long] [--json]. --long also lets one server of each leaf fail (some ten million states).
Exit codes: 0 holds; 1 does not; 3 spin or a compiler is missing."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "handoff.pml")
INSTANCES = {
    "four servers": [],
    "one standby for both leaves": ["SAME=1"],
    "one primary for both leaves": ["LOCAL=1"],
    "two servers": ["LOCAL=1", "SAME=1"],
}
LONG_INSTANCES = {"four servers, one of each leaf fails": ["FAULTS=2"]}
RULES = {
    1: "OFFERs of a deposed source are dropped",
    2: "what is owned already is not taken over again",
    3: "the destination's standby has it before it is taken over",
    4: "the standby is told that the entity is leaving",
    5: "the source asks again when the destination's leaf has another primary",
    6: "the OFFER waits until the source's standby knows",
    7: "a state is acknowledged when the standby has it",
    8: "a server that is cut off stops before another is promoted",
    9: "an OFFER under a later since waits for the map",
    10: "what is pending can't be refused",
}


def check(folder, defines):
    """Whether no state violates the assertions, and how many states there are."""
    flags = [f"-D{define}" for define in defines]
    subprocess.run(["spin", "-a", *flags, MODEL], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # Optimising spin's checker takes longer than running it, but for the largest instance.
    level = "-O1" if "FAULTS=2" in defines else "-O0"
    compiler = ["gcc", level, "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-DMEMLIM=6000", "-o", "pan", "pan.c"]
    subprocess.run(compiler, cwd=folder, check=True)
    text = subprocess.run(["./pan", "-m400000"], cwd=folder, stdout=subprocess.PIPE, text=True).stdout
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d+) states, stored", text)
    if errors is None or states is None or "max search depth too small" in text or "out of memory" in text:
        sys.exit(f"run.py: spin did not finish:\n{text}")
    return int(errors.group(1)) == 0, int(states.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            print(f"run.py: {program} is missing: scripts/install --test", file=sys.stderr)
            return 3
    total, bad = 0, []
    say = (lambda line: None) if arguments.json else print
    with tempfile.TemporaryDirectory() as folder:
        for name, defines in {**INSTANCES, **(LONG_INSTANCES if arguments.long else {})}.items():
            well, states = check(folder, defines)
            total += states
            say(f"{'holds ' if well else 'FAILS '} {states:>9} states  {name}")
            if not well:
                bad.append(name)
        for number, rule in RULES.items():
            well, _ = check(folder, [f"BREAK={number}"])
            say(f"{'FAILS: not missed' if well else 'needed'}  {rule}")
            if well:
                bad.append(f"without: {rule}")
    print(json.dumps({"states": total, "rules": len(RULES), "failed": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
