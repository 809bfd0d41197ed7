#!/usr/bin/env python3
"""Many seeds on all cores: no violation, and enough crossings for that to mean something.

Usage: campaign.py TERRANE_SIM FIRST LAST CROSSINGS [FLAGS...]. Flags are terrane_sim's (--faults deaths). Prints each failing seed's line and one JSON summary;
exits 1 on a violation or on fewer than CROSSINGS border crossings in all."""
import concurrent.futures
import json
import os
import subprocess
import sys

CHUNK = 10


def run(program, first, last, flags):
    done = subprocess.run([program, "--seeds", f"{first}..{last}", *flags], stdout=subprocess.PIPE, text=True)
    lines = done.stdout.strip().split("\n")
    try:
        return lines[:-1], json.loads(lines[-1])
    except (ValueError, IndexError):
        return [f"seeds {first}..{last}: no summary, exit {done.returncode}: {' '.join(lines[-3:])}"], {"violations": 1}


def main():
    program, first, last, wanted, flags = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        chunks = [(at, min(at + CHUNK - 1, last)) for at in range(first, last + 1, CHUNK)]
        for failures, summary in pool.map(lambda c: run(program, c[0], c[1], flags), chunks):
            for line in failures:
                print(line, flush=True)
            for key, value in summary.items():
                if key not in ("trace", "wall_s"):
                    totals[key] = round(totals.get(key, 0) + value, 1)
            if sys.stderr.isatty():
                print(f"\r{totals['seeds']} seeds, {totals['crossings']} crossings", end="", file=sys.stderr)
    print(json.dumps(totals))
    if totals["seeds"] != last - first + 1 or totals["violations"] > 0:
        return 1
    if totals["crossings"] < wanted:
        print(f"only {totals['crossings']} crossings; {wanted} are wanted for this to be a proof of anything")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
