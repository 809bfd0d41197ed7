#!/usr/bin/env python3
"""The same in block mode, with leaves of which three servers have unequal shares, teleports among the bots."""
from cluster import Cluster, check, check_result, passed

cluster = Cluster("--servers", "3", "--bots", "600", "--for", "6", "--calm-every", "3", "--view-mode", "block",
                  "--split-depth", "2", "--workload", "teleport")
code, line = cluster.finish()
result = check_result(code, line, cluster.errors())
check(result["handoffs"] > 100, f"only {result['handoffs']} hand-offs")
passed()
