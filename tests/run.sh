#!/usr/bin/env bash
# Installs what the tests need, builds, runs tests, and ends with ctest's summary.
#
#   tests/run.sh                 every test but those with the label "long": what a change can break
#   tests/run.sh --all           all tests, after the sanitizers' builds and theirs
#   tests/run.sh -R store        ctest's own options: only the tests that match, long ones too
set -euo pipefail
cd "$(dirname "$0")/.."

all=false
[ "${1:-}" != --all ] || { all=true; shift; }
base/packages.sh build test

jobs=$(nproc)
build() { # build preset
    cmake --preset "$1" >"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; exit 1; }
    cmake --build --preset "$1" >>"build/$1.log" 2>&1 || { tail -n 60 "build/$1.log"; exit 1; }
}
mkdir -p build
status=0

if $all; then
    for sanitizer in asan tsan; do
        echo "== $sanitizer"
        build "$sanitizer"
        ctest --preset "$sanitizer" -j "$jobs" || status=$?
    done
elif [ $# -eq 0 ]; then
    set -- -LE long
fi
echo "== tests"
build test
ctest --preset test -j "$jobs" "$@" || status=$?
exit $status
