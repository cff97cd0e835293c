#!/usr/bin/env bash
# stop starts a supervisor again, and the run ends as usual.
. "$(dirname "$0")/lib.sh"
FAKE_STEPS=100000 "$driver" launch one 2
await 20 has_step one 3
kill -9 $(processes "supervise one")
is state "$(get one state)" running
"$driver" stop one
end_is one stopped 4

# and the supervisor is killed again while it stops
FAKE_MODE=stubborn FAKE_STEPS=100000 "$driver" launch two 2
await 20 has_step two 3
pid=$(processes "supervise two")
"$driver" stop two
kill -9 $pid # within the grace period
is state "$(get two state)" stopping
"$driver" ensure two
end_is two stopped 4
await 10 nothing_left
