#!/usr/bin/env bash
# Two runs at once: stopping one costs the other no step; a run cannot have two supervisors.
. "$(dirname "$0")/lib.sh"
FAKE_STEPS=100000 "$driver" launch one 2
FAKE_STEPS=100000 "$driver" launch two 2
await 20 has_step one 3
await 20 has_step two 3
"$driver" stop one
end_is one stopped 4
state_is two running || fail "the other run is $(get two state)"
if "$driver" supervise two 2>"$XDG_STATE_HOME/second"; then fail "a second supervisor ran"; fi
grep -q "is held by another process" "$XDG_STATE_HOME/second"
step=$(get two step)
await 20 has_step two $((step + 20))
"$driver" stop two
end_is two stopped 4
is attempt "$(get two attempt)" 1
is points "$(get two points)" "$(get two step)"
await 10 nothing_left
