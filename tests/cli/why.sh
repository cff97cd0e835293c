#!/usr/bin/env bash
# Why a run is slow: each place of a step is slowed down on one rank (DTRUN_TEST_SLOW), and `status` and `show --why` name
# the rank and the place. The delays are sleeps of many times what a step takes, so a busy machine changes nothing.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25 DTRUN_KEEP_ENV=DTRUN_TEST_SLOW
make_tiny
slow() { # name place: starts a run whose rank 1 sleeps there
    DTRUN_TEST_SLOW="1 $2 0.4" expect 0 launch --detach "$work/tiny.yaml" --set name="$1" \
        --set schedule.steps=1000000 --set model.layers=3 --set evaluate.every=1000000 --set log=1 \
        --set checkpoint.every="${3:-1000000}"
}
finds() { # run cause place words
    "$dtrun" show "$1" --why --json >"$work/why" 2>/dev/null || return 1
    python3 - "$work/why" "$2" "$3" "$4" <<'PY'
import json, sys
o, cause, place, words = json.load(open(sys.argv[1])), *sys.argv[2:]
assert abs(sum(p["seconds"] for p in o["parts"]) / o["step_seconds"] - 1) < 0.03, o
assert all(f["evidence"] and f["text"] for f in o["findings"]), o
sys.exit(not any((f["cause"], f["rank"], f["place"]) == (cause, 1, place) and words in f["text"] and f["share"] > 0.5
                 for f in o["findings"]))
PY
}
says_so() { "$dtrun" status "$1" | grep -q "rank 1 on localhost arrives last"; }

slow backward backward.2
expect 2 show backward --why
says "has no judgement of its speed"
slow input input
slow save save 1
slow all_alike none # not a place: nothing is slowed down
within 90 finds backward sleep backward "in the backward pass, in block 2 of 3"
within 90 finds input input input "its input is slow"
within 90 finds save saving save "its disk or snapshot is slow"
within 60 says_so backward
expect 0 show backward --why
says "rank 1 on localhost arrives last" "evidence: it used a processor for" "waiting for other ranks" "at least"
expect 0 status backward --json
json "o['slow'][0]['rank'] == 1 and o['slow'][0]['place'] == 'backward'"

for run in backward input save; do "$dtrun" stop --now $run >/dev/null; done
judged() { "$dtrun" show all_alike --why >/dev/null 2>&1; }
within 60 judged
expect 0 show all_alike --why --json # whatever this machine is busy with, no rank sleeps
json "all(f['cause'] not in ('sleep', 'input', 'saving') for f in o['findings'])"
expect 0 stop --now all_alike
expect 0 show all_alike --why # the last judgement stays
expect 0 status all_alike --json
json "o['slow'] == []"
