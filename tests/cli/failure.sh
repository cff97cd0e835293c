#!/usr/bin/env bash
# A rank is killed, and no restart is allowed: the run fails, and reports which rank, how it died, and its last lines.
. "$(dirname "$0")/lib.sh"
make_tiny

"$dtrun" launch --wait "$work/tiny.yaml" --set schedule.steps=1000000000 \
    --set failure.max_restarts=0 >"$work/followed" 2>&1 &
follower=$!
within 60 step_reached last 5
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
expect 1 status --watch "$run" # the run that ended first
expect 1 status --watch "$run" --json
expect 0 show "$run"
says "was killed by signal 9"
expect 0 list --state failed --json
json "o['runs'][0]['run'] == '$run'"

# The run ended while its node could not be asked. The next command that sees that nothing is left there (doctor, stop,
# launch) updates the reason; it stays unchanged while processes of the run exist there.
doubt() {
    python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
with db:
    db.execute("UPDATE attempts SET exit_code = 5, reason = 'rank 1 was killed; cannot verify that nothing is left: '"
               " || 'node localhost is gone'")
    db.execute("UPDATE nodes SET state = 'lost'")
PY
    expect 0 status "$run" --json
    json "o['exit_code'] == 5" "'cannot verify' in o['reason']"
}
known() {
    local said=$subject
    expect 0 status "$run" --json
    subject="$said, then status"
    json "o['exit_code'] == 1" "o['reason'] == 'rank 1 was killed; nothing is left on its nodes (verified later)'" \
        "o['nodes'][0]['state'] == 'released'"
}
doubt
DTRUN_RUN_ID=$run DTRUN_ATTEMPT=1 DTRUN_NODE_DIR=$work/state/dtrun/runs/$run/attempt-1/node-0 sleep 1000 &
stray=$!
is_stray() { grep -qzxF "DTRUN_RUN_ID=$run" "/proc/$stray/environ"; }
within 60 is_stray # as soon as it is sleep, and no longer this shell
expect 0 doctor
expect 0 status "$run" --json
json "o['exit_code'] == 5"
kill $stray
wait $stray 2>/dev/null
expect 0 doctor
known
doubt
expect 0 stop "$run"
says "nothing is left on its nodes"
known
doubt
expect 0 launch --wait "$work/tiny.yaml" --set name=other --set schedule.steps=10
known
