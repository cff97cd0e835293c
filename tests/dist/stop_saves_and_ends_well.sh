#!/usr/bin/env bash
# SIGTERM to only one rank stops all after the same step, with a checkpoint and exit code 0.
. "$(dirname "$0")/lib.sh"
make_text 40
plan stop ranks=2 schedule.steps=100000
ranks 2 stop --signal 1:15:5 || fail "exit $?"
for rank in 0 1; do
    grep -q '"event":"finished".*"reason":"stopped"' "$work/stop.$rank" ||
        fail "rank $rank was not stopped"
done
[ "$(grep -ho '"finished","step":[0-9]*' "$work"/stop.[01] | sort -u | wc -l)" = 1 ] ||
    fail "the ranks stopped after different steps"
step=$(grep -o '"finished","step":[0-9]*' "$work/stop.0" | grep -o '[0-9]*$')
[ -e "$work/stop.ck/$(printf 'step-%08d' "$step")/complete" ] || fail "no checkpoint of step $step"
