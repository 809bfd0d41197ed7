#!/usr/bin/env python3
"""Each planted bug must be caught: says how many seeds that took.

Usage: plants.py TERRANE_SIM MOST [NAME...]. Runs `terrane_sim --plant NAME --stop` from seed 1 on, at the level of faults
that terrane_sim has for it; all plants without a NAME. A seed that fails without the plant too catches nothing. One
line a plant; exits 1 if MOST seeds do not catch one."""
import concurrent.futures
import json
import os
import subprocess
import sys


def listed(program):
    """Each plant and the level of faults at which it shows."""
    lines = subprocess.run([program, "--list-plants"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


def run(program, first, last, *flags):
    """The seed that failed first, or None, and what was said."""
    command = [program, "--seeds", f"{first}..{last}", "--stop", "--minimise", "0", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.strip().split("\n")
    try:
        summary = json.loads(lines[-1])
    except ValueError:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {lines[-1][:200]}")
    if summary["violations"] == 0:
        return None, ""
    return first + summary["seeds"] - 1, lines[0].split("   replay")[0]


def catch(program, most, name, level):
    """The seeds that it took and what was said; None: it was not caught."""
    seed = 0
    while seed < most:
        seed, said = run(program, seed + 1, most, "--plant", name)
        if seed is None:
            break
        flags = ["deaths", "--balance"] if level == "moves" else [level]
        if run(program, seed, seed, "--faults", *flags)[0] is None:
            return seed, said
    return None, f"nothing within {most} seeds"


def main():
    program, most, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    levels = listed(program)
    plants = wanted or list(levels)
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (seeds, said) in zip(plants, pool.map(lambda n: catch(program, most, n, levels[n]), plants)):
            missed += seeds is None
            print(f"{name:20} {'MISSED' if seeds is None else seeds:>6}  {said}", flush=True)
    print(f"{len(plants) - missed} of {len(plants)} plants caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
