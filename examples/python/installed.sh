#!/bin/sh
# The installed libterrane-aoi serves its README's example, with CMake and with pkg-config, C++, and Python.
# Usage: installed.sh BUILD_DIR (of Terrane, built)
set -eu
build=$1
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component aoi --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
sed -n '/^```c$/,/^```$/p' "$source/../../aoi/README.md" | sed '/^```/d' >"$work/main.c"

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name terrane-aoi.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc -Wall -Wextra -Wpedantic -Werror -o "$work/pc" "$work/main.c" $(pkg-config --cflags --libs terrane-aoi)
echo '#include <terrane_aoi.h>
int main() { return terrane_aoi_index_find("grid") == nullptr || terrane_error_text(TERRANE_ERR_OK) == nullptr; }' >"$work/main.cc"
# shellcheck disable=SC2046
c++ -Wall -Wextra -Wpedantic -Werror -o "$work/cpp" "$work/main.cc" $(pkg-config --cflags --libs terrane-aoi)
cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES C)
find_package(TerraneAoi REQUIRED)
add_executable(example main.c)
target_link_libraries(example PRIVATE Terrane::terrane-aoi)
END
cmake -S "$work" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/cmake" >"$work/log" || { cat "$work/log"; exit 1; }

LD_LIBRARY_PATH=$(pkg-config --variable=libdir terrane-aoi)
export LD_LIBRARY_PATH
"$work/cpp"
for example in "$work/pc" "$work/cmake/example"; do
    [ "$("$example")" = "2 sees 1" ] || { "$example"; echo "$example does not print what the README says"; exit 1; }
done
library=$(find "$work/prefix" -name 'libterrane-aoi.so' | head -1)
foreign=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^terrane_' || true)
[ -z "$foreign" ] || { echo "libterrane-aoi shows symbols that are not its own:" "$foreign"; exit 1; }
[ "$(nm -D --defined-only "$library" | grep -c ' T terrane_aoi_')" -ge 30 ] || { echo "libterrane-aoi shows too few functions"; exit 1; }
python3 -B "$source/aoi.py" "$library" "$build/bench_aoi" >"$work/out" || { cat "$work/out"; exit 1; }
[ "$(grep -c 'all views right' "$work/out")" -ge 110 ] || { cat "$work/out"; echo "too few indexes ran"; exit 1; }
echo "the installed libterrane-aoi serves C, C++, CMake, pkg-config and Python"
