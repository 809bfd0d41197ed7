#!/usr/bin/env python3
"""A cluster whose servers run another index than the grid shows the right views; an index that is none is refused."""
import os
import subprocess

from cluster import BUILD, Cluster, check, check_result, passed

server = os.path.join(BUILD, "terrane-cellserver")
for wrong in ["octopus", "grid3d"]:
    told = subprocess.run([server, "--aoi", wrong], capture_output=True, text=True, timeout=20)
    check(told.returncode == 2 and wrong in told.stderr and "quadtree" in told.stderr, f"--aoi {wrong}: {told.stderr}")

os.environ["TERRANE_AOI"] = "quadtree"
cluster = Cluster("--servers", "2", "--bots", "300", "--for", "5", "--calm-every", "3")
cluster.await_moving()
children = [open(f"/proc/{pid}/environ", encoding="utf-8").read() for pid in cluster.children()]
code, line = cluster.finish()
check(any("TERRANE_AOI=quadtree" in words for words in children), "the servers were not told of the index")
check_result(code, line, cluster.errors())
passed()
