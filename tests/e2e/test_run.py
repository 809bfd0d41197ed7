#!/usr/bin/env python3
"""A cluster of four servers carries a thousand bots over its borders, and nothing of what is checked is wrong."""
from cluster import Cluster, check, check_result, passed

cluster = Cluster("--servers", "4", "--bots", "1000", "--for", "8", "--calm-every", "3", "--seed", "7")
code, line = cluster.finish()
result = check_result(code, line, cluster.errors())
check(result["entities"] == 1000, "entities")
check(result["moves"] > 20000, f"only {result['moves']} moves")
check(result["handoffs"] > 20, f"only {result['handoffs']} hand-offs")
check(result["ticks"] > 200, f"only {result['ticks']} ticks")
check(0 < result["bytes_per_move"] < 20, f"{result['bytes_per_move']} bytes a move")
check(result["calms"] >= 2 and result["views_checked"] >= 2000, "too few views were checked")
passed()
