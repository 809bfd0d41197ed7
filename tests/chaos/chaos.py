#!/usr/bin/env python3
"""Kills and pauses real processes of a real cluster while bots move through it; nothing that was promised may break.

Usage: chaos.py BUILD [--seconds N] [--seed N] [--bots N] [--servers N] [--coordinators N] [--least N] [--kinds A,B,...] [--net]

One fault at a time: the next one comes when `terrane status` says that every region has a level standby again and
every process runs. Kinds: VICTIM-kill (SIGKILL), VICTIM-pause (SIGSTOP for longer than the lease, then SIGCONT),
VICTIM-stop (SIGTERM); victims: cell, coordinator, redis, gateway (another process of bots). The bots that check belong
to `terrane up`: they forgive delay, nothing else.

--net: everything runs in a network namespace of its own (root, nft, setpriv), and packets of a cell server are dropped
for a while: cell-partition (all), cell-mute (what it sends), cell-deaf (what it is sent), cell-loss (every fifth).
--delay MS (with --net): every connection goes through a relay (relay.c) that delays it by so much, and up to as much more.

The last line is one JSON object: faults, deaths (processes that ended), and of the bots' object lost, doubled,
views_wrong, events_wrong, gaps_unrepaired and others. Exits 0 if those are 0 and the faults are at least --least, 1
if not (what the processes said is kept then), 3 if something needed is missing."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WRONG = ["lost", "doubled", "views_wrong", "events_wrong", "gaps_unrepaired", "misplaced", "states_wrong", "queries_wrong"]
# How often each kind comes; the first round has one of each.
KINDS = {"cell-kill": 6, "cell-pause": 3, "cell-stop": 1, "coordinator-kill": 2, "coordinator-pause": 1,
         "redis-kill": 2, "redis-pause": 1, "gateway-kill": 2}
NET_KINDS = {"cell-partition": 3, "cell-mute": 3, "cell-deaf": 3, "cell-loss": 2}
# What is dropped of a server: of its connections, or of what its group sends. Each server has a bit of its own in the
# mark, since a connection of two servers is both's: one number would be that of who sent last.
DROPS = {"partition": "ct mark and {bit} != 0 drop", "mute": "meta skgid {group} drop",
         "deaf": "ct mark and {bit} != 0 meta skgid != {group} drop",
         "loss": "ct mark and {bit} != 0 numgen random mod 100 < 20 drop"}
FIRST_GROUP = 64200
RELAY_GROUP, RELAY_PORT = 64100, 14999
LEASE = 0.25
PROTECTED_MS = 40000  # after a fault all must be well again by then
GUESTS = 200          # bots of the gateway that is killed


def nft(*commands):
    subprocess.run(["nft", "-f", "-"], input="\n".join(commands) + "\n", text=True, timeout=30, check=True)


class Broken(Exception):
    """What does not hold."""


class Chaos:
    def __init__(self, options):
        self.options = options
        self.dice = random.Random(options.seed)
        self.folder = tempfile.mkdtemp(prefix="terrane-chaos-")
        self.terrane = os.path.join(options.build, "terrane")
        self.faults = {}
        self.up = self.guest = self.relay = None
        self.guests = 0
        self.began = time.monotonic()

    def say(self, text):
        line = f"{time.monotonic() - self.began:7.2f} s  {text}"
        print(line, file=sys.stderr, flush=True)
        with open(self.path("chaos.log"), "a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')}{time.time() % 1:.3f}"[:8] + f" {line}\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    # The cluster

    def start(self):
        o = self.options
        command = [self.terrane, "up", "--json", "--deaths", "--run-dir", self.folder, "--seed", str(o.seed),
                   "--servers", str(o.servers), "--coordinators", str(o.coordinators), "--bots", str(o.bots),
                   "--churn", "20", "--window", str(o.window), "--patience", str(o.patience), "--calm-every", str(o.calm_every)]
        if o.net:
            command += ["--first-group", str(FIRST_GROUP)]
            nft("add table inet t", "add chain inet t marks { type filter hook output priority -1; }",
                "add chain inet t drops { type filter hook output priority 0; }",
                *[f"add rule inet t marks meta skgid {FIRST_GROUP + i} ct mark set ct mark or {1 << i}"
                  for i in range(o.servers)])
        if o.delay:
            self.start_relay()
        with open(self.path("up.log"), "w", encoding="utf-8") as log:
            self.up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.await_condition("moving bots", lambda: " moves/s" in self.log(), 120)
        words = next(line.split() for line in self.log().splitlines() if line.startswith("coordinator "))
        self.inboxes, self.queries = words[1], words[3]
        self.start_guest()

    def start_relay(self):
        command = ["setpriv", f"--regid={RELAY_GROUP}", "--clear-groups", "--pdeathsig=KILL",
                   os.path.join(self.options.build, "chaos_relay"), str(RELAY_PORT), str(self.options.delay),
                   str(self.options.delay)]
        self.relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.relay.stdout.readline()
        nft("add chain inet t delays { type nat hook output priority -100; }",
            f"add rule inet t delays meta skgid != {RELAY_GROUP} ip daddr 127.0.0.0/8 tcp dport != {RELAY_PORT} "
            f"redirect to :{RELAY_PORT}")

    def log(self):
        with open(self.path("up.log"), encoding="utf-8") as log:
            return log.read()

    def start_guest(self):
        self.guests += 1
        command = [self.terrane, "bots", "--coordinator", self.inboxes, "--query", self.queries, "--bots", str(GUESTS),
                   "--seed", str(1000000 * self.options.seed + self.guests), "--band", "60", "--gateways", "1",
                   "--deaths", "--calm-every", "1000000"]
        with open(self.path("guest.log"), "a", encoding="utf-8") as log:
            self.guest = subprocess.Popen(command, stdout=log, stderr=log)

    def children(self):
        with open(self.path("children.json"), encoding="utf-8") as file:
            return {child["name"]: child for child in json.load(file)}

    def await_condition(self, what, condition, seconds):
        until = time.monotonic() + seconds
        while not condition():
            if self.up.poll() is not None:
                raise Broken(f"terrane up has ended with {self.up.returncode} before {what}")
            if time.monotonic() > until:
                raise Broken(f"{what}: not within {seconds} s")
            time.sleep(0.02)

    def await_protected(self, after):
        """Everybody runs, and every region has a level standby."""
        self.await_condition(f"all processes running after {after}",
                             lambda: all(child["pid"] != 0 for child in self.children().values()), 30)
        began = time.monotonic()
        status = subprocess.run([self.terrane, "status", "--query", self.queries, "--interval", "0.05",
                                 "--wait-protected", str(PROTECTED_MS)],
                                capture_output=True, text=True, timeout=PROTECTED_MS / 1000 + 60, check=False)
        if status.returncode != 0:
            with open(self.path("unprotected.txt"), "w", encoding="utf-8") as file:
                file.write(status.stdout + status.stderr)
            raise Broken(f"not protected again after {after}: {status.stderr.strip().splitlines()[-1:]}")
        return time.monotonic() - began

    # Faults

    def victim(self, kind):
        names = [name for name in self.children() if name.startswith(kind)]
        return self.dice.choice(sorted(names))

    def inflict(self, kind):
        who, how = kind.rsplit("-", 1)
        self.faults[kind] = self.faults.get(kind, 0) + 1
        if who == "gateway":
            self.say(f"kill a gateway with {GUESTS} bots")
            self.guest.kill()
            self.guest.wait()
            self.start_guest()
            return "a gateway's death"
        name = self.victim(who)
        pid = self.children()[name]["pid"]
        if how in DROPS:
            seconds = self.dice.uniform(2 * LEASE, 8 * LEASE)
            self.say(f"{how} of {name} for {seconds:.2f} s")
            at = int(name.split("-")[1]) - 1
            nft("add rule inet t drops " + DROPS[how].format(bit=1 << at, group=FIRST_GROUP + at))
            time.sleep(seconds)
            nft("flush chain inet t drops")
        elif how == "pause":
            seconds = self.dice.uniform(2 * LEASE, 6 * LEASE)
            self.say(f"pause {name} ({pid}) for {seconds:.2f} s")
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)
        else:
            self.say(f"{how} {name} ({pid})")
            starts = self.children()[name]["starts"]
            os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGTERM)
            self.await_condition(f"{name}'s return", lambda: self.children()[name]["starts"] > starts, 30)
        return f"{kind} of {name}"

    def plan(self):
        known = {**KINDS, **NET_KINDS} if self.options.net else KINDS
        kinds = self.options.kinds.split(",") if self.options.kinds else sorted(known)
        first = list(kinds)
        self.dice.shuffle(first)
        yield from first
        while True:
            yield self.dice.choices(kinds, [known[kind] for kind in kinds])[0]

    def run(self):
        self.start()
        self.await_protected("the start")
        until = time.monotonic() + self.options.seconds
        for kind in self.plan():
            time.sleep(self.dice.uniform(0, self.options.pace))  # when it comes is part of the fault
            if time.monotonic() >= until:
                break
            after = self.inflict(kind)
            self.say(f"protected again after {self.await_protected(after):.2f} s")

    # The end

    def finish(self):
        """The bots' object; they end with one more calm."""
        if self.guest is not None and self.guest.poll() is None:
            self.guest.kill()
            self.guest.wait()
        if self.up is None:
            return None
        if self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
        try:
            output, _ = self.up.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            self.up.kill()
            output, _ = self.up.communicate()
        if self.relay is not None:
            self.relay.kill()
        lines = output.strip().splitlines()
        return json.loads(lines[-1]) if lines else None


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=300, help="how long faults come")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bots", type=int, default=10000)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--coordinators", type=int, default=2)
    parser.add_argument("--least", type=int, default=1, help="faults that must have come")
    parser.add_argument("--pace", type=float, default=2, help="at most so many seconds between protection and the next fault")
    parser.add_argument("--kinds", default="", help="only these, separated by commas")
    parser.add_argument("--window", type=int, default=4000, help="delay that is forgiven while bots move, ms")
    parser.add_argument("--patience", type=int, default=30000, help="for a calm, ms")
    parser.add_argument("--calm-every", type=float, default=8, help="seconds between calms")
    parser.add_argument("--net", action="store_true", help="also drop packets, in a network namespace of its own")
    parser.add_argument("--delay", type=int, default=0, help="ms that everything takes longer; with --net")
    options = parser.parse_args(arguments)
    if options.delay and not options.net:
        parser.error("--delay needs --net")
    known = {**KINDS, **NET_KINDS} if options.net else KINDS
    unknown = [kind for kind in options.kinds.split(",") if kind and kind not in known]
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def enter_namespace():
    """Runs this program again in a network of its own; returns if that can't be."""
    if os.geteuid() != 0 or not all(shutil.which(program) for program in ["unshare", "nft", "setpriv", "ip"]):
        return
    os.environ["TERRANE_CHAOS_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B",
                          *sys.argv])


