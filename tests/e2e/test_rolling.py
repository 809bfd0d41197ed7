#!/usr/bin/env python3
"""Every process of a cluster is restarted in turn under load, cell servers after a drain: nobody is lost, no observer
sees anything blink, and no region is ever without a server."""
import json
import os
import signal

from cluster import Cluster, await_condition, check, check_result, passed, run

SERVERS = 3
cluster = Cluster("--servers", str(SERVERS), "--bots", "800", "--calm-every", "4", "--seed", "21", "--deaths")
queries = cluster.words("coordinator ")[3]
cluster.await_moving()


def protected(after):
    told = run("status", "--query", queries, "--interval", "0.05", "--wait-protected", "40000")
    check(told.returncode == 0, f"not protected after {after}: {told.stderr}{told.stdout}")


def restart(name):
    """SIGTERM; the agent starts it again."""
    before = cluster.child(f"--name={name}")
    os.kill(before, signal.SIGTERM)
    await_condition(f"{name}'s return", lambda: cluster.find(f"--name={name}") not in (0, before), 30)


def listed(name):
    servers = json.loads(run("status", "--query", queries, "--json", "--interval", "0.05").stdout)["coordinator"]["servers"]
    return next(server for server in servers if server["name"] == name)


protected("the start")
for number in range(1, SERVERS + 1):
    name = f"cell-{number}"
    drained = run("drain", "--query", queries, "--wait", "--json", name)
    check(drained.returncode == 0, f"drain of {name}: {drained.stderr}")
    check(json.loads(drained.stdout)["drained"], drained.stdout)
    check(f"{name}: " in drained.stderr, f"no progress: {drained.stderr}")
    check(listed(name)["leaves"] == 0, f"{name} has regions after its drain")
    restart(name)
    protected(f"the restart of {name}")
    check(not listed(name)["draining"], f"{name} is still draining after its restart")
restart("coordinator")
protected("the restart of the coordinator")

unknown = run("drain", "--query", queries, "cell-99")
check(unknown.returncode == 1 and "cell-99" in unknown.stderr, f"drain of nobody: {unknown}")

cluster.stop()
code, line = cluster.finish()
result = check_result(code, line, cluster.errors())
check(result["blinks"] == 0, f"{result['blinks']} blinks")
check(result["deaths"] == SERVERS + 1, f"{result['deaths']} ends, not {SERVERS + 1}")
check(result["moves"] > 20000, f"only {result['moves']} moves")
passed()
