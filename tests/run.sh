#!/usr/bin/env bash
# Installs what the tests need, builds, runs tests, and ends with ctest's summary.
#
#   tests/run.sh                 every test but those with the label "long": what a change can break
#   tests/run.sh --all           all tests, and then those under the sanitizers
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
[ $# -gt 0 ] || $all || set -- -LE long

echo "== tests"
build test
if $all; then # while tests wait, what the sanitizers need is built at the lowest priority
    set -m # a process group of its own, which goes with this script
    (
        renice -n 19 -p $BASHPID >/dev/null
        build asan tests_unit tests_ops tests_dist tests_fuzz
        build tsan tests_threads
    ) &
    builder=$!
    set +m
    trap 'kill -- -$builder 2>/dev/null || :' EXIT
fi
ctest --preset test -j "$jobs" "$@" || status=$?
if $all; then
    wait "$builder" || { echo "the sanitizers' build failed: build/asan.log, build/tsan.log" >&2; exit 1; }
    for sanitizer in asan tsan; do
        echo "== $sanitizer"
        ctest --preset "$sanitizer" -j "$(nproc)" || status=$? # there all compute
    done
fi
exit $status
