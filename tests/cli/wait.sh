#!/usr/bin/env bash
# A script waits until a run has reached a condition.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=1000000000 --set evaluate.every=50 \
    --set checkpoint.every=100000000
run=$(cat "$work/out")
expect 0 wait "$run" --until running --json
json "o['met'] == 'running'" "o['state'] == 'running'"
expect 0 wait "$run" --until step=30 --json
json "o['step'] >= 30"
expect 0 wait "$run" -u 'loss>1e9' -u 'valid_loss<100' --limit 100 --json
json "o['met'] == 'valid_loss<100'"
expect 124 wait "$run" --until 'loss<0' --limit 0.5
says "time limit reached: run '$run' is running"
"$dtrun" wait "$run" --until 'loss<0' >"$work/waited" 2>&1 &
waiting=$!
expect 0 stop "$run"
wait $waiting
[ $? -eq 1 ] || fail "whoever waited in vain was told otherwise"
grep -q "ended before the condition was met: stopped" "$work/waited" || fail "does not say why: $(cat "$work/waited")"
expect 4 wait "$run"
expect 0 wait "$run" --until stopped
expect 0 wait "$run" --until 'loss<100' # a condition in its past
expect 2 wait "$run" --until soon
one_line
expect 2 wait "$run" --until state=done
says "'done' is not a state"
expect 2 wait nosuch
