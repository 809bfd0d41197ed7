#!/usr/bin/env python3
"""A running cluster can be looked at: status, watch, nngcat on a feed, redis-cli on the map; an interrupt ends it all."""
import json
import subprocess

from cluster import Cluster, alive, await_condition, check, check_result, passed, run

cluster = Cluster("--servers", "4", "--bots", "400", "--seed", "3")
words = cluster.words("coordinator ")
inbox, queries = words[1], words[3]
redis_port = cluster.words("redis ")[1].split(":")[1]
feed = cluster.words("a feed ")[2]
cluster.await_moving()

status = run("status", "--coordinator", inbox, "--wait-protected", "40000")
check(status.returncode == 0, status.stderr)
check("4 servers, 2 gateways, 64 regions (0 without a server, 0 unprotected), 400 entities" in status.stdout, status.stdout)
status = json.loads(run("status", "--query", queries, "--json", "--interval", "0.5").stdout)
check(len(status["servers"]) == 4 and all(server["answered"] for server in status["servers"]), "a server is silent")
check(sum(server["status"]["owned"] for server in status["servers"]) == 400, "owned entities do not add up")
check(all(server["ticks_per_s"] > 1 for server in status["servers"]), "a server does not tick")
check(run("status", "--coordinator", inbox, "--regions").stdout.count("\nr/") == 64, "regions are missing")

watch = run("watch", "--coordinator", inbox, "--count", "40", "--for", "30", "r/0")
check(watch.returncode == 0 and len(watch.stdout.splitlines()) == 40, watch.stderr)
check(all(line.startswith("r/0") for line in watch.stdout.splitlines()), "a frame of another subtree")
check("moved" in watch.stdout, "nobody moves")
ghosts = run("watch", "--coordinator", inbox, "--json", "--count", "5", "--for", "30", "g/")
check(all(json.loads(line)["topic"].startswith("g/") for line in ghosts.stdout.splitlines()), ghosts.stdout)
check(len(ghosts.stdout.splitlines()) == 5, "no ghost frames: " + ghosts.stderr)

nngcat = subprocess.run(["nngcat", "--sub0", "--dial", feed, "--subscribe", "r/", "--hex", "--count", "3",
                         "--recv-timeout", "10"], capture_output=True, text=True, timeout=60)
check(nngcat.returncode == 0 and nngcat.stdout.count("\\x72\\x2f") + nngcat.stdout.count("r/") >= 1,
      f"nngcat: {nngcat.returncode} {nngcat.stdout[:200]} {nngcat.stderr}")

leaves = subprocess.run(["redis-cli", "-p", redis_port, "hgetall", "terrane:{terrane}:map"], capture_output=True,
                        text=True, timeout=30).stdout.splitlines()
check(len(leaves) == 128 and "epoch" in leaves[1], f"the map in Redis: {leaves[:4]}")

children = cluster.children()
check(len(children) == 7, f"{len(children)} children")
cluster.stop()
code, line = cluster.finish()
check_result(code, line, cluster.errors())
await_condition("the children's end", lambda: not any(alive(pid) for pid in children))
passed()
