#!/usr/bin/env bash
# Prints the fault tests as a table: what was done, the limit, and what was measured.
#
#   DTRUN_BIN=build/dev/bin tests/fault/ten.sh        everything, about 10 minutes
#   ... ten.sh 3 8                                     only what has figures for these numbers
#
# Exit code 1 if a test failed or a figure is over its limit. On a busy machine figures are late for other reasons: then
# look at the measured values.
set -uo pipefail
cd "$(dirname "$0")"
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
DTRUN_BIN=$(cd "${OLDPWD:-.}" && cd "$DTRUN_BIN" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DTRUN_BIN FAULT_FULL=1 FAULT_FIGURES=$work/figures DTRUN_KILLS=100
: >"$FAULT_FIGURES"
bad=0

# numbers, and the test that measures them
tests='1,2,4,5,7,8 on_hosts.sh
3 node_vanishes.sh
4 supervisor_killed_loses_nothing.sh
6 stop_leaves_nothing.sh
6 agent_device_memory.py
8 hang_is_seen.sh
9 saves_are_whole.sh'

while read -r numbers test; do
    wanted=${#}
    for number; do [[ ,$numbers, = *,$number,* ]] && wanted=0; done
    [ "$wanted" -eq 0 ] || continue
    echo "... $test" >&2
    runner=bash
    [[ $test = *.sh ]] || runner=python3
    $runner "$test" >"$work/output" 2>&1 </dev/null
    case $? in
    0) ;;
    77) printf '%s\t%s\t-\t-\tskipped\n' "${numbers%%,*}" "$test: $(tail -n 1 "$work/output")" >>"$FAULT_FIGURES" ;;
    *)
        cat "$work/output" >&2
        printf '%s\t%s\t-\t-\tFAILED\n' "${numbers%%,*}" "$test" >>"$FAULT_FIGURES"
        ;;
    esac
done <<<"$tests"

sort -s -n -k1,1 "$FAULT_FIGURES" | awk -F'\t' '
    BEGIN { row = "%-3s %-82s %7s %9s  %s\n"; printf row, "no", "what was done", "limit", "seen", "" }
    { verdict = $5 != "" ? $5 : $3 != "-" && $4 + 0 > $3 + 0 ? "LATE" : "ok"
      printf row, $1, $2, $3, $4, verdict
      bad += verdict == "LATE" || verdict == "FAILED" }
    END { exit bad > 0 }' || bad=1
exit $bad
