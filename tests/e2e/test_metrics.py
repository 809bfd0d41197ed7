#!/usr/bin/env python3
"""Every server serves /metrics, /healthz and /readyz: what they say is what Prometheus's own checker accepts, readiness
tells why not, numbers move with the work."""
import json
import os
import re
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from cluster import BUILD, await_condition, check, passed, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
processes = []
families = set()  # all names that any server told


class Served:
    """Whatever serves HTTP at .at["http"]."""

    def __init__(self, url):
        self.at = {"http": url}

    def get(self, path):
        try:
            with urllib.request.urlopen(self.at["http"] + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def series(self):
        values = {}
        for line in self.get("/metrics")[1].splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def ready(self):
        return self.get("/readyz")[0] == 200


class Server(Served):
    """One server program; its ready line is in .at."""

    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([os.path.join(BUILD, program), *arguments, "--log-level", "error"],
                                        stdout=subprocess.PIPE, text=True)
        processes.append(self.process)
        super().__init__(None)
        self.at = dict(word.split("=", 1) for word in self.process.stdout.readline().split()[1:])


def check_text(text):
    """promtool knows the conventions: units, suffixes, help texts."""
    lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
    check(lint.returncode == 0 and lint.stdout + lint.stderr == "", f"promtool: {lint.stdout}{lint.stderr}")
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    families.update(names)
    check(len(names) > 20 and len(set(names)) == len(names), f"a family is there twice, or few are: {names}")


def check_names(server):
    check_text(server.get("/metrics")[1])


def check_bots(coordinator):
    """A gateway process serves its numbers, too; what it counts is what the servers count."""
    bots = subprocess.Popen([os.path.join(BUILD, "terrane"), "bots", "--coordinator", coordinator.at["inbox"], "--query",
                             coordinator.at["query"], "--bots", "200", "--for", "3", "--calm-every", "2", "--json",
                             "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes.append(bots)
    url = next(line.split()[1] for line in bots.stderr if line.startswith("http "))
    served = Served(url)
    await_condition("readiness", served.ready, 20)
    check(served.get("/healthz") == (200, "alive\n"), "the bots are not alive")
    check_names(served)
    await_condition("moves", lambda: served.series()["terrane_gateway_moves_total"] > 1000, 20)
    series = served.series()
    check(series["terrane_gateway_sessions"] == series["terrane_gateway_sessions_ready"] == 2, f"{series}")
    check(series["terrane_gateway_entities"] == 200 and series["terrane_gateway_frames_total"] > 0, f"{series}")
    check(series['terrane_io_received_total{lane="inbox"}'] > 0 and series["terrane_ready"] == 1, f"{series}")
    output, errors = bots.communicate(timeout=60)
    check(bots.returncode == 0, errors)
    return json.loads(output.splitlines()[-1])


def check_library(coordinator):
    """What the library gives a game for its own /metrics."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "walkers.prom")
        told = subprocess.run([os.path.join(BUILD, "gateway_poll"), coordinator.at["inbox"], "10", "1", "1", path],
                              capture_output=True, text=True, timeout=60)
        check(told.returncode == 0, f"gateway_poll: {told}")
        with open(path, encoding="utf-8") as file:
            text = file.read()
    check_text(text)
    check("\nterrane_gateway_entities 10\n" in text, text)


def check_quota():
    """A server takes no more of a gateway than it is told to, says so, and counts what it has refused."""
    small = Server("terrane-coordinator", "--storeless", "--inbox", "tcp://127.0.0.1:0", "--http", "none")
    server = Server("terrane-cellserver", "--coordinator", small.at["inbox"], "--session-entities", "30")
    told = run("bots", "--coordinator", small.at["inbox"], "--query", small.at["query"], "--bots", "50", "--gateways", "1",
               "--for", "1")
    check(told.returncode == 1 and "a limit is reached" in told.stderr and "already" not in told.stderr, f"{told}")
    refused = server.series()['terrane_cellserver_refused_total{cause="entities"}']
    check(refused == 20, f"{refused} of 50 enters were refused where 30 are allowed")
    told = run("bots", "--coordinator", small.at["inbox"], "--query", small.at["query"], "--bots", "50", "--gateways", "2",
               "--for", "1", "--calm-every", "1")
    check(told.returncode == 0, f"two gateways share what one may not have: {told}")


def check_deployed():
    """The alerts do what their test says, and they and the dashboard ask for numbers that there are."""
    folder = os.path.join(ROOT, "deploy/prometheus")
    for command in [["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]]:
        told = subprocess.run(["promtool", *command], cwd=folder, capture_output=True, text=True, timeout=60)
        check(told.returncode == 0, f"promtool {command}: {told.stdout}{told.stderr}")
    with open(os.path.join(ROOT, "deploy/grafana/terrane.json"), encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    check(len(asked) > 20, f"the dashboard asks {len(asked)} questions")
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:  # promtool reads expressions in rules alone
        known = [expr.replace("$__rate_interval", "1m") for expr in asked]
        json.dump({"groups": [{"name": "dashboard", "rules": [{"record": f"asked:{i}", "expr": expr}
                                                              for i, expr in enumerate(known)]}]}, rules)
        rules.flush()
        told = subprocess.run(["promtool", "check", "rules", rules.name], capture_output=True, text=True, timeout=60)
        check(told.returncode == 0, f"the dashboard's expressions: {told.stdout}{told.stderr}")
    with open(os.path.join(folder, "alerts.yml"), encoding="utf-8") as file:
        asked.append("\n".join(line for line in file if "summary" not in line and "description" not in line))
    for name in re.findall(r"\b(?:terrane|process)_\w+", " ".join(asked)):
        family = re.sub("_(bucket|sum|count)$", "", name)
        check(family in families, f"{name} is asked for, and no server tells it")


try:
    coordinator = Server("terrane-coordinator", "--storeless", "--inbox", "tcp://127.0.0.1:0", "--expect-servers", "2",
                         "--http", "127.0.0.1:0")
    status, why = coordinator.get("/readyz")
    check(status == 503 and "--expect-servers" in why, f"a coordinator without servers says {status} {why}")
    told = run("ready", "--http", coordinator.at["http"].removeprefix("http://"))
    check(told.returncode == 1 and why in told.stdout, f"terrane ready: {told}")
    check(coordinator.get("/healthz") == (200, "alive\n"), "the coordinator is not alive")

    servers = [Server("terrane-cellserver", "--coordinator", coordinator.at["inbox"], "--name", f"cell-{i}")
               for i in (1, 2)]
    told = run("ready", "--http", coordinator.at["http"].removeprefix("http://"), "--wait", "20000")
    check(told.returncode == 0, f"terrane ready --wait: {told}")
    for server in [coordinator, *servers]:
        await_condition("readiness", server.ready, 20)
        check_names(server)
        # A server may be fenced for a moment on a busy machine: both say so then, and both that it is ready again.
        await_condition("readiness in the metrics", lambda: server.series()["terrane_ready"] == 1 and server.ready(), 20)
    leaves = sum(server.series()['terrane_cellserver_leaves{role="primary"}'] for server in servers)
    check(leaves == coordinator.series()['terrane_coordinator_leaves{state="all"}'], f"{leaves} leaves are owned")

    told = check_bots(coordinator)
    series = [server.series() for server in servers]
    enters = sum(values['terrane_cellserver_commands_total{kind="enter"}'] for values in series)
    check(enters >= 200, f"{enters} enters for 200 bots")
    out = sum(values['terrane_cellserver_handoffs_total{way="out"}'] for values in series)
    into = sum(values['terrane_cellserver_handoffs_total{way="in"}'] for values in series)
    check(out == into and out <= told["handoffs"], f"{out} hand-offs out, {into} in, the bots saw {told['handoffs']}")
    for values in series:
        ticks = values["terrane_ticks_total"]
        check(abs(values["terrane_tick_seconds_count"] - ticks) <= 1 and ticks > 20, f"{ticks} ticks")
        check(0 < values["process_cpu_seconds_total"] < 60, "CPU time")

    check_library(coordinator)
    check_deployed()
    check_quota()
    status, why = servers[0].get("/metricsx")
    check(status == 404, f"an unknown path says {status}")
    os.kill(coordinator.process.pid, signal.SIGKILL)
    lone = Server("terrane-cellserver", "--coordinator", coordinator.at["inbox"], "--http", "127.0.0.1:0")
    status, why = lone.get("/readyz")
    check(status == 503 and "coordinator" in why, f"a server without a coordinator says {status} {why}")
    check(lone.series()["terrane_ready"] == 0, "not ready, and ready in the metrics")
    silent = Server("terrane-cellserver", "--coordinator", coordinator.at["inbox"], "--http", "none")
    check("http" not in silent.at, f"--http none, and it serves at {silent.at}")
finally:
    for process in processes:
        process.kill()
        process.wait()
passed()
