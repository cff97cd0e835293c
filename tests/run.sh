#!/usr/bin/env bash
# Installs what the tests need, builds, runs tests, and ends with their number.
#
#   tests/run.sh             the gate: the tests that every change has to pass
#   tests/run.sh --all       the gate, the long tests, and then the tests under the sanitizers
#   tests/run.sh --kind K    the tests that concern one kind of model, long ones too; builds only what they run
#   tests/run.sh --failed    the tests that failed in the last run, with and without a sanitizer
#   tests/run.sh -R store    ctest's own options: the tests that match, long ones too
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build

# Most tests wait; one that computes counts as two (tests/CMakeLists.txt).
jobs=$((2 * $(nproc)))
failed=()
passed=0

# configure PRESET [OPTION OF CMAKE...] and build PRESET [TARGET...]: on failure print what went wrong, and exit
configure() {
    cmake --preset "$@" >"build/$1.log" 2>&1 || { tail -n 30 "build/$1.log"; exit 1; }
}
build() {
    cmake --build --preset "$1" ${2:+--target "${@:2}"} >>"build/$1.log" 2>&1 ||
        { grep -nE -A12 'FAILED|error:' "build/$1.log" | head -n 60; exit 1; }
}

# run_tests PRESET [OPTION OF CTEST...]: prints the tests that fail, with their output, and the closing line
run_tests() {
    local preset=$1 log=build/$1-tests.log last=build/$1/Testing/Temporary/LastTestsFailed.log status=0 name
    shift
    rm -f "$last"
    ctest --preset "$preset" "$@" >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        sed -nE '/\*\*\*(Failed|Exception|Timeout|Not Run)/,/Start +[0-9]+:|^ *[0-9]+\/[0-9]+ Test/p' "$log" | grep -vE 'Start +[0-9]+:| Passed ' || :
        [ -e "$last" ] || { tail -n 20 "$log"; exit $status; }
        while IFS= read -r name; do failed+=("$preset ${name#*:}"); done <"$last"
    fi
    passed=$((passed + $(grep -cE ' Passed +[0-9.]+ sec' "$log" || :)))
    sed -n '/^The following tests did not run:/,/^$/p; /% tests passed/p; /^Total Test time/p' "$log"
}

# finish: prints the names of all tests that failed and the totals; exits 1 if a test failed
finish() {
    local name
    for name in "${failed[@]}"; do echo "FAILED: $name"; done
    echo "$passed passed, ${#failed[@]} failed"
    [ ${#failed[@]} -eq 0 ]
    exit
}

# The gate compiles GPU code to PTX only: errors show as well, and the compiler needs less time. Long tests read
# machine code, so that every other call compiles for all cards.
gate_cards=-DDT_CUDA_ARCHITECTURES=90-virtual
all_cards=-UDT_CUDA_ARCHITECTURES

usage() {
    echo "usage: tests/run.sh [--all | --failed | --kind KIND | OPTION OF CTEST...]" >&2
    exit 2
}
case ${1:-} in --all | --failed) [ $# -eq 1 ] || usage ;; --kind) [ $# -eq 2 ] || usage ;; esac

case ${1:-} in
--all)
    base/packages.sh build test long
    echo "== tests"
    configure test "$all_cards"
    build test
    set -m # the sanitizers' programs are built while tests wait, in a process group that ends with this script
    (
        renice -n 19 -p $BASHPID >/dev/null
        configure asan
        build asan tests_unit tests_ops tests_dist tests_fuzz
        configure tsan
        build tsan tests_threads
    ) &
    builder=$!
    set +m
    trap 'kill -- -$builder 2>/dev/null || :' EXIT
    run_tests test -j "$jobs"
    wait "$builder" || { echo "the sanitizers' build failed: build/asan.log, build/tsan.log" >&2; exit 1; }
    for sanitizer in asan tsan; do
        echo "== $sanitizer"
        run_tests "$sanitizer" -j "$(nproc)" # under a sanitizer all tests compute
    done
    ;;
--failed)
    for preset in test asan tsan; do
        [ -s "build/$preset/Testing/Temporary/LastTestsFailed.log" ] || continue
        echo "== $preset"
        configure "$preset" "$all_cards"
        build "$preset"
        names=$(sed 's/^[0-9]*://; s/[.]/\\&/g; s/.*/^&$/' "build/$preset/Testing/Temporary/LastTestsFailed.log" | paste -sd'|')
        run_tests "$preset" -j "$jobs" -R "$names"
    done
    ;;
--kind)
    base/packages.sh build test
    configure test "$gate_cards"
    chosen=$(tests/kind_tests.py build/test "$2") || exit
    read -ra targets <<<"${chosen%%$'\n'*}"
    build test "${targets[@]}"
    run_tests test -j "$jobs" -R "${chosen#*$'\n'}"
    ;;
-*)
    base/packages.sh build test long
    configure test "$all_cards"
    build test
    run_tests test -j "$jobs" "$@"
    ;;
'')
    base/packages.sh build test
    configure test "$gate_cards"
    build test tests_gate
    run_tests test -j "$jobs" -LE long
    ;;
*) usage ;;
esac
finish
