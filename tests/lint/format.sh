#!/bin/sh
# Every C file is as clang-format would write it. Usage: format.sh SOURCE_DIR
set -eu
cd "$1"
command -v clang-format >/dev/null || { echo "clang-format is missing: scripts/install --test installs it"; exit 3; }
files=$(find common proto stream aoi coordinator cellserver gateway io console tools bench tests examples \
    \( -name '*.c' -o -name '*.h' \) 2>/dev/null | sort)
# shellcheck disable=SC2086
clang-format --dry-run --Werror $files
echo "$(echo "$files" | wc -l) files are formatted"
