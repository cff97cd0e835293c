#!/usr/bin/env bash
# A run that changes strategy and number of ranks at each checkpoint, ddp 2, fsdp 3, dp 2, one
# process, goes on like the one that does not: losses within 1e-6.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(batch.accumulate=2 batch.sequences=6 schedule.warmup_steps=5 schedule.period_steps=35)
train 1 one "${common[@]}" batch.sequences=12 schedule.steps=40
leg() { # name ranks last-step FIELD=VALUE...
    local name=$1 ranks=$2 last=$3
    shift 3
    train "$ranks" "$name" "${common[@]}" batch.sequences=$((12 / ranks)) schedule.steps="$last" "$@"
    same_metric loss one "$name" 1e-6
    at="$work/$name.ck/$(printf 'step-%08d' "$last")"
}
leg ddp 2 10
leg fsdp 3 20 strategy.kind=fsdp "resume=$at"
leg dp 2 30 strategy.kind=dp "resume=$at"
leg gradients 4 35 strategy.kind=fsdp strategy.shard=gradients "resume=$at"
leg last 1 40 "resume=$at"
