#!/usr/bin/env bash
# kill -9 of a rank: the run fails with host, rank, signal and last lines; the other ranks are gone.
. "$(dirname "$0")/lib.sh"
FAKE_STEPS=100000 "$driver" launch one 3
await 20 has_step one 5
kill -9 "$(get one pids | sed -n 2p)"
start=$(date +%s)
end_is one failed 1
is reason "$(get one reason)" "rank 1 on localhost was killed by signal 9 (SIGKILL)"
await 10 nothing_left
[ $(($(date +%s) - start)) -lt 30 ] || fail "the other ranks took more than 30 s"
grep -q '"reason":"killed"' "$runs/one/attempt-1/node-0/journal.jsonl"
grep '"reason":"killed"' "$runs/one/attempt-1/node-0/journal.jsonl" | grep -q '"step [0-9]*"' ||
    fail "the last lines of the rank are not kept"

# its own error: the message of its `failed` event is the reason
FAKE_MODE=crash FAKE_RANK=1 FAKE_STEPS=100000 "$driver" launch two 2
end_is two failed 1
is reason "$(get two reason)" "rank 1 on localhost exited with code 1: no such corpus"
grep -q "the last words of rank 1" "$runs/two/logs/rank-1.log"
like "status" "$("$DTRUN_BIN/dtrun" status two)" "*last lines of rank 1:*the last words of rank 1*"

# the rank never sent `finished`
FAKE_MODE=silent FAKE_STEPS=2 "$driver" launch three 1
end_is three failed 1
like reason "$(get three reason)" "*before training was finished"
await 10 nothing_left
