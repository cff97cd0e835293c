#!/usr/bin/env bash
# kill -9 of the agent: no rank outlives it, and the run fails with the reason.
. "$(dirname "$0")/lib.sh"
FAKE_MODE=grandchild FAKE_STEPS=100000 "$driver" launch one 2
await 20 has_step one 3
kill -9 $(processes "dtrun-agent serve")
end_is one failed 3
like reason "$(get one reason)" "rank * on localhost was stopped because the dtrun agent on localhost died"
await 10 nothing_left

# an agent that only pauses costs nothing
FAKE_UNTIL=$XDG_STATE_HOME/two FAKE_STEPS=200 FAKE_STEP_MS=10 "$driver" launch two 2
await 20 has_step two 3
agent=$(processes "dtrun-agent serve .*/two/")
kill -STOP "$agent"
sleep 1
kill -CONT "$agent"
touch "$XDG_STATE_HOME/two"
end_is two finished 0
is points "$(get two points)" 200
await 10 nothing_left

# an agent that hangs for good is replaced, and its ranks end
export DTRUN_TEST_TIMES=0.25 # an agent that is silent for 5 s during a stop counts as hung
FAKE_MODE=stubborn FAKE_STEPS=100000 "$driver" launch three 2
await 20 has_step three 3
kill -STOP "$(processes "dtrun-agent serve .*/three/")"
"$driver" stop three
await 60 has_ended three
end_is three failed 3
like reason "$(get three reason)" "rank * on localhost was stopped because the dtrun agent on localhost died"
await 10 nothing_left
