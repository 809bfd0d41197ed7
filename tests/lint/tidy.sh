#!/bin/sh
# clang-tidy (see .clang-tidy) finds nothing in the project's own code. Usage: tidy.sh SOURCE_DIR BUILD_DIR [--deep]
# Files that have not changed since they were last found clean are not looked at again (stamps in BUILD_DIR/tidy).
# The analyzer's paths are nearly all of the time: plain runs bound them to a ninth of clang's default for each function
# (a tenth of the time); --deep, which scripts/test --long runs, does not.
set -eu
source=$1 build=$2 depth=${3-}
case $depth in
"") nodes=25000 ;;
--deep) nodes=225000 ;;
*) echo "tidy.sh: $depth: no such argument; usage: tidy.sh SOURCE_DIR BUILD_DIR [--deep]" >&2; exit 2 ;;
esac
command -v clang-tidy >/dev/null || { echo "clang-tidy is missing: scripts/install --test installs it"; exit 3; }
cd "$source"
mkdir -p "$build/tidy"
common=$nodes$(cat .clang-tidy $(find . -path ./build -prune -o -name '*.h' -print | sort) | sha256sum | cut -c1-16)
todo=$(for file in $(find common proto stream aoi coordinator cellserver gateway io console tools -name '*.c' | sort); do
    [ -f "$build/tidy/$( (echo "$common"; cat "$file") | sha256sum | cut -c1-32)" ] || echo "$file"
done)
[ -n "$todo" ] || { echo "clang-tidy: all files known to be clean"; exit 0; }
export build common nodes
echo "$todo" | xargs -P 2 -I{} sh -c '
    clang-tidy -p "$build" --quiet --warnings-as-errors="*" --extra-arg=-Xclang --extra-arg=-analyzer-config \
        --extra-arg=-Xclang --extra-arg="max-nodes=$nodes" {} 2>/dev/null || exit 255
    touch "$build/tidy/$( (echo "$common"; cat {}) | sha256sum | cut -c1-32)"'
echo "clang-tidy: $(echo "$todo" | wc -l) files are clean"
