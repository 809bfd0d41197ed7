#!/usr/bin/env python3
"""Cell servers, coordinators, Redis and gateways are killed, stopped, paused and (as root) cut off one after the other
while bots move, one of each kind at least; nothing is lost, doubled or seen wrongly. (tests/chaos/chaos.py does it.)"""
import json
import os
import shutil
import subprocess
import sys

from cluster import BUILD, check, passed

CHAOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chaos", "chaos.py")

network = ["--net"] if os.geteuid() == 0 and all(shutil.which(name) for name in ["nft", "unshare", "setpriv"]) else []
told = subprocess.run([sys.executable, "-B", CHAOS, BUILD, "--seconds", "40", "--bots", "1500", "--seed", "5", "--pace", "1",
                       "--calm-every", "6", "--least", "12", *network], stdout=subprocess.PIPE, text=True, timeout=390,
                      check=False)
lines = told.stdout.strip().splitlines()
check(told.returncode == 0 and lines, f"exit code {told.returncode}: {told.stdout}")
result = json.loads(lines[-1])
check(result["deaths"] >= 3, f"only {result['deaths']} deaths")
check(result["failovers"] >= 1, "no region was taken over by a standby")
check(result["calms"] >= 3, f"only {result['calms']} calms")
print(told.stdout.strip())
passed()
