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

jobs=$((2 * $(nproc))) # most tests wait; one that computes counts as two (tests/CMakeLists.txt)
build() { # preset target...: all where none is named
    cmake --preset "$1" >"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; exit 1; }
    cmake --build --preset "$1" ${2:+--target "${@:2}"} >>"build/$1.log" 2>&1 ||
        { tail -n 60 "build/$1.log"; exit 1; }
}
mkdir -p build
status=0

if $all; then
    for sanitizer in asan tsan; do
        echo "== $sanitizer"
        case $sanitizer in
        asan) build asan tests_unit tests_ops tests_dist tests_fuzz ;;
        tsan) build tsan tests_threads ;;
        esac
        ctest --preset "$sanitizer" -j "$(nproc)" || status=$? # there all compute
    done
elif [ $# -eq 0 ]; then
    set -- -LE long
fi
echo "== tests"
build test
ctest --preset test -j "$jobs" "$@" || status=$?
exit $status
