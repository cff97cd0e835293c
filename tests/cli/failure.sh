#!/usr/bin/env bash
# A rank that is killed, and no restart allowed: the run fails, and says which rank, how, and what it
# said last.
. "$(dirname "$0")/lib.sh"
make_tiny

"$dtrun" launch --wait "$work/tiny.yaml" --set schedule.steps=1000000000 \
    --set failure.max_restarts=0 >"$work/followed" 2>&1 &
follower=$!
within 20 step_reached last 5
expect 0 status last --json
run=$(field "o['run']")
kill -KILL "$(field "o['nodes'][0]['ranks'][1]['pid']")"
wait $follower
code=$?
subject="dtrun launch --wait, a rank killed"
cp "$work/followed" "$work/out"
[ $code -eq 1 ] || fail "exit code $code, wanted 1"
says "failed at step" "rank 1 on localhost was killed by signal 9 (SIGKILL)" "dtrun logs $run"
expect 0 status "$run" --json
json "o['state'] == 'failed'" "o['exit_code'] == 1" "'rank 1' in o['reason']" \
    "o['nodes'][0]['ranks'][1]['exit_signal'] == 9"
for pid in $(field "' '.join(str(r['pid']) for r in o['nodes'][0]['ranks'])"); do
    ! kill -0 "$pid" 2>/dev/null || fail "process $pid is still there"
done
expect 1 status --watch "$run" # whose end came before
expect 1 status --watch "$run" --json
expect 0 show "$run"
says "was killed by signal 9"
expect 0 list --state failed --json
json "o['runs'][0]['run'] == '$run'"
