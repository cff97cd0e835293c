#!/usr/bin/env bash
# The supervisor is paused, or the run store is held by another process, for longer than any limit of silence, over real
# sshd: the ranks continue, no node is lost, nothing restarts, and every step is there once. FAULT_FULL=1: the
# supervisor is paused twice.
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.5 # a node without a sign of life is lost after 8 s
. "$(dirname "$0")/hosts.sh"
seconds=$(scaled 20) times=$((1 + ${FAULT_FULL:-0})) held=$(scaled 24)

launch golden
await 120 past golden 600
"$dtrun" stop golden >/dev/null
whole golden

undisturbed() { # run
    is "attempt of $1 ($(value "$1" "o['reason']"))" "$(value "$1" "o['attempt']")" 1
    is "state of $1" "$(value "$1" "o['state']")" running
    ! grep -q 'is gone\|replacing its agent\|given up' "$state/dtrun/runs/$id/supervisor.log" ||
        fail "a node of $1 was given up: $(grep 'is gone\|replacing its agent\|given up' "$state/dtrun/runs/$id/supervisor.log")"
}
supervisor() { there "$id" 'dtrun supervise' | head -n 1; }

launch paused
await 120 past paused 50
for round in $(seq $times); do
    pid=$(supervisor)
    kill -STOP "$pid"
    sleep $seconds
    kill -CONT "$pid"
    step=$(value paused "o['step']")
    await 60 past paused $((step + 50))
    undisturbed paused
done

# Another process holds the store with a long write
hold() {
    python3 - "$state/dtrun/store.db" "$1" <<'PY'
import sqlite3, sys, time
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
store.execute('BEGIN IMMEDIATE')
time.sleep(float(sys.argv[2]))
store.execute('COMMIT')
PY
}
hold $held
step=$(value paused "o['step']")
await 60 past paused $((step + 50))
undisturbed paused

# ... and longer than a process waits that opens it: a supervisor that starts meanwhile stays
hold 40 &
holding=$!
sleep 1
kill -KILL "$(supervisor)"
"$dtrun" status paused >/dev/null || fail "status while the store is held: exit $?"
wait $holding
[ -n "$(supervisor)" ] || fail "nobody supervises it after the store was held: $(tail -n 3 "$state/dtrun/runs/$id/supervisor.log")"
step=$(value paused "o['step']")
await 60 past paused $((step + 50))
undisturbed paused

# ... and a stop is received while the store is held
hold $held &
holding=$!
sleep 1
"$dtrun" stop paused >/dev/null || fail "stop while the store is held: exit $?"
wait $holding
is "state of paused ($(value paused "o['reason']"))" "$(value paused "o['state']")" stopped
is "exit code of paused" "$(value paused "o['exit_code']")" 4
await 20 none_there "$id"
whole paused
