#!/usr/bin/env bash
# In bf16 and fp16 the strategies follow one process in fp32, loss by loss over 50 steps: within 0.2 %
# in bf16 (8 bits; 0.03 % seen) and 0.02 % in fp16 (11 bits; 0.003 % seen), as within 0.02 % where
# gradients alone are rounded, to be sent in bf16 (0.002 % seen). One rounding of bf16 is up to
# 0.4 %; a loss is the mean of many, and moves little with each.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(schedule.steps=50)
train 1 one "${common[@]}" batch.sequences=8

check() { # bound name FIELD=VALUE...
    local bound=$1 name=$2
    shift 2
    train 2 "$name" "${common[@]}" "$@"
    same_metric loss one "$name" "$bound"
}

for kind in dp ddp fsdp; do
    check 2e-3 $kind-bf16 strategy.kind=$kind precision.kind=bf16
    check 2e-4 $kind-fp16 strategy.kind=$kind precision.kind=fp16
done
for shard in gradients optimizer; do
    check 2e-3 $shard-bf16 strategy.kind=fsdp strategy.shard=$shard precision.kind=bf16
done
for kind in ddp fsdp; do
    check 2e-4 $kind-sent strategy.kind=$kind strategy.reduce_dtype=bf16
done
