#!/usr/bin/env python3
"""A server that dies makes the run fail and is named; a launcher that is killed leaves no orphans."""
import os
import signal

from cluster import Cluster, alive, await_condition, check, passed

cluster = Cluster("--servers", "3", "--bots", "100", "--patience", "1000")
cluster.await_moving()
children = cluster.children()
os.kill(cluster.child("--name=cell-2"), signal.SIGKILL)
code, line = cluster.finish()
check(code == 1, f"exit code {code} with a dead server")
check("cell-2 died: signal 9" in cluster.errors(), cluster.errors())
check(not any(alive(pid) for pid in children), "a child is left")

cluster = Cluster("--servers", "2", "--bots", "100")
cluster.await_moving()
children = cluster.children()
check(len(children) == 5, f"{len(children)} children")
cluster.stop(signal.SIGKILL)
await_condition("the orphans' end", lambda: not any(alive(pid) for pid in children), 10)
passed()
