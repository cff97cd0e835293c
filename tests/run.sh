#!/usr/bin/env bash
# Installs what the tests need, builds, runs every test, and ends with ctest's summary.
#
#   tests/run.sh                 everything, the sanitizer builds first
#   tests/run.sh -R store        ctest's own options: only the tests that match, no sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."

base/packages.sh build test

jobs=$(nproc)
build() { # build preset
    cmake --preset "$1" >"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; exit 1; }
    cmake --build --preset "$1" >>"build/$1.log" 2>&1 || { tail -n 60 "build/$1.log"; exit 1; }
}
mkdir -p build
status=0

if [ $# -eq 0 ]; then
    for sanitizer in asan tsan; do
        echo "== $sanitizer"
        build "$sanitizer"
        ctest --preset "$sanitizer" -j "$jobs" || status=$?
    done
fi
echo "== all tests"
build test
ctest --preset test -j "$jobs" "$@" || status=$?
exit $status
