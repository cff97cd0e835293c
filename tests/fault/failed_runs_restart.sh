#!/usr/bin/env bash
# A failed run is restarted: how often, after which failures, and no restart is lost or doubled.
#
#   failed_runs_restart.sh [RUN...]   kills the supervisor while attempts of these runs end and begin
#                                     (default: one run)
. "$(dirname "$0")/lib.sh"
export FAULT_RESTARTS=3

# once: a rank is killed, and the second attempt finishes the run
FAKE_STEPS=60 FAKE_MODE=abort FAKE_STEP=20 FAKE_RANK=1 FAKE_ATTEMPTS=1 "$driver" launch once 2
end_is once finished 0
is attempt "$(get once attempt)" 2
is points "$(get once points)" 60
is step "$(get once step)" 60
why="*attempt 2 continues from step 0; attempt 1 failed: rank 1 on localhost was killed by signal 6*"
like "what status says of the restart" "$("$DTRUN_BIN/dtrun" status once)" "$why"
like "what logs say of the restart" "$("$DTRUN_BIN/dtrun" logs once)" "$why"
like "what show says of the restart" "$("$DTRUN_BIN/dtrun" show once)" "*1  failed*signal 6 (SIGABRT)*"
await 10 nothing_left

# again and again without a new checkpoint: the run is given up
FAKE_MODE=abort FAKE_RANK=1 FAKE_STEPS=100000 "$driver" launch never 2
end_is never failed 1
is attempt "$(get never attempt)" 4
is reason "$(get never reason)" "rank 1 on localhost was killed by signal 6 (SIGABRT); given up after 3 restarts without a new checkpoint"
await 10 nothing_left

# what would fail again is not retried: a recipe error, a divergence, a stop
FAKE_MODE=crash FAKE_STATUS=recipe "$driver" launch wrong 2
end_is wrong failed 1
is attempt "$(get wrong attempt)" 1
FAKE_STEPS=100000 "$driver" launch stopped 2
await 20 has_step stopped 3
"$driver" stop stopped
end_is stopped stopped 4
is attempt "$(get stopped attempt)" 1
await 10 nothing_left

# kill -9 of the supervisor while attempts end and begin: the number of attempts is the same as without
export FAKE_STEPS=60 FAKE_MODE=abort FAKE_STEP=10 FAKE_ATTEMPTS=3
[ $# -gt 0 ] || set -- one
for run; do
    "$driver" launch $run 2
    kills=0
    while ! has_ended $run; do
        sleep "0.$(printf %03d $((RANDOM % 150)))"
        for pid in $(processes "supervise $run"); do
            [ $kills -lt 50 ] || break # a slow machine would never finish
            kill -9 "$pid" 2>/dev/null && kills=$((kills + 1))
        done
        "$driver" ensure $run
    done
    end_is $run finished 0
    is attempt "$(get $run attempt)" 4
    is points "$(get $run points)" 60
    echo "run $run: $kills kills of the supervisor, $(get $run attempt) attempts"
done
await 10 nothing_left
