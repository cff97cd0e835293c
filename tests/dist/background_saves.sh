#!/usr/bin/env bash
# Checkpoints written during training contain the state of their steps: a run that resumes from any of them ends with
# the bits of the uninterrupted one, fp16's loss scale included. The checkpoints that the recipe says are kept.
. "$(dirname "$0")/lib.sh"
make_text 12
saved() { # name: the steps whose checkpoints exist
    local directory
    for directory in "$work/$1.ck"/step-*; do
        [ -e "$directory/complete" ] || fail "$directory has no marker"
        echo -n "$((10#${directory##*step-})) "
    done
}
check() { # name ranks precision
    local common=(schedule.steps=40 model.dropout=0.1 batch.accumulate=2 precision.kind="$3"
                  precision.loss_scale=4294967296 precision.scale_window=4 data.tail=drop)
    train "$2" "$1" "${common[@]}" checkpoint.every=7 checkpoint.keep=0
    [ "$(saved "$1")" = "7 14 21 28 35 40 " ] || fail "$1: there are checkpoints of $(saved "$1")"
    [ "$(grep -c '"event":"checkpoint",' "$work/$1.0")" = 6 ] || fail "$1: not six events"
    for step in 14 28; do
        plan "$1-$step" "ranks=$2" "${common[@]}" "resume=$work/$1.ck/step-000000$step"
        ranks "$2" "$1-$step" || fail "$1 does not continue from step $step"
        same_metric loss "$1" "$1-$step" 0
        same_bits "$1" "$1-$step" 40
    done
}
check one 1 fp32
check two 2 bf16
check half 2 fp16
grep -q '"skipped_steps":[1-9]' "$work/half.0" || fail "no step of fp16 was skipped: nothing tested"

# Keeps every epoch, the best, and the newest. These 60 steps are about 5 epochs of the text.
train 1 kept schedule.steps=60 batch.sequences=8 batch.accumulate=4 checkpoint.every=8 \
    checkpoint.keep=2 checkpoint.every_epoch=1 checkpoint.keep_epochs=1 evaluate.every=5 \
    checkpoint.keep_best=2
best=$(grep -o '"step":[0-9]*,"values":{"valid_loss":[0-9.]*' "$work/kept.0" | tr ':,' '  ' |
    awk '{ if (low == "" || $NF + 0 <= low) { low = $NF + 0; before = at; at = $2 } }
         END { print before, at }')
count=0
for step in $(saved kept); do count=$((count + 1)); done
[ $count -le 5 ] || fail "$count checkpoints stand: $(saved kept)"
for step in $best 56 60; do
    [[ " $(saved kept)" == *" $step "* ]] || fail "no checkpoint of step $step: $(saved kept)"
done
grep -l '"kept_for":\[[^]]*"epoch"' "$work/kept.ck"/*/index.json > /dev/null || fail "none of an epoch"
