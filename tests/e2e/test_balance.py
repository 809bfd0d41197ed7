#!/usr/bin/env python3
"""A fifth server joins a loaded cluster and has its share within ten seconds; nobody is lost and no observer sees
anything blink. A region that is moved and pinned by hand stays where it is, and all of it is explained."""
import atexit
import json
import os
import subprocess

from cluster import BUILD, Cluster, await_condition, check, check_result, passed, run

JOIN_S = 10
cluster = Cluster("--servers", "4", "--bots", "1500", "--calm-every", "6", "--seed", "31")
words = cluster.words("coordinator ")
coordinator, queries = words[1], words[3]
cluster.await_moving()


def ask(*arguments):
    told = run(*arguments, "--query", queries)
    check(told.returncode == 0, f"{arguments}: {told.stderr}{told.stdout}")
    return told.stdout


def servers():
    document = json.loads(ask("status", "--json", "--interval", "0.05"))["coordinator"]
    return {server["name"]: server for server in document["servers"]}


def evenly():
    """The most loaded server bears at most a quarter more than its share, and nothing is on its way."""
    plan = json.loads(ask("plan", "--json"))
    return plan["known"] and plan["worst"] <= 1.25 and plan["migrating"] == 0


await_condition("an even cluster", evenly, 30)
fifth = subprocess.Popen([os.path.join(BUILD, "terrane-cellserver"), f"--coordinator={coordinator}", "--name=cell-5"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
atexit.register(fifth.kill)
await_condition("the fifth server", lambda: "cell-5" in servers(), 10)


def has_share():
    owned = {name: server["owned"] for name, server in servers().items()}
    return owned["cell-5"] >= 0.7 * sum(owned.values()) / len(owned)


await_condition("the fifth server's share", has_share, JOIN_S)
events = [json.loads(line) for line in ask("events", "--json").splitlines()]
moves = [event for event in events if event["event"] == "move" and event["to"] == "cell-5"]
check(moves, "no move to the fifth server is explained")
check(all(event["from_part"] > 0 and event["reason"] for event in moves), f"moves without figures: {moves}")

ask("pin", "000")
ask("move", "000", "cell-2", "--wait")
regions = json.loads(ask("status", "--json", "--interval", "0.05"))["coordinator"]["regions"]
region = next(region for region in regions if region["quadkey"] == "000")
check(region["server"] == "cell-2" and region["pinned"], f"after move and pin: {region}")
refused = run("move", "000", "cell-99", "--query", queries)
check(refused.returncode == 1 and "cell-99" in refused.stderr, f"move to nobody: {refused}")

cluster.stop()
code, line = cluster.finish()
result = check_result(code, line, cluster.errors())
check(result["blinks"] == 0, f"{result['blinks']} blinks")
check(result["failovers"] >= len(moves), f"{result['failovers']} promotions for {len(moves)} moves")
passed()
