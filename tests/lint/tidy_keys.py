#!/usr/bin/env python3
"""A line "KEY FILE" for each C file of the project's own code: the key changes with all that clang-tidy's word on the file
depends on: the file, every header that it includes, its macros, the checks, clang-tidy itself.

Usage: tidy_keys.py SOURCE_DIR BUILD_DIR SALT"""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

FOLDERS = ("common", "proto", "stream", "aoi", "coordinator", "cellserver", "gateway", "io", "console", "tools")
source, build, salt = os.path.realpath(sys.argv[1]), sys.argv[2], sys.argv[3]
contents = {}


def content(path):
    if path not in contents:
        with open(path, "rb") as file:
            contents[path] = hashlib.sha256(file.read()).digest()
    return contents[path]


def key_of(entry):
    words = shlex.split(entry["command"])
    kept = [word for at, word in enumerate(words) if word not in ("-c", "-o") and words[at - 1] != "-o"]
    told = subprocess.run([*kept, "-M"], cwd=entry["directory"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256(salt.encode())
    key.update(" ".join(word for word in words if word.startswith(("-D", "-std"))).replace(source, "").encode())
    for path in told.replace("\\\n", " ").split(": ", 1)[1].split():
        key.update(content(os.path.join(entry["directory"], path)))
    return key.hexdigest()[:32]


with open(os.path.join(source, ".clang-tidy"), encoding="utf-8") as checks:
    salt += checks.read()
salt += subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    entries = {os.path.relpath(os.path.realpath(entry["file"]), source): entry for entry in json.load(file)}
own = sorted(name for name in entries if name.split("/")[0] in FOLDERS)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for name, key in zip(own, pool.map(key_of, (entries[name] for name in own))):
        print(key, name)
