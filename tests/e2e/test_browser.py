#!/usr/bin/env python3
"""examples/browser: a page without server or library follows the region feeds of a running cluster over WebSocket, in plain
msgpack, and knows every entity that entered while it listened, where it is."""
import json
import os
import signal
import subprocess

from browser import Browser, need_selenium

need_selenium()
from cluster import BUILD, TERRANE, await_condition, check, passed, run  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOTS = 40
processes = []


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(program, *arguments):
    process = subprocess.Popen([os.path.join(BUILD, program), *arguments, "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    processes.append(process)
    return dict(word.split("=", 1) for word in process.stdout.readline().split()[1:])


try:
    coordinator = start("terrane-coordinator", "--storeless", "--inbox", "tcp://127.0.0.1:0", "--http", "none", "--depth", "4",
                        "--split-depth", "2", "--resolution-bits", "17")
    port = free_port()
    start("terrane-cellserver", "--coordinator", coordinator["inbox"], "--ws", f"127.0.0.1:{port}", "--feeds", "2")
    browser = Browser(700, 700, dark=True)
    urls = ",".join(f"ws://127.0.0.1:{port}/feed/{feed}" for feed in range(2))
    browser.open(f"file://{ROOT}/examples/browser/index.html?{urls}")

    def totals():
        return browser.run("const {leaves, totals} = terraneFeeds; return {...totals, leaves: leaves.size, "
                           "gaps: [...leaves.values()].reduce((sum, leaf) => sum + leaf.gaps, 0)}")
    await_condition("beats of all 16 regions", lambda: totals()["leaves"] == 16, 20)
    bots = subprocess.Popen([TERRANE, "bots", "--coordinator", coordinator["inbox"], "--query", coordinator["query"], "--bots", str(BOTS),
                             "--for", "0", "--calm-every", "60", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    processes.append(bots)

    def known():
        return dict(browser.run("return [...terraneFeeds.leaves.values()].flatMap(leaf => [...leaf.slots.values()])"
                                ".map(e => [String(e.id), [e.x, e.y]])"))
    before = await_condition("all entities in the page", lambda: (lambda all: all if len(all) == BOTS else None)(known()), 20)
    await_condition("moves", lambda: sum(before[one] != now for one, now in known().items() if one in before) > BOTS / 2, 20)
    os.kill(bots.pid, signal.SIGSTOP)  # so that both are asked about the same moment

    def agrees():
        entity, (x, y) = next(iter(known().items()))
        told = json.loads(run("find", entity, "--coordinator", coordinator["inbox"], "--query", coordinator["query"], "--json").stdout)
        unit = 50 * 2 ** (4 - 17)
        return told["found"] and abs(told["x"] - (x + 0.5) * unit) < unit and abs(told["y"] - (y + 0.5) * unit) < unit
    await_condition("agreement about a place", agrees, 10)
    os.kill(bots.pid, signal.SIGCONT)
    said = await_condition("a hundred frames", lambda: (lambda now: now if now["frames"] > 100 else None)(totals()), 20)
    check(said["wrong"] == 0 and said["gaps"] == 0, f"{said}")
    await_condition("words about it", lambda: f"{BOTS} entities known, 0 not understood" in browser.text("#said"), 5)
    check(browser.faults() == [], f"the page complains: {browser.faults()}")
    browser.quit()
    told = subprocess.run([os.path.join(BUILD, "terrane-cellserver"), "--ws", "7090"], capture_output=True, text=True, timeout=10)
    check(told.returncode == 2 and '"7090"' in told.stderr, f"{told}")
finally:
    for process in processes:
        process.kill()
        process.wait()
passed()
