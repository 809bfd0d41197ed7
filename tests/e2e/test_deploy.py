#!/usr/bin/env python3
"""What deploy/ and docs/OPERATIONS.md say is so: units and manifests are well-formed, each variable and flag that they
name exists, the commands that the docs show work on a running cluster, and nobody listens beyond loopback unasked."""
import glob
import os
import re
import shlex
import subprocess
import tempfile

import yaml

from cluster import BUILD, Cluster, await_condition, check, check_result, passed, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = re.findall(r"^  (\w+) ", run("--help").stdout, re.M)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def help_of(*command):
    told = subprocess.run([os.path.join(BUILD, command[0]), *command[1:], "--help"], capture_output=True, text=True,
                          timeout=20, check=False)
    check(told.returncode == 0, f"{command} --help")
    return told.stdout


HELPS = {"terrane-coordinator": help_of("terrane-coordinator"), "terrane-cellserver": help_of("terrane-cellserver"),
         **{f"terrane {command}": help_of("terrane", command) for command in COMMANDS}}
FLAGS = set(re.findall(r"--(?:\[no-\])?([a-z][a-z0-9-]*)", " ".join(HELPS.values())))
# Of the compose file, the tests and the launcher, not of a program.
OWN = {"TERRANE_SERVERS", "TERRANE_CONSOLE_PORT", "TERRANE_CROWDS", "TERRANE_NAME", "TERRANE_NODE_ID", "TERRANE_TESTS"}


def check_units():
    """As systemd reads them, with the programs where the build has put them."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for path in glob.glob(os.path.join(ROOT, "deploy/systemd/*.service")):
            names.append(os.path.basename(path).replace("@.", "@1."))
            with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as unit:
                unit.write(text_of(path).replace("/usr/bin/", os.path.abspath(BUILD) + "/"))
        check(len(names) == 2, f"units: {names}")
        for name in names:
            told = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(folder, name)],
                                  capture_output=True, text=True, timeout=60, check=False)
            about = [line for line in (told.stdout + told.stderr).splitlines() if "terrane" in line]
            check(about == [], f"systemd-analyze: {about}")


def check_manifests():
    """Every workload is confined, has probes where it serves HTTP, and is selected by what it says it is."""
    parts = list(yaml.safe_load_all(text_of("deploy/kubernetes/terrane.yaml")))
    sets = [part for part in parts if part["kind"] == "StatefulSet"]
    services = {part["metadata"]["name"]: part["spec"] for part in parts if part["kind"] == "Service"}
    check(len(sets) == 3, f"{len(sets)} workloads")
    for part in sets:
        spec, name = part["spec"], part["metadata"]["name"]
        labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
        check(spec["selector"]["matchLabels"] == labels == services[spec["serviceName"]]["selector"], f"{name} is not selected")
        check(pod["securityContext"]["runAsNonRoot"], f"{name} may be root")
        for container in pod["containers"]:
            rights = container["securityContext"]
            check(rights["readOnlyRootFilesystem"] and rights["capabilities"] == {"drop": ["ALL"]}, f"{name}: {rights}")
            check("readinessProbe" in container, f"{name} has no readiness probe")
    compose = yaml.safe_load(text_of("deploy/docker-compose.yml"))
    check(set(compose["services"]) == {"redis", "coordinator-1", "coordinator-2", "cellserver", "bots"}, "services")


def check_names():
    """No variable is set that no program reads."""
    files = [path for path in glob.glob(os.path.join(ROOT, "deploy/**/*"), recursive=True) if os.path.isfile(path)]
    texts = {path: text_of(path) for path in [*files, os.path.join(ROOT, "docs/OPERATIONS.md")]}
    seen = 0
    for path, text in texts.items():
        for name in set(re.findall(r"\bTERRANE_[A-Z_]+[A-Z]\b", text)) - OWN:
            flag = name.removeprefix("TERRANE_").lower().replace("_", "-")
            check(flag in FLAGS, f"{path} names {name}, and no program has --{flag}")
            seen += 1
    check(seen > 20, f"{seen} variables are named")


def shown(path):
    """The command lines that a document shows, without their comments."""
    lines = []
    for block in re.findall(r"^```\n(.*?)^```", text_of(path), re.M | re.S):
        lines += [line.split("  #")[0].strip() for line in block.splitlines()]
    return [line for line in lines if line]


def check_flags_shown(lines):
    known = 0
    for line in lines:
        for part in line.replace("build/release/", "").split(" -- "):
            words = part.split()
            program = " ".join(words[:2]) if words[0] == "terrane" else words[0]
            for flag in re.findall(r" --([a-z][a-z-]*)", part):
                if program in HELPS:
                    check(re.search(rf"--(\[no-\])?{flag}\b", HELPS[program]), f"{line}: {program} has no --{flag}")
                    known += 1
    check(known > 3, f"only {known} flags are shown")


def run_shown(lines, cluster, environment):
    """The read-only ones as they stand, and a drain, on a cluster whose addresses the environment tells."""
    ran = 0
    for line in lines:
        words = shlex.split(line.replace("build/release/terrane", "terrane"))
        if words[:2] not in [["terrane", "status"], ["terrane", "drain"]]:
            continue
        told = subprocess.run([os.path.join(BUILD, "terrane"), *[word.replace("cell-7", "cell-2") for word in words[1:]]],
                              env=environment, capture_output=True, text=True, timeout=90, check=False)
        check(told.returncode == 0, f"{line}: {told.returncode} {told.stdout}{told.stderr}\n{cluster.errors()}")
        ran += 1
    check(ran >= 4, f"only {ran} commands of the docs were run")


def listeners(pid):
    """Local addresses of a process's listening TCP sockets, in hexadecimal as the kernel tells them."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
        if match:
            inodes.add(match.group(1))
    rows = []
    for family in ["tcp", "tcp6"]:
        with open(f"/proc/{pid}/net/{family}", encoding="ascii") as table:
            rows += [row.split() for row in table.readlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]


def check_loopback(cluster):
    sockets = [address for pid in cluster.children() for address in listeners(pid)]
    check(len(sockets) > 20, f"only {len(sockets)} listening sockets were found")
    beyond = [address for address in sockets if address != "0100007F"]
    check(beyond == [], f"listening beyond 127.0.0.1: {beyond}")


check_units()
check_manifests()
check_names()
DOCS = shown("docs/OPERATIONS.md") + shown("README.md")
check_flags_shown(DOCS)
running = Cluster("--servers", "3", "--bots", "200", "--calm-every", "1000000")
inbox = running.words("coordinator ")[1]
running.await_moving()
check_loopback(running)
await_condition("protection", lambda: run("status", "--coordinator", inbox, "--wait-protected", "2000").returncode == 0)
run_shown(DOCS, running, {**os.environ, "TERRANE_COORDINATOR": inbox, "TERRANE_INTERVAL": "0.2"})
running.stop()
check_result(*running.finish(), running.errors())
passed()
