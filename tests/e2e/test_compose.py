#!/usr/bin/env python3
"""deploy/docker-compose.yml from nothing: images, a cluster, 5,000 bots; then everything is killed, crashed, stopped, cut
off and scaled in turn (TERRANE_COMPOSE_ACTS: how often, 24 if not given; TERRANE_COMPOSE_SEED). No entity is lost or
doubled, no view wrong in any calm, and nothing is left behind.

Where no Docker engine answers it says so and is skipped (exit code 77)."""
import collections
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

from cluster import BUILD, RIGHT, await_condition, check, passed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ACTS = int(os.environ.get("TERRANE_COMPOSE_ACTS", "24"))
SEED = int(os.environ.get("TERRANE_COMPOSE_SEED", "1"))
BOTS = 5000
STILL_S = 0.8
PROJECT = f"terrane-test-{os.getpid()}"
QUERIES = "tcp://coordinator-1:7071,tcp://coordinator-2:7071"
COORDINATORS = ["coordinator-1", "coordinator-2"]
ROUND = ["kill cellserver", "crash cellserver", "kill coordinator", "kill redis", "kill cellserver", "crash coordinator",
         "crash cellserver"]
KINDS = [*ROUND, "cut cellserver", *ROUND, "stop cellserver"]
done = collections.Counter()  # (how, what)


def output(*command, timeout=600, **options):
    told = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)
    check(told.returncode == 0, f"{' '.join(command)}: {told.returncode}\n{told.stdout[-3000:]}{told.stderr[-3000:]}")
    return told.stdout


def works(*command):
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except FileNotFoundError:
        return False


def say(text):
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


def compose(*arguments):
    return output(*COMPOSE, "-p", PROJECT, "-f", os.path.join(ROOT, "deploy/docker-compose.yml"), *arguments,
                  env={**os.environ, "TERRANE_CONSOLE_PORT": str(PORTS[0]), "TERRANE_CONSOLE_PORT_2": str(PORTS[1])})


def containers(service):
    """Names of a service's containers, running or not."""
    names = output("docker", "ps", "-a", "--filter", f"label=com.docker.compose.project={PROJECT}", "--filter",
                   f"label=com.docker.compose.service={service}", "--filter",
                   "label=com.docker.compose.oneoff=False", "--format", "{{.Names}}").split()
    return sorted(names)


def state(name, what):
    return output("docker", "inspect", "--format", "{{" + what + "}}", name).strip()


def terrane(*arguments, timeout=90):
    """A command of terrane inside the cluster's network, by whichever coordinator's container runs."""
    for service in COORDINATORS:
        name = containers(service)[0]
        if state(name, ".State.Running") == "true":
            return subprocess.run(["docker", "exec", name, "terrane", *arguments], capture_output=True, text=True,
                                  timeout=timeout, check=False)
    check(False, "no coordinator runs")
    return None


def servers():
    """The cell servers as the leader knows them; none if nobody leads."""
    told = terrane("status", "--query", QUERIES, "--json", "--interval", "0.05")
    return json.loads(told.stdout)["coordinator"]["servers"] if told.returncode == 0 else []


def revision():
    told = terrane("status", "--query", QUERIES, "--json", "--interval", "0.05")
    known = json.loads(told.stdout)["coordinator"] if told.returncode == 0 else {}
    return (known["term"], known["rev"]) if known.get("unprotected") == 0 else None


def await_settled(why):
    """Every region has a level standby, and the map stands still: while a region moves, its only copy may be under way."""
    def settled():
        if terrane("status", "--query", QUERIES, "--wait-protected", "2000", "--interval", "0.05").returncode != 0:
            return False
        before = revision()
        time.sleep(STILL_S)
        return before is not None and before == revision()
    await_condition(f"a settled cluster after {why}", settled, 60)


def await_healthy(services):
    for service in services:
        for name in containers(service):
            await_condition(f"{name} healthy", lambda: state(name, ".State.Health.Status") == "healthy", 60)


# What happens to the cluster.

def kill_container(name):
    output("docker", "kill", name)
    output("docker", "start", name)


def crash_process(name):
    """The program alone, seen from the host: Docker's restart policy or the agent has to bring it back."""
    ids = [int(row.split()[0]) for row in output("docker", "top", name, "-eo", "pid,args").splitlines()[1:]
           if "terrane-" in row and "agent" not in row]
    check(len(ids) == 1, f"{name} runs {ids}")
    os.kill(ids[0], signal.SIGKILL)


def stop_container(name):
    output("docker", "stop", "--time", "15", name)
    check(state(name, ".State.ExitCode") == "0", f"{name} ended with {state(name, '.State.ExitCode')}")
    output("docker", "start", name)


def cut_container(name):
    network = f"{PROJECT}_default"
    output("docker", "network", "disconnect", network, name)
    time.sleep(1.5)  # the outage is the thing tested
    output("docker", "network", "connect", network, name)


def incarnation(name):
    """The node id of the server that a container is, as the leader knows it; None: it knows none that is heard."""
    host = state(name, ".Config.Hostname")
    known = [server for server in servers() if server["name"] == host]
    return known[0]["node"] if len(known) == 1 and not known[0]["silent"] and not known[0]["lapsed"] else None


def act(number, dice):
    how, what = KINDS[number % len(KINDS)].split()
    service = dice.choice(COORDINATORS) if what == "coordinator" else what
    name = dice.choice(containers(service))
    before = incarnation(name) if what == "cellserver" else None
    say(f"{number + 1}: {how} {name}")
    {"kill": kill_container, "crash": crash_process, "stop": stop_container, "cut": cut_container}[how](name)
    await_condition(f"{name} runs again", lambda: state(name, ".State.Running") == "true", 30)
    if what == "cellserver":
        # Only then is this death over: one at a time is what is promised.
        await_condition(f"{name} back among the servers",
                        lambda: incarnation(name) not in ([None] if how == "cut" else [None, before]), 40)
    await_settled(f"{how} {name}")
    done[how, what] += 1


