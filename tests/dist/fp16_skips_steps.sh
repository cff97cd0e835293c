#!/usr/bin/env bash
# fp16 starts from a loss scale that overflows: steps are skipped until it fits. Skipped steps count neither as steps
# nor for the schedule: every step exists once, with the learning rate that it has in fp32. Below the smallest scale the
# run fails, on all ranks, with the reason.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(schedule.steps=20 precision.loss_scale=4294967296 precision.scale_window=6)
train 1 fp32 schedule.steps=20 batch.sequences=8
check() { # name ranks FIELD=VALUE...
    local kind=$1
    train "$2" "$kind" "${common[@]}" precision.kind=fp16 "${@:3}"
    grep -q '"skipped_steps":[1-9]' "$work/$kind.0" || fail "$kind: no step was skipped"
    [ "$(grep -c '"learning_rate"' "$work/$kind.0")" = 20 ] || fail "$kind: not each step once"
    same_metric learning_rate fp32 $kind 0
    same_metric loss_scale dp $kind 0
    same_metric skipped_steps dp $kind 0
}
check dp 2 strategy.kind=dp
check ddp 2 strategy.kind=ddp
check fsdp 2 strategy.kind=fsdp
check tensor 4 strategy.kind=ddp tensor=2 # an overflow in one part of a layer counts for all ranks
# The window of steps without overflow: the scale doubles after it, and halves if that overflows.
scales=$(grep -o '"loss_scale":[0-9.]*' "$work/ddp.0" | cut -d: -f2 | uniq | wc -l)
[ "$scales" -ge 3 ] || fail "the scale never moved: $scales values"

for kind in 'ddp tensor=1' 'fsdp tensor=1' 'ddp tensor=2'; do
    # shellcheck disable=SC2086 # two words
    plan floor ranks=2 "${common[@]}" precision.kind=fp16 precision.min_loss_scale=2147483648 strategy.kind=$kind
    code=0
    ranks 2 floor || code=$?
    [ $code = 1 ] || fail "$kind below the floor: exit $code"
    for rank in 0 1; do
        grep -q '"event":"failed","status":"recipe","message":"the loss scale has fallen to' \
            "$work/floor.$rank" || fail "$kind, rank $rank: $(tail -n 1 "$work/floor.$rank")"
    done
    grep -q '"learning_rate"' "$work/floor.0" && fail "$kind: a step was done below the floor"
done
exit 0
