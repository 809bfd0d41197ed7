#!/usr/bin/env python3
"""What looking costs: CPU of coordinator and cell servers with the console open and every process's /metrics read each
second, against nobody looking. Both in one run, in turns, so that drift of the load hits both alike.

Usage: console.py BUILD [--bots N] [--servers N] [--turns N] [--seconds S]
Prints one JSON line a figure; exit 1 if looking costs more than 2 % of what the cluster needs."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

MOST_PERCENT = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pids):
    """By the scheduler's own count, in ns; /proc/PID/stat counts in hundredths."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except FileNotFoundError:
                continue
    return total / 1e9


class Look(threading.Thread):
    """Asks as the page does when it shows the whole world, and scrapes, until told to stop."""
    PERIODS = [("api/live?event=0&crossing=0&most=20", 0.25), ("api/map", 1.0), ("api/servers", 1.0),
               ("api/survey?columns=128&rows=128&most=1500", 0.5)]

    def __init__(self, console, metrics):
        super().__init__()
        self.stopped = threading.Event()
        self.work = [(console + path, period) for path, period in self.PERIODS] + [(url + "metrics", 1.0) for url in metrics]
        self.answers = 0

    def run(self):
        due = [time.monotonic()] * len(self.work)
        while not self.stopped.wait(0.01):
            for i, (url, period) in enumerate(self.work):
                if time.monotonic() < due[i]:
                    continue
                due[i] += period
                with urllib.request.urlopen(url, timeout=10) as answer:
                    answer.read()
                self.answers += 1


def await_line(log, pattern, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(log, encoding="utf-8") as file:
            found = re.search(pattern, file.read())
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"no line like {pattern} within {seconds} s: see {log}")


def metrics_urls(run_dir):
    """Where each process says that its metrics are: `ready ... http=URL` is on its standard output, which is the agent's;
    so the sockets that it listens on are asked."""
    urls = []
    with open(os.path.join(run_dir, "children.json"), encoding="utf-8") as file:
        children = [child for child in json.load(file) if child["name"].startswith(("cell-", "coordinator"))]
    for child in children:
        listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines()
        for line in (text for text in listening if f"pid={child['pid']}," in text):
            url = f"http://{line.split()[3]}/"
            try:
                with urllib.request.urlopen(url + "healthz", timeout=1) as answer:
                    if answer.status == 200:
                        urls.append(url)
            except OSError:
                continue
            except Exception:  # noqa: BLE001  # a socket of nng's answers in its own way
                continue
    return [child["pid"] for child in children], urls


def figure(name, value, unit, reference=None, reference_value=None):
    line = {"bench": "console", "case": f"{options.bots}", "figure": name, "value": round(value, 3), "unit": unit}
    if reference:
        line |= {"reference": reference, "reference_value": round(reference_value, 3)}
    print(json.dumps(line), flush=True)


def measure(pids, look):
    used, began = cpu_s(pids), time.monotonic()
    if look:
        look.start()
    time.sleep(options.seconds)
    if look:
        look.stopped.set()
        look.join()
    return (cpu_s(pids) - used) / (time.monotonic() - began)


def main():
    run_dir = tempfile.mkdtemp(prefix="terrane-bench-console-")
    log = os.path.join(run_dir, "up.log")
    with open(log, "w", encoding="utf-8") as errors:
        up = subprocess.Popen([os.path.join(options.build, "terrane"), "up", "--servers", str(options.servers), "--bots",
                               str(options.bots), "--workload", "walk", "--updates", "off", "--calm-every", "1000",
                               "--run-dir", run_dir], stdout=subprocess.DEVNULL, stderr=errors)
    try:
        console = await_line(log, r"console +(http://\S+/)", 30).group(1)
        await_line(log, r" moves/s", 60)
        time.sleep(3)
        pids, metrics = metrics_urls(run_dir)
        if len(metrics) != options.servers + 1:
            sys.exit(f"{len(metrics)} of {options.servers + 1} processes tell metrics: {metrics}")
        without, looked, answers = [], [], 0
        for _ in range(options.turns):
            without.append(measure(pids, None))
            look = Look(console, metrics)
            looked.append(measure(pids, look))
            answers += look.answers
        figure("cores_without", sum(without) / len(without), "cores")
        figure("cores_looked_at", sum(looked) / len(looked), "cores")
        figure("answers_per_s", answers / (options.turns * options.seconds), "1/s")
        # The median of neighbouring turns' differences: one hiccup of the machine decides nothing.
        differences = sorted(b - a for a, b in zip(without, looked))
        percent = 100 * differences[len(differences) // 2] / (sum(without) / len(without))
        figure("cost", percent, "%", "most", MOST_PERCENT)
        return 0 if percent <= MOST_PERCENT else 1
    finally:
        up.terminate()
        up.wait(timeout=60)


parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
parser.add_argument("build")
parser.add_argument("--bots", type=int, default=20000)
parser.add_argument("--servers", type=int, default=4)
parser.add_argument("--turns", type=int, default=8)
parser.add_argument("--seconds", type=float, default=2.0)
options = parser.parse_args()
sys.exit(main())