def check_confined():
    """Nobody is root, no root file system can be written, no capability is left, only the consoles' ports are open."""
    published = dict(zip(COORDINATORS, PORTS))
    for service in ["redis", *COORDINATORS, "cellserver"]:
        name = containers(service)[0]
        check(output("docker", "exec", name, "id", "-u").strip() != "0", f"{name} runs as root")
        check(not works("docker", "exec", name, "touch", "/written"), f"{name}'s root can be written")
        rights = output("docker", "exec", name, "grep", "CapEff", "/proc/1/status").split()[1]
        check(int(rights, 16) == 0, f"{name} has capabilities {rights}")
        open_ports = output("docker", "port", name).strip()
        wanted = f"7080/tcp -> 127.0.0.1:{published[service]}" if service in published else ""
        check(open_ports == wanted, f"{name} has ports {open_ports!r}")


def run_bots():
    return compose("run", "-d", "bots", "bots", "--json", "--bots", str(BOTS), "--deaths", "--for", "0",
                   "--calm-every", "6", "--window", "8000", "--patience", "30000", "--seed", str(SEED)).split()[-1]


def bots_said(bots):
    told = subprocess.run(["docker", "logs", bots], capture_output=True, text=True, timeout=60, check=False)
    return told.stdout, told.stderr


def cluster_survives():
    dice = random.Random(SEED)
    compose("up", "-d")
    await_healthy(["redis", *COORDINATORS, "cellserver"])
    await_settled("the start")
    say("the cluster is ready")
    check_confined()
    bots = run_bots()
    await_condition("moving bots", lambda: " moves/s" in bots_said(bots)[1], 60)
    say(f"{BOTS} bots move")
    for number in range(ACTS):
        act(number, dice)

    compose("up", "-d", "--no-recreate", "--scale", "cellserver=6")
    await_condition("six servers", lambda: len([one for one in servers() if not one["silent"]]) == 6, 60)
    await_settled("scaling up")
    say("6 cell servers")
    compose("up", "-d", "--no-recreate", "--scale", "cellserver=4")
    await_settled("scaling down")
    check(len(containers("cellserver")) == 4, f"{containers('cellserver')} after scaling down")
    say("4 cell servers")

    output("docker", "kill", "--signal", "INT", bots)
    await_condition("the bots' end", lambda: state(bots, ".State.Running") == "false", 90)
    said, errors = bots_said(bots)
    result = json.loads(said.strip().splitlines()[-1])
    say(json.dumps(result))
    # A view may blink where a container is killed on a busy machine; nothing else may be wrong, and no view at a calm.
    result["events_wrong"] -= result["blinks"]
    for field in RIGHT:
        check(result[field] == 0, f"{field} is {result[field]}\n{errors[-4000:]}")
    code = state(bots, ".State.ExitCode")
    check(code == ("0" if result["blinks"] == 0 else "1"), f"the bots ended with {code}")
    check(result["entities"] == BOTS, f"{result['entities']} entities")
    check(result["calms"] >= ACTS / 8, f"only {result['calms']} calms")
    kills = sum(times for (how, _), times in done.items() if how in ("kill", "crash"))
    ends = done["kill", "cellserver"] + done["crash", "cellserver"]
    say(f"{kills} kills, {ends} of them of cell servers, {done['cut', 'cellserver']} cuts, {done['stop', 'cellserver']} stops")
    check(kills >= min(20, ACTS * 5 // 6), f"only {kills} kills: {done}")
    check(all(done[how, what] > 0 for how, what in {tuple(kind.split()) for kind in KINDS[:ACTS]}), f"not all was done: {done}")
    check(result["failovers"] >= ends, f"{ends} ends, {result['failovers']} regions changed hands")


def take_down(failed):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if failed:
        folder = os.path.join(BUILD, "compose-logs")
        os.makedirs(folder, exist_ok=True)
        for service in ["redis", *COORDINATORS, "cellserver"]:
            for name in containers(service):
                with open(os.path.join(folder, f"{name.removeprefix(PROJECT)[1:]}.log"), "w", encoding="utf-8") as log:
                    log.write("".join(bots_said(name)))
        print(f"the containers' logs are in {folder}", file=sys.stderr)
    compose("down", "-v", "--remove-orphans", "--timeout", "5")
    left = output("docker", "ps", "-aq", "--filter", f"label=com.docker.compose.project={PROJECT}")
    left += output("docker", "volume", "ls", "-q", "--filter", f"label=com.docker.compose.project={PROJECT}")
    check(left == "", f"left behind: {left}")


def ended(number, frame):
    sys.exit(f"signal {number}")  # the cluster is taken down


BEGAN = time.monotonic()
signal.signal(signal.SIGTERM, ended)
COMPOSE = ["docker", "compose"] if works("docker", "compose", "version") else ["docker-compose"]
if not works("docker", "version") or not works(*COMPOSE, "version"):
    print("SKIPPED: no Docker engine with compose answers here; the deployment in containers is not tested")
    sys.exit(77)
with socket.socket() as first, socket.socket() as second:
    first.bind(("127.0.0.1", 0))
    second.bind(("127.0.0.1", 0))
    PORTS = [first.getsockname()[1], second.getsockname()[1]]
output(os.path.join(ROOT, "deploy/base-images"))
say("base images are there")
compose("build", "--quiet", "coordinator-1")
say("the image is built")
try:
    cluster_survives()
except BaseException:
    take_down(True)
    raise
take_down(False)
passed()
