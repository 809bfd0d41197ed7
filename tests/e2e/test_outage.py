#!/usr/bin/env python3
"""The coordinator and Redis are both away for a while (8 s; TERRANE_OUTAGE_S says otherwise): servers tick as before,
entities change hands, nothing goes wrong; both come back by themselves."""
import json
import os
import re
import signal
import tempfile
import time

from cluster import Cluster, await_condition, check, check_result, passed, run

SECONDS = float(os.environ.get("TERRANE_OUTAGE_S", "8"))


def counters(queries):
    status = json.loads(run("status", "--query", queries, "--json", "--interval", "0.05").stdout)
    return time.monotonic(), {server["name"]: server["status"] for server in status["servers"]}


def handoffs_said(text):
    return sum(int(count) for count in re.findall(r"(\d+) hand-offs/s", text))


with tempfile.TemporaryDirectory() as run_dir:
    cluster = Cluster("--servers", "4", "--bots", "1000", "--calm-every", "1000000", "--seed", "31", "--deaths",
                      "--run-dir", run_dir)
    queries = cluster.words("coordinator ")[3]
    cluster.await_moving()
    check(run("status", "--query", queries, "--interval", "0.05", "--wait-protected", "40000").returncode == 0, "not protected")
    before_s, before = counters(queries)

    said = len(cluster.errors())
    for name in ["coordinator", "redis"]:
        with open(os.path.join(run_dir, f"hold-{name}"), "w", encoding="ascii"):
            pass
    os.kill(cluster.child("--name=coordinator"), signal.SIGKILL)
    os.kill(cluster.child_of_program("redis-server"), signal.SIGKILL)
    time.sleep(SECONDS)  # the outage is the thing tested
    check(cluster.find("--name=coordinator") == 0, "the coordinator is there")
    during = cluster.errors()[said:]
    check(handoffs_said(during) > SECONDS / 2, f"only {handoffs_said(during)} hand-offs during the outage")
    for name in ["redis", "coordinator"]:
        os.remove(os.path.join(run_dir, f"hold-{name}"))
    await_condition("the coordinator's return", lambda: cluster.find("--name=coordinator") != 0, 30)
    told = run("status", "--query", queries, "--interval", "0.05", "--wait-protected", "40000")
    check(told.returncode == 0, f"not protected after the outage: {told.stderr}{told.stdout}")
    after_s, after = counters(queries)

    check(sorted(before) == sorted(after), f"servers: {sorted(before)} before, {sorted(after)} after")
    for name, status in after.items():
        check(status["node"] == before[name]["node"], f"{name} is another incarnation")
        # What the coordinator's absence could cost is whole seconds; what a busy machine costs is not judged here.
        ticks, due = status["tick"] - before[name]["tick"], (after_s - before_s) * 20
        print(f"{name}: {ticks} ticks of {due:.0f}")
        check(ticks > due * 0.5, f"{name} had {ticks} ticks of {due:.0f}")
        check(status.get("fenced", 0) == before[name].get("fenced", 0), f"{name} stopped serving")
    cluster.stop()
    code, line = cluster.finish()
    result = check_result(code, line, cluster.errors())
    check(result["deaths"] == 2, f"{result['deaths']} deaths")
    check(result["blinks"] == 0, f"{result['blinks']} blinks")
passed()
