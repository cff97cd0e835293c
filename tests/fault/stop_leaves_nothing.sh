#!/usr/bin/env bash
# stop: with ranks that end, with ranks that ignore SIGTERM, with a grandchild that called setsid, with --now, and right
# after the launch.
. "$(dirname "$0")/lib.sh"
export FAKE_STEPS=100000

"$driver" launch good 2
await 20 has_step good 3
"$driver" stop good
end_is good stopped 4
is reason "$(get good reason)" "stopped by request"
is checkpoints "$(get good checkpoints)" 1

export FAULT_GRACE_MS=500 # no rank uses the grace period to save
FAKE_MODE=stubborn "$driver" launch stubborn 2
await 20 has_step stubborn 3
"$driver" stop stubborn
end_is stubborn stopped 4
like reason "$(get stubborn reason)" "stopped by request; it did not exit cleanly: rank * on localhost was killed by signal 9 (SIGKILL)"

# found by its environment, and as a descendant
FAKE_MODE=grandchild "$driver" launch grand 2
FAKE_MODE=grandchild FAKE_ESCAPE=1 "$driver" launch escaped 2
for run in grand escaped; do
    await 20 has_step $run 3
done
have_escaped() { [ "$(processes 'sleep 600' | wc -l)" -eq 4 ]; }
await 20 have_escaped
for run in grand escaped; do
    start=$(date +%s%N)
    "$driver" stop $run
    end_is $run stopped 4
    figure 6 "stop: ranks deaf to SIGTERM with grandchildren that called setsid ($run), grace 0.5 s" \
        "30 s" "$(seconds_since "$start")"
done
[ -z "$(processes 'sleep 600')" ] || fail "a grandchild is left"
figure 6 "... and so many processes are left" 0 "$(processes 'sleep 600\|fake_engine' | wc -l)"

FAULT_GRACE_MS=100000 FAKE_MODE=stubborn "$driver" launch now 2
await 20 has_step now 3
"$driver" kill now
end_is now stopped 4 # this stop does not wait for the grace period
is reason "$(get now reason)" "stopped by request (--now)"

"$driver" launch early 2
"$driver" stop early
end_is early stopped 4
await 10 nothing_left
