#!/usr/bin/env python3
"""One entity can be found, and its way traced: who had it when, why it changed hands, also after its server was killed."""
import json
import os
import re
import signal

from cluster import Cluster, await_condition, check, check_result, passed, run

cluster = Cluster("--servers", "3", "--bots", "300", "--seed", "5", "--band", "20", "--speed", "2")
inbox = cluster.words("coordinator ")[1]
cluster.await_moving()


def find(entity):
    return json.loads(run("find", str(entity), "--coordinator", inbox, "--json").stdout)


def trace(entity):
    return json.loads(run("trace", str(entity), "--coordinator", inbox, "--json").stdout)


def handed_over():
    """A bot that has crossed between servers, and its way: frames name those that enter a region."""
    frames = run("watch", "r/", "--coordinator", inbox, "--count", "300", "--for", "5").stdout
    for entity in map(int, re.findall(r"#\d+=(\d+) at", frames)):
        way = trace(entity)
        if "passed_on" in [step["cause"] for step in way["steps"]]:
            return entity, way
    return None


entity, way = await_condition("a hand-off between servers", handed_over)
causes = [step["cause"] for step in way["steps"]]
check(causes[0] == "entered", f"the way begins with {causes}")
versions = [step["version"] for step in way["steps"]]
check(versions == sorted(versions), f"versions {versions}")
for before, after in zip(way["steps"], way["steps"][1:]):
    if before["cause"] == "passed_on" and after["cause"] == "arrived":
        check(before["node_name"] == after["server"] and before["version"] == after["version"], f"{before} {after}")
        check(before["to"] == after["to"], f"{before} {after}")
text = run("trace", str(entity), "--coordinator", inbox)
check("entered by" in text.stdout and "passed on from r/" in text.stdout and "owns it" in text.stdout, text.stdout)
check("remember the last" in text.stderr, text.stderr)

place = find(entity)
check(place["found"] and place["server"].startswith("cell-"), f"{place}")
check(all(abs(place[axis]) <= 12800 for axis in "xy"), f"{place}")
text = run("find", str(entity), "--coordinator", inbox)
check(text.returncode == 0 and "on cell-" in text.stdout and "in r/" in text.stdout, f"{text}")
missing = run("find", "999999999", "--coordinator", inbox)
check(missing.returncode == 1 and "no server owns 999999999" in missing.stderr, f"{missing}")
missing = run("trace", "999999999", "--coordinator", inbox)
check(missing.returncode == 1 and "nobody remembers 999999999" in missing.stderr, f"{missing}")

check(run("status", "--coordinator", inbox, "--wait-protected", "40000").returncode == 0, "unprotected")
place = await_condition("an owner", lambda: (lambda p: p if p["found"] else None)(find(entity)))
os.kill(cluster.child("--name=" + place["server"]), signal.SIGKILL)
way = await_condition("a promotion on its way", lambda: (lambda w: w if any(
    step["cause"] == "promoted" for step in w["steps"]) else None)(trace(entity)))
promoted = [step for step in way["steps"] if step["cause"] == "promoted"][-1]
check(promoted["server"] != place["server"], f"{promoted}: by the server that died")

cluster.stop()
code, line = cluster.finish()
check_result(code, line, cluster.errors())
passed()
