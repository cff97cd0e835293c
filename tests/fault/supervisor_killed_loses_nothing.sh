#!/usr/bin/env bash
# kill -9 of the supervisor at random moments, and another one starts: every point is there once.
#
#   supervisor_killed_loses_nothing.sh [RUN...]   (default: one run)
. "$(dirname "$0")/lib.sh"
steps=300
[ $# -gt 0 ] || set -- one
for run; do
    FAKE_UNTIL=$XDG_STATE_HOME/$run FAKE_STEPS=$steps FAKE_STEP_MS=12 "$driver" launch $run 2
    kills=0
    while ! has_ended $run; do
        sleep "0.$(printf %03d $((RANDOM % 400)))"
        for pid in $(processes "supervise $run"); do
            kill -9 "$pid" 2>/dev/null && kills=$((kills + 1))
        done
        [ $kills -lt 5 ] || touch "$XDG_STATE_HOME/$run" # the ranks make their last step
        "$driver" ensure $run
        [ $kills -lt 40 ] || break # a busy machine would never finish
    done
    end_is $run finished 0
    is points "$(get $run points)" $steps
    is step "$(get $run step)" $steps
    is attempt "$(get $run attempt)" 1
    is checkpoints "$(get $run checkpoints)" 1
    for rank in 0 1; do
        lines=$(grep -cE '^[^ ]+Z step [0-9]+$' "$runs/$run/logs/rank-$rank.log")
        is "lines of rank $rank" "$lines" $steps
        is "different lines of rank $rank" \
            "$(cut -d' ' -f2- "$runs/$run/logs/rank-$rank.log" | sort -u | grep -c '^step ')" $steps
    done
    [ $kills -ge 2 ] || fail "the supervisor was killed $kills times only"
    figure 4 "supervisor killed at $kills random moments of a run: points lost or doubled" 0 \
        "$(($(get $run points) - steps))"
done
await 10 nothing_left
