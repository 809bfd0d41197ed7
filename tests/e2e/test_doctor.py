#!/usr/bin/env python3
"""The doctor finds each fault that it claims to find, names it, says what to do, and finds none where all is well."""
import copy
import json
import os
import re
import signal
import time

from cluster import Cluster, await_condition, check, passed, run
from replier import Replier

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
seen = set()  # findings that a test has asked for

WORLD = {"origin_x": 0, "origin_y": 0, "cell_size": 50, "depth": 3, "resolution_bits": 17, "view_mode": "radius",
         "edge": "refuse", "radius_max": 1000, "hysteresis": 100, "z_range": 4294967295, "handoff_hysteresis": 100,
         "tick_hz": 20}
SERVER = {"role": "cellserver", "term": 1, "rev": 5, "tick": 100, "ticks_late": 0,
          "io": {"process_max_fds": 65536, "terrane_clock_seconds": None}}


def servers(count, **changes):
    """Repliers of servers that are well but for the changes of the first one, at the second look."""
    first, second = copy.deepcopy(SERVER), copy.deepcopy(SERVER)
    second["tick"] += 20
    for answer in (first, second):
        answer["io"]["terrane_clock_seconds"] = time.time()
    well = copy.deepcopy(second)
    for key, value in changes.items():
        where = second["io"] if key in second["io"] else second
        where[key] = value(where[key]) if callable(value) else value
    return [Replier(first, second)] + [Replier(well) for _ in range(count - 1)]


def listed(repliers, **changes):
    return [{"name": f"cell-{i + 1}", "host": f"host-{i}", "query": replier.url, "silent": False, "lapsed": False,
             "draining": False, **(changes if i == 0 else {})} for i, replier in enumerate(repliers)]


def coordinator(members, **changes):
    return {"role": "coordinator", "name": "coordinator", "term": 1, "rev": 5, "ready": True, "leads": True, "world": WORLD,
            "unowned": 0, "unprotected": 0, "store_failures": 0, "refused": {}, "servers": members,
            "regions": [{"quadkey": "", "server": "cell-1", "standby": "cell-2", "level": True, "owned": 3}], **changes}


def doctor(*urls):
    told = run("doctor", "--query", ",".join(urls), "--json", "--interval", "0.1", "--patience", "400")
    findings = json.loads(told.stdout)
    bad = {finding["name"]: finding for finding in findings["findings"] if finding["weight"] != "fine"}
    check(told.returncode == (0 if findings["well"] else 1), f"{told}")
    check(findings["well"] == all(finding["weight"] != "fault" for finding in bad.values()), told.stdout)
    check(all(finding["remedy"] for finding in bad.values()), f"no remedy: {told.stdout}")
    return bad


def expect(name, weight, says, bad):
    seen.add(name)
    check(list(bad) == [name], f"{name} is not what is found: {bad}")
    check(bad[name]["weight"] == weight and says in bad[name]["seen"], f"{bad}")


two = servers(2)
check(doctor(Replier(coordinator(listed(two))).url) == {}, "a cluster that is well")
text = run("doctor", "--query", Replier(coordinator(listed(servers(1)))).url, "--interval", "0.1").stdout
check("warning single_server" in text and "-> run two at least" in text, text)

expect("coordinator_silent", "fault", "tcp://127.0.0.1:1", doctor("tcp://127.0.0.1:1"))
expect("coordinator_silent", "warning", "tcp://127.0.0.1:1",
       doctor(Replier(coordinator(listed(servers(2)))).url, "tcp://127.0.0.1:1"))
both = [Replier(coordinator(listed(servers(2)))).url for _ in range(2)]
expect("two_lead", "warning", "2 coordinators", doctor(*both))


def of_coordinator(**changes):
    return doctor(Replier(coordinator(listed(servers(2)), **changes)).url)


expect("nobody_leads", "fault", "none of 1", of_coordinator(leads=False))
expect("not_ready", "fault", "failed 7 times", of_coordinator(ready=False, store_failures=7))
expect("versions_differ", "warning", "refused 4", of_coordinator(refused={"version_mismatch": 4}))
expect("worlds_differ", "warning", "refused 2", of_coordinator(refused={"world_mismatch": 2}))
expect("regions_unowned", "fault", "3 regions", of_coordinator(unowned=3))
expect("regions_unprotected", "warning", "2 regions", of_coordinator(unprotected=2))
expect("no_servers", "fault", "no cell server", doctor(Replier(coordinator([])).url))
expect("server_silent", "fault", "cell-1 is lapsed", doctor(Replier(coordinator(listed(servers(2), lapsed=True))).url))
expect("server_silent", "fault", "cell-1 is silent", doctor(Replier(coordinator(listed(servers(2), silent=True))).url))
expect("one_host", "warning", "host host-1",
       doctor(Replier(coordinator(listed(servers(2), host="host-1"))).url))
expect("query_unreachable", "fault", "tcp://127.0.0.1:1",
       doctor(Replier(coordinator(listed(servers(2), query="tcp://127.0.0.1:1"))).url))


def of_server(**changes):
    return doctor(Replier(coordinator(listed(servers(2, **changes)), rev=9 if "rev" in changes else 5)).url)


expect("ticks_late", "warning", "5 of the last 20", of_server(ticks_late=5))
expect("open_files", "warning", "cell-1 may open 1024", of_server(process_max_fds=1024))
expect("clock_differs", "warning", "ahead", of_server(terrane_clock_seconds=lambda now: now + 60))
expect("clock_differs", "warning", "behind", of_server(terrane_clock_seconds=lambda now: now - 60))
expect("map_stale", "warning", "holds revision 5", of_server(rev=5))
before, after = coordinator(listed(servers(2))), coordinator(listed(servers(3)))
expect("changing", "warning", "changed while we looked", doctor(Replier(before, before, after).url))
expect("single_server", "warning", "", doctor(Replier(coordinator(listed(servers(1)))).url))

with open(os.path.join(ROOT, "tools/doctor.c"), encoding="utf-8") as source:
    claims = set(re.findall(r'found\(f, (?!FINE)[^"]*?"([a-z_]+)"', source.read()))
check(len(claims) > 15 and claims <= seen, f"claimed and not tested: {claims - seen}")


def really_finds():
    """The same of real processes: Redis hangs, a server hangs, and all is found well again when they go on."""
    cluster = Cluster("--servers", "3", "--bots", "50", "--seed", "4", "--first-group", "4")
    urls = cluster.words("coordinator ")[3]
    cluster.await_moving()

    def finds(*names):
        def found():
            bad = doctor(urls)
            return bad if set(names) <= set(bad) else None
        return await_condition(f"{names} to be found", found, 30)

    def well():
        return set(doctor(urls)) <= {"one_host", "ticks_late"}  # one machine, and perhaps a busy one
    await_condition("a cluster that is well", well, 30)
    for pid, names in ((cluster.child_of_program("redis-server"), ["nobody_leads"]), (cluster.child("--name=cell-2"), ["server_silent"])):
        os.kill(pid, signal.SIGSTOP)
        bad = finds(*names)
        os.kill(pid, signal.SIGCONT)
        check(all(bad[name]["weight"] == "fault" for name in names), f"{bad}")
        await_condition(f"a cluster that is well after {names}", well, 40)
    cluster.stop()
    cluster.finish()


really_finds()
passed()
