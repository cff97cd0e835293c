#!/usr/bin/env bash
# A rank makes no step: this is noticed after failure.hang_seconds, the rank is named and killed, and the run restarts.
# A run that hangs repeatedly is given up.
. "$(dirname "$0")/lib.sh"
export FAULT_RESTARTS=3 FAULT_HANG_SECONDS=2
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.25 FAULT_HANG_SECONDS=1 # a heartbeat every half second
hung() { # run [kind]
    python3 - "$runs/$1/../../store.db" "$1" "${2:-hung}" <<'PY'
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT e.json FROM events e JOIN runs r USING (run) WHERE r.id = ? AND kind = ?", sys.argv[2:])
print("\n".join(json.loads(row[0])["message"] for row in rows))
PY
}

FAKE_STEPS=400 "$driver" launch stopped 2
await 20 has_step stopped 5
start=$(date +%s%N)
kill -STOP "$(get stopped pids | head -n 1)"
is_again() { [ "$(get stopped attempt)" = 2 ]; }
await 30 is_again
figure 8 "SIGSTOP of a rank, floor of $FAULT_HANG_SECONDS s (a program in the engine's place): the next attempt" "17 s" \
    "$(seconds_since "$start")"
end_is stopped finished 0
is points "$(get stopped points)" 400
like "what is said" "$(hung stopped)" "no step for * s while training: rank 0 on localhost is in state T (*"
await 10 nothing_left

FAKE_MODE=hang "$driver" launch ever 2
await 90 has_ended ever
end_is ever failed 1
is attempt "$(get ever attempt)" 4
figure 8 "a rank that hangs in every attempt: given up after so many restarts" 3 \
    "$(($(get ever attempt) - 1))"
# rank 1 of the stand-in waits for nobody, and ends
like reason "$(get ever reason)" "rank 1 on localhost ended with code 0 at *, before the others; then no step for * s while training: rank 0 on localhost waits in all_reduce*; given up after 3 restarts without a new checkpoint"
await 10 nothing_left

# an endless loop
FAULT_HANG_SECONDS=1 FAKE_MODE=spin FAKE_RANK=0 FAKE_ATTEMPTS=1 "$driver" launch loop 1
await 150 has_ended loop
end_is loop finished 0
is attempt "$(get loop attempt)" 2
like "what is said" "$(hung loop)" "no step for * s while training: rank 0 on localhost * and used * s of processor time without advancing"
await 10 nothing_left

# a step far longer than all before, while its engine reports progress
FAKE_MODE=slow FAKE_PIECES=40 "$driver" launch long 1
await 60 has_ended long
end_is long finished 0
is attempt "$(get long attempt)" 1
like "what is said" "$(hung long slow)" "no step for * s while training: slow, not hung: rank 0 on localhost *"

# a supervisor that is halted for longer than any step may take then reads the events that waited for it
FAULT_HANG_SECONDS=2 FAKE_STEPS=800 "$driver" launch halted 1
await 20 has_step halted 5
supervisor=$(processes 'supervise halted')
kill -STOP "$supervisor"
sleep 4
kill -CONT "$supervisor"
end_is halted finished 0
is attempt "$(get halted attempt)" 1
is "what is said" "$(hung halted)$(hung halted slow)" ""

# a rank that is slow from the beginning, and one that stopped for a moment, do not hang
FAULT_HANG_SECONDS=1 FAKE_STEPS=8 FAKE_STEP_MS=500 "$driver" launch slow 1
await 20 has_step slow 3
rank=$(get slow pids)
kill -STOP "$rank"
sleep 1.2
kill -CONT "$rank"
end_is slow finished 0
is attempt "$(get slow attempt)" 1
await 10 nothing_left
