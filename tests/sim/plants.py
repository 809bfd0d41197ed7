#!/usr/bin/env python3
"""Each planted bug must be caught: says how many seeds that took.

Usage: plants.py TERRANE_SIM MOST [NAME...]. Runs `terrane_sim --plant NAME --stop` from seed 1 on, at the level of faults
that terrane_sim has for it; all plants without a NAME. One line a plant; exits 1 if MOST seeds do not catch one."""
import concurrent.futures
import json
import os
import subprocess
import sys


def names(program):
    listed = subprocess.run([program, "--list-plants"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


def catch(program, most, name):
    """The seeds that it took and what was said; None: it was not caught."""
    command = [program, "--plant", name, "--seeds", f"1..{most}", "--stop", "--minimise", "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.strip().split("\n")
    try:
        summary = json.loads(lines[-1])
    except ValueError:
        return None, f"exit {done.returncode}: {lines[-1][:200]}"
    if summary["violations"] == 0:
        return None, f"nothing within {summary['seeds']} seeds"
    return summary["seeds"], lines[0].split("   replay")[0]


def main():
    program, most, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    plants = wanted or names(program)
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (seeds, said) in zip(plants, pool.map(lambda n: catch(program, most, n), plants)):
            missed += seeds is None
            print(f"{name:20} {'MISSED' if seeds is None else seeds:>6}  {said}", flush=True)
    print(f"{len(plants) - missed} of {len(plants)} plants caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
