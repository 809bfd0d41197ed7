#!/bin/sh
# What is installed is enough to build the examples, with CMake and with pkg-config, in C and in C++, and they run.
# Usage: installed.sh BUILD_DIR (of Terrane, built)
set -eu
build=$1
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component library --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }

cmake -S "$source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/cmake" >"$work/log" || { cat "$work/log"; exit 1; }

pc=$(find "$work/prefix" -name terrane.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -o "$work/poll" "$source/gateway_poll.c" "$source/walkers.c" \
    $(pkg-config --cflags --libs terrane) -lm
echo '#include <terrane.h>
int main() { return terrane_error_text(TERRANE_ERR_OK) == nullptr; }' >"$work/main.cc"
# shellcheck disable=SC2046
c++ -Wall -Wextra -Wpedantic -Werror -o "$work/cpp" "$work/main.cc" $(pkg-config --cflags --libs terrane)

LD_LIBRARY_PATH=$(pkg-config --variable=libdir terrane)
export LD_LIBRARY_PATH
"$work/cpp"
for example in "$work/poll" "$work/cmake/gateway_poll"; do
    code=0
    # Port 1 is nobody's: the gateway opens, finds no coordinator, and closes again.
    "$example" tcp://127.0.0.1:1 0 0 >"$work/out" 2>&1 || code=$?
    [ "$code" -eq 0 ] && grep -q '^entered=0 ' "$work/out" || { cat "$work/out"; echo "$example: exit $code"; exit 1; }
    code=0
    "$example" not-a-url >"$work/out" 2>&1 || code=$?
    [ "$code" -eq 3 ] && grep -q 'coordinator_url' "$work/out" || { cat "$work/out"; echo "$example: exit $code"; exit 1; }
done
library=$(find "$work/prefix" -name 'libterrane.so' | head -1)
foreign=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^terrane_' || true)
[ -z "$foreign" ] || { echo "libterrane shows symbols that are not its own:" "$foreign"; exit 1; }
[ "$(nm -D --defined-only "$library" | grep -c ' T terrane_')" -ge 20 ] || { echo "libterrane shows too few functions"; exit 1; }
echo "the installed library serves C, C++, CMake and pkg-config"
