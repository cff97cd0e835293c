#!/usr/bin/env bash
# processors: runs the numeric tests (label numeric, tests/CMakeLists.txt) as other processors would run them: under
# every instruction set of dtrun (DTRUN_CPU_ISA), crossed with those of oneDNN (ONEDNN_MAX_CPU_ISA) and with one and
# two threads. Settings that this processor lacks are left out.
#
#   tests/processors.sh                every numeric test that is not long
#   tests/processors.sh REGEX          the numeric tests whose name matches, long ones too
#   DTRUN_BUILD=build/dev tests/processors.sh     another build than build/test, which must exist
#
# ISAS, ONEDNN_ISAS and THREADS, each a list, replace the values of one axis. Prints one line for each test that fails
# under a setting, and the totals; exits 1 if any test failed. The output of ctest is in $DTRUN_BUILD/processors.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=${DTRUN_BUILD:-build/test}
logs=$build/processors
[ -x "$build/bin/test_ops" ] || { echo "no tests in '$build': build it first, or set DTRUN_BUILD" >&2; exit 2; }
mkdir -p "$logs"
export OMP_WAIT_POLICY=passive # threads that wait sleep, as in the presets (README.md)
select=(-L '^numeric$')
if [ $# -gt 0 ]; then select+=(-R "$1"); else select+=(-LE '^long$'); fi

has() { grep -qw -- "$1" /proc/cpuinfo; }
isas() { # test_ops exits 77 under a set that this processor lacks
    local isa status
    for isa in x86-64 avx2 avx512 avx512_bf16; do
        status=0
        DTRUN_CPU_ISA=$isa "$build/bin/test_ops" 'row_lengths_in_fp32*' >/dev/null 2>&1 || status=$?
        [ $status -eq 77 ] || echo "$isa"
    done
}
onednn_isas() { # oneDNN takes the best set up to the named one: a set beyond the processor's would repeat another
    if has avx2; then echo AVX2; else echo SSE41; fi
    has avx512bw && has avx512dq && has avx512vl && echo AVX512_CORE
    has avx512_bf16 && echo AVX512_CORE_BF16
    has amx_bf16 && echo AVX512_CORE_AMX
}

passed=0 failed=0
for isa in ${ISAS:-$(isas)}; do
    for onednn in ${ONEDNN_ISAS:-$(onednn_isas)}; do
        for threads in ${THREADS:-1 2}; do
            setting=(DTRUN_CPU_ISA="$isa" ONEDNN_MAX_CPU_ISA="$onednn" OMP_NUM_THREADS="$threads")
            log=$logs/$isa-$onednn-$threads.log
            env "${setting[@]}" ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)" \
                "${select[@]}" >"$log" 2>&1
            # "12/34 Test #5: unit.model_pass ....   Passed    0.10 sec"
            results=$(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) [. ]*(\*\*\*)?([A-Za-z]+).*/\1 \3/p' "$log")
            [ -n "$results" ] || { tail -n 5 "$log"; exit 2; }
            passed=$((passed + $(grep -c ' Passed$' <<<"$results")))
            while read -r name; do
                [ -n "$name" ] || continue
                echo "$name: ${setting[*]}"
                failed=$((failed + 1))
            done < <(grep -vE ' (Passed|Skipped)$' <<<"$results" | cut -d' ' -f1)
        done
    done
done
[ $failed -eq 0 ] || echo "output: $logs"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
