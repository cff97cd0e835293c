#!/usr/bin/env bash
# The length of a run: steps, epochs, a time, or until it is stopped, also before its first step and during an
# evaluation.
. "$(dirname "$0")/lib.sh"
make_text 12
ended() { # name reason
    grep -q "\"event\":\"finished\",.*\"reason\":\"$2\"" "$work/$1.0" ||
        fail "$1 ended as $(tail -n 1 "$work/$1.0"), not by $2"
}
steps_of() { grep -o '"event":"finished","step":[0-9]*' "$work/$1.0" | grep -o '[0-9]*$'; }

# Twice the samples in a step, half the steps; an epoch can end within a step.
train 1 epochs schedule.steps=0 schedule.epochs=2
train 2 epochs-2 schedule.steps=0 schedule.epochs=2
ended epochs steps
one=$(steps_of epochs) two=$(steps_of epochs-2)
[ $((2 * two - one)) -ge 0 ] && [ $((2 * two - one)) -le 1 ] || fail "$one steps, and $two of two ranks"
train 1 first schedule.steps=100000 schedule.epochs=2
[ "$(steps_of first)" = "$one" ] || fail "epochs and steps: $(steps_of first) steps, not $one"
same_metric loss epochs first 0
train 1 lower schedule.steps=7 schedule.epochs=2
[ "$(steps_of lower)" = 7 ] || fail "seven steps are over before two epochs are"
# The rest of the epochs on two ranks.
plan half ranks=1 schedule.steps=0 schedule.epochs=2 checkpoint.every=$((one / 2)) checkpoint.keep=0
ranks 1 half || fail "exit $?"
plan rest ranks=2 schedule.steps=0 schedule.epochs=2 \
    "resume=$work/half.ck/$(printf 'step-%08d' $((one / 2)))"
ranks 2 rest || fail "exit $?"
rest=$(($(steps_of rest) - one / 2))
[ $((2 * rest)) -ge $((one - one / 2)) ] && [ $((2 * rest)) -le $((one - one / 2 + 1)) ] ||
    fail "$rest steps of two ranks for $((one - one / 2)) of one"

train 2 limit schedule.steps=1000000 time_limit=1
ended limit time_limit
[ -e "$work/limit.ck/$(printf 'step-%08d' "$(steps_of limit)")/complete" ] ||
    fail "no checkpoint at the end of the time"

# Stopped in the middle of an evaluation that would take minutes.
plan evaluation ranks=2 schedule.steps=100000 evaluate.every=2 evaluate.sequences=0 \
    "data.validation=[\"$work/long.txt\"]"
for _ in $(seq 400); do cat "$work/text.txt"; done > "$work/long.txt"
ranks 2 evaluation --signal -1:15:2 || fail "exit $?"
ended evaluation stopped
[ -e "$work/evaluation.ck/step-00000002/complete" ] || fail "no checkpoint of step 2"
grep -q valid_loss.:[0-9] "$work/evaluation.0" && fail "a part of the text gave a validation loss"
# The evaluation is made later: the resumed run has every validation loss of a run that was not stopped.
more=(ranks=2 schedule.steps=4 evaluate.every=2 evaluate.sequences=8 "data.validation=[\"$work/text.txt\"]")
plan whole "${more[@]}"
ranks 2 whole || fail "exit $?"
cp -r "$work/evaluation.ck" "$work/made-up.ck"
plan made-up "${more[@]}" "resume=$work/made-up.ck/step-00000002"
ranks 2 made-up || fail "exit $?"
same_metric valid_loss whole made-up 0
grep -q '"step":2,"values":{"valid_loss"' "$work/made-up.0" || fail "step 2 was not evaluated"

# Before the first step: nothing is saved, and the run ends well. The signal arrives before the start.
plan early ranks=1 schedule.steps=100000
env --block-signal=TERM sh -c 'kill -TERM $$; exec "$0" train --plan "$1"' \
    "$bin/dtrun-engine" "$work/early.json" > "$work/early.0" 2> "$work/early.0.err" ||
    fail "stopped before its first step: exit $?"
ended early stopped
[ ! -e "$work/early.ck" ] || fail "a run without a step has a checkpoint"
