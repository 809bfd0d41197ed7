#!/bin/sh
# clang-tidy (see .clang-tidy) finds nothing in the project's own code. Usage: tidy.sh SOURCE_DIR BUILD_DIR [--deep]
# Files that have not changed, with all that they include, since they were last found clean are not looked at again.
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
# A clone of what has been looked at is not looked at again, as with ccache: so the stamps are the user's.
stamps=${XDG_CACHE_HOME:-$HOME/.cache}/terrane-tidy
mkdir -p "$stamps"
keys=$(python3 -B tests/lint/tidy_keys.py . "$build" "$nodes")
for file in $(find common proto stream aoi coordinator cellserver gateway io console tools -name '*.c'); do
    echo "$keys" | grep -q " $file$" || { echo "tidy.sh: $file is in no target" >&2; exit 1; }
done
todo=$(echo "$keys" | while read -r key file; do [ -f "$stamps/$key" ] || echo "$key $file"; done)
[ -n "$todo" ] || { echo "clang-tidy: all $(echo "$keys" | wc -l) files known to be clean"; exit 0; }
export build nodes stamps
echo "$todo" | xargs -P 2 -L 1 sh -c '
    clang-tidy -p "$build" --quiet --warnings-as-errors="*" --extra-arg=-Xclang --extra-arg=-analyzer-config \
        --extra-arg=-Xclang --extra-arg="max-nodes=$nodes" "$2" 2>/dev/null || exit 255
    touch "$stamps/$1"' sh
find "$stamps" -type f -mtime +30 -delete
echo "clang-tidy: $(echo "$todo" | wc -l) files are clean"
