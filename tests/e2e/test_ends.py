#!/usr/bin/env python3
"""Who dies is named, counted and started again as a new incarnation; a launcher that is killed leaves no orphans."""
import json
import os
import signal
import tempfile

from cluster import Cluster, alive, await_condition, check, check_result, passed, run

with tempfile.TemporaryDirectory() as run_dir:
    def child(name):
        with open(os.path.join(run_dir, "children.json"), encoding="utf-8") as file:
            return next(child for child in json.load(file) if child["name"] == name)

    cluster = Cluster("--servers", "3", "--bots", "100", "--deaths", "--run-dir", run_dir)
    queries = cluster.words("coordinator ")[3]
    cluster.await_moving()
    for name in ["cell-2", "redis", "coordinator"]:
        told = run("status", "--query", queries, "--interval", "0.05", "--wait-protected", "40000")
        check(told.returncode == 0, f"not protected before {name}'s death: {told.stderr}{told.stdout}")
        before = child(name)
        os.kill(before["pid"], signal.SIGKILL)
        await_condition(f"{name}'s return", lambda: child(name)["starts"] == 2 and child(name)["pid"] != 0)
        check(f"{name} died: signal 9" in cluster.errors(), cluster.errors())
        check(alive(child(name)["pid"]) and not alive(before["pid"]), f"{name} does not run")
        check(child(name)["node"] != before["node"] or not name.startswith("cell"), f"{name} has its old id")
    told = run("status", "--query", queries, "--interval", "0.05", "--wait-protected", "40000")
    check(told.returncode == 0, f"not protected in the end: {told.stderr}{told.stdout}")
    children = cluster.children()
    cluster.stop()
    code, line = cluster.finish()
    result = check_result(code, line, cluster.errors())
    check(result["deaths"] == 3, f"{result['deaths']} deaths")
    check(not any(alive(pid) for pid in children), "a child is left")

cluster = Cluster("--servers", "2", "--bots", "100")
cluster.await_moving()
children = cluster.children()
check(len(children) == 5, f"{len(children)} children")
cluster.stop(signal.SIGKILL)
await_condition("the orphans' end", lambda: not any(alive(pid) for pid in children), 10)
passed()
