#!/usr/bin/env bash
# A run without its supervisor gets one again from whatever command meets it.
. "$(dirname "$0")/lib.sh"
FAKE_STEPS=100000 "$driver" launch one 2
await 20 has_step one 3
# What the commands start is `dtrun supervise`; the first was fault_driver's.
supervisor() { processes "supervise one"; }
is_supervised() { [ -n "$(supervisor)" ]; }
for command in "supervise --all-active" "list" "status one" "show one" "logs one" "metrics one" "checkpoints one"; do
    pid=$(supervisor)
    kill -9 $pid
    await 10 is_dead $pid # and has given back its lock
    "$DTRUN_BIN/dtrun" $command >/dev/null || fail "dtrun $command: exit $?"
    await 10 is_supervised
done
step=$(get one step)
await 20 has_step one $((step + 5))
is attempt "$(get one attempt)" 1
"$DTRUN_BIN/dtrun" stop one >/dev/null
end_is one stopped 4
await 10 nothing_left