def main():
    options = options_of(sys.argv[1:])
    if options.net and "TERRANE_CHAOS_INSIDE" not in os.environ:
        enter_namespace()
        print("chaos.py: --net needs root, unshare, ip, nft and setpriv", file=sys.stderr)
        return 3
    if not os.access(os.path.join(options.build, "terrane"), os.X_OK) or shutil.which("redis-server") is None:
        print(f"chaos.py: {options.build}/terrane or redis-server is missing", file=sys.stderr)
        return 3
    chaos = Chaos(options)
    broken = None
    try:
        chaos.run()
    except Broken as fault:
        broken = str(fault)
        chaos.say(f"BROKEN: {fault}")
    result = chaos.finish() or {}
    code = chaos.up.returncode if chaos.up else 1
    inflicted = sum(chaos.faults.values())
    wrong = {name: result.get(name, -1) for name in WRONG}
    summary = {"faults": inflicted, "deaths": result.get("deaths", 0) + chaos.faults.get("gateway-kill", 0), **wrong}
    for name in ["entities", "moves", "handoffs", "failovers", "calms", "views_checked", "settle_ms_worst", "blinks",
                 "questions_failed", "ticks", "ticks_late", "gaps"]:
        summary[name] = result.get(name, -1)
    holds = broken is None and code == 0 and not any(wrong.values()) and inflicted >= options.least
    summary.update({"kinds": chaos.faults, "seed": options.seed, "seconds": round(time.monotonic() - chaos.began, 1),
                    "broken": broken})
    if holds:
        shutil.rmtree(chaos.folder)
    else:
        for line in chaos.log().splitlines()[-30:]:
            print(line, file=sys.stderr)
        print(f"chaos.py: logs are in {chaos.folder}", file=sys.stderr)
    print(json.dumps(summary))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
