#!/bin/sh
# What is installed is enough to build a gateway: with pkg-config, with CMake's find_package, and from C++; and the
# library shows no symbol but its own. Usage: package.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }

pc=$(find "$work/prefix" -name terrane.pc)
[ -n "$pc" ] || { echo "terrane.pc is not installed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
cp "$source"/examples/c/*.[ch] "$work"
cd "$work"
# shellcheck disable=SC2046
cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror gateway_poll.c walkers.c $(pkg-config --cflags --libs terrane) -lm -o by_pkg_config
echo "pkg-config: builds"

cmake -S "$source/examples/c" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/cmake.log" 2>&1 &&
    cmake --build "$work/cmake" >>"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
echo "CMake package: builds"

printf '#include <terrane.h>\nint main() { return terrane_error_text(TERRANE_ERR_OK) == nullptr; }\n' >cxx.cc
# shellcheck disable=SC2046
if command -v c++ >/dev/null; then
    c++ -std=c++17 -Wall -Wextra -Werror cxx.cc $(pkg-config --cflags --libs terrane) -o by_cxx
    LD_LIBRARY_PATH=$(dirname "$(find "$work/prefix" -name 'libterrane.so*' | head -1)") ./by_cxx
    echo "C++: builds and runs"
fi

library=$(find "$work/prefix" -name 'libterrane.so' | head -1)
[ -n "$library" ] || { echo "libterrane.so is not installed"; exit 1; }
foreign=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^terrane_' | grep -v '^TERRANE' || true)
[ -z "$foreign" ] || { echo "symbols that are not terrane_*:" "$foreign"; exit 1; }
count=$(nm -D --defined-only "$library" | grep -c ' T terrane_')
[ "$count" -ge 20 ] || { echo "only $count functions are exported"; exit 1; }
echo "$count functions exported, all terrane_*"

for program in terrane terrane-coordinator terrane-cellserver; do
    "$work/prefix/bin/$program" --version | grep -q terrane || { echo "$program --version says nothing of itself"; exit 1; }
done
# Headers stand alone: what they include is installed beside them.
! grep -n '#include "common/' "$work"/prefix/include/*.h
