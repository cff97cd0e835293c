#!/usr/bin/env bash
# In bf16 and fp16 the strategies follow one process in fp32: over 50 steps each loss is within
# 0.5 % (bf16 has 8 bits: one rounding is up to 0.4 %, a loss is a mean of many), and within 0.1 %
# in fp16 (11 bits). Gradients that are sent in bf16 are rounded once more and stay within 0.5 %.
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
    check 5e-3 $kind-bf16 strategy.kind=$kind precision.kind=bf16
    check 1e-3 $kind-fp16 strategy.kind=$kind precision.kind=fp16
done
for shard in gradients optimizer; do
    check 5e-3 $shard-bf16 strategy.kind=fsdp strategy.shard=$shard precision.kind=bf16
done
for kind in ddp fsdp; do
    check 5e-3 $kind-sent strategy.kind=$kind strategy.reduce_dtype=bf16
done
