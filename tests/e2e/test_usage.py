#!/usr/bin/env python3
"""Every command explains itself, and what is wrong on a command line is named, with exit code 2."""
import os
import tempfile

from cluster import check, passed, run

for command in ["up", "bots", "status", "watch", "drain", "ready", "agent"]:
    told = run(command, "--help")
    check(told.returncode == 0 and f"terrane {command}" in told.stdout, f"{command} --help")
    check(command in run("--help").stdout, f"{command} is not in --help")

with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "bad.txt"), "w", encoding="ascii") as crowd:
        crowd.write("0 1 0 0\n10 1 here 0\n")
    BAD = [
        (["up", "--servers", "0"], "--servers"),
        (["up", "--servers=many"], "many"),
        (["up", "--nope"], "--nope"),
        (["up", "--for"], "--for"),
        (["up", "--split-depth", "4", "--depth", "2"], "--split-depth 4"),
        (["up", "--workload", "swim"], "swim"),
        (["bots", "--bots", "-3"], "-3"),
        (["bots", "--speed", "nan"], "nan"),
        (["bots", "--coordinator", "udp://x"], "udp://x"),
        (["bots", "--crowds", "/nowhere"], "/nowhere"),
        (["bots", "--crowds", folder], "bad.txt:2: x is \"here\""),
        (["status", "--query", "here"], "here"),
        (["status", "more"], "more"),
        (["drain"], "one server's name"),
        (["drain", "a", "b"], "one server's name"),
        (["agent"], "program to run is missing"),
        (["agent", "--coordinator-query", "here", "--", "true"], "here"),
        (["status", "--coordinator", "tcp://127.0.0.1:7070,here"], "here"),
        (["up", "--lease-ms", "9"], "--lease-ms"),
        (["watch", "r/9"], "r/9"),
        (["watch", "x"], "x"),
        (["watch", "r/0", "r/1"], "r/1"),
        (["watch", "r/0", "--for", "soon"], "soon"),
        (["watch", "r/0", "--for"], "--for"),
        (["ready", "--wait", "long"], "long"),
        (["find"], "one entity's id"),
        (["find", "-7"], "-7"),
        (["trace", "0"], "\"0\" is no entity's id"),
        (["swim"], "swim"),
        ([], "Usage"),
    ]
    for arguments, names in BAD:
        told = run(*arguments)
        check(told.returncode == 2, f"{arguments}: exit code {told.returncode}, not 2")
        check(names in told.stderr, f"{arguments}: {names} is not named in: {told.stderr}")

told = run("status", "--coordinator", "tcp://127.0.0.1:1", "--patience", "100")
check(told.returncode == 3 and "tcp://127.0.0.1:2" in told.stderr, f"no coordinator: {told}")
told = run("status", "--coordinator", "tcp://127.0.0.1:1", "--patience", "100", "--wait-protected", "100")
check(told.returncode == 1 and "no coordinator leads" in told.stderr, f"nothing to protect: {told}")
told = run("drain", "--coordinator", "tcp://127.0.0.1:1", "--patience", "100", "cell-1")
check(told.returncode == 3 and "tcp://127.0.0.1:1" in told.stderr, f"no coordinator to drain: {told}")
told = run("drain", "cell-1", "--coordinator", "tcp://127.0.0.1:1", "--patience", "100")
check(told.returncode == 3 and "tcp://127.0.0.1:1" in told.stderr, f"flags behind the operand: {told}")
told = run("ready", "--http", "127.0.0.1:1")
check(told.returncode == 1 and "127.0.0.1:1 does not say" in told.stdout, f"nobody to be ready: {told}")
passed()
