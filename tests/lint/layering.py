#!/usr/bin/env python3
"""The layering holds: who may include what, which calls are banned where, how long a file may be.

Usage: layering.py SOURCE_DIR. Prints each violation as file:line: text and exits 1 if there is one."""
import os
import re
import sys

# Folder -> the folders that it may include from. The order is the dependency order.
MAY_INCLUDE = {
    "common": {"common"},
    "proto": {"common", "proto"},
    "stream": {"common", "proto", "stream"},
    "aoi": {"common", "aoi"},
    "coordinator": {"common", "proto", "stream", "coordinator"},
    "cellserver": {"common", "proto", "stream", "aoi", "cellserver"},
    "gateway": {"common", "proto", "stream", "gateway"},
    "io": {"common", "proto", "io"},
    "console": {"common", "proto", "console"},
    "tools": {"common", "proto", "io", "gateway", "tools"},
    "bench": {"common", "proto", "stream", "aoi", "coordinator", "cellserver", "gateway", "io", "bench", "tools"},
}
# The shells tie a core to io/.
SHELLS = {"coordinator/main.c": {"io", "console"}, "cellserver/main.c": {"io"}, "gateway/shell.c": {"io"}}
SHELLS |= {f"console/{name}": {"io", "coordinator"} for name in ("console.h", "internal.h", "console.c", "api.c")}
LIBRARIES = re.compile(r"<(nng/|ev\.h|hiredis/|microhttpd\.h)")
# What a pure core must not touch: clocks, randomness, environment, files, threads, sockets.
BANNED = re.compile(
    r"\b(time|clock|clock_gettime|gettimeofday|rand|random|srand|getrandom|getenv|setenv|fopen|open|read|write|socket|"
    r"pthread_\w+|thrd_\w+|printf|fprintf|puts|sleep|usleep|nanosleep|system|fork|exit|_exit)\s*\("
)
BANNED_HEADERS = re.compile(r"<(time\.h|sys/|unistd\.h|fcntl\.h|pthread\.h|threads\.h|signal\.h|poll\.h)")
PURE = {"proto", "stream", "aoi", "coordinator", "cellserver", "gateway", "common", "console"}
PURE_EXCEPT = set(SHELLS) | {"common/errors.c"}  # check_failed prints and aborts
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.S)
LINES_MAX = 600


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def check(root, path, problems):
    folder = path.split("/")[0]
    text = open(os.path.join(root, path), encoding="utf-8").read()
    lines = text.split("\n")
    if len(lines) - 1 > LINES_MAX:
        problems.append(f"{path}:{LINES_MAX}: {len(lines) - 1} lines; split the file by noun (at most {LINES_MAX})")
    if folder not in MAY_INCLUDE:
        return
    allowed = MAY_INCLUDE[folder] | SHELLS.get(path, set())
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match and "/" in match.group(1) and match.group(1).split("/")[0] not in allowed:
            problems.append(f"{path}:{number}: {folder}/ may not include {match.group(1)}")
        if match and "/" not in match.group(1):
            problems.append(f"{path}:{number}: include by path from the root: {match.group(1)}")
        if LIBRARIES.search(line) and line.lstrip().startswith("#") and folder != "io":
            problems.append(f"{path}:{number}: only io/ may include {line.strip()}")
        pure = folder in PURE and path not in PURE_EXCEPT
        if pure and line.lstrip().startswith("#") and BANNED_HEADERS.search(line):
            problems.append(f"{path}:{number}: a pure core may not include {line.strip()}")
    if folder in PURE and path not in PURE_EXCEPT:
        bare = STRING_OR_COMMENT.sub(blank, text).split("\n")
        for number, line in enumerate(bare, 1):
            match = BANNED.search(line)
            if match and not line.lstrip().startswith("#"):
                problems.append(f"{path}:{number}: a pure core may not call {match.group(1)}()")
            if re.match(r"(static\s+)?(?!const\b|_Thread_local\b)(struct \w+|u?int\w*|size_t|bool|char)\s+\**\w+\s*(=[^=;]*)?;", line):
                problems.append(f"{path}:{number}: a global variable: {line.strip()}")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    problems, files = [], 0
    for folder in sorted(list(MAY_INCLUDE) + ["tests", "examples"]):
        for base, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    files += 1
                    check(root, os.path.relpath(os.path.join(base, name), root), problems)
    print("\n".join(problems) if problems else f"layering holds in {files} files")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
