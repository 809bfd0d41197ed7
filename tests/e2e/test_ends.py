#!/usr/bin/env python3
"""A launcher that is killed leaves no orphans."""
import signal

from cluster import Cluster, alive, await_condition, check, passed

cluster = Cluster("--servers", "2", "--bots", "100")
cluster.await_moving()
children = cluster.children()
check(len(children) == 5, f"{len(children)} children")
cluster.stop(signal.SIGKILL)
await_condition("the orphans' end", lambda: not any(alive(pid) for pid in children), 10)
passed()
