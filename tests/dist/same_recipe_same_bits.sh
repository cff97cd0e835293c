#!/usr/bin/env bash
# The same recipe on the same number of ranks gives the same bits in every run, with every strategy.
. "$(dirname "$0")/lib.sh"
make_text 40
check() { # world name FIELD=VALUE...
    local world=$1 name=$2-$1
    shift 2
    for run in a b; do
        train "$world" "$name-$run" model.dropout=0.1 batch.accumulate=2 "$@"
    done
    same_metric loss "$name-a" "$name-b" 0
    same_bits "$name-a" "$name-b" 20
}
for world in 1 2 3; do
    check $world ddp
    check $world fsdp strategy.kind=fsdp
done
check 3 dp strategy.kind=dp
check 3 kept strategy.kind=fsdp strategy.reshard_after_forward=false
check 3 gradients strategy.kind=fsdp strategy.shard=gradients precision.kind=bf16
check 3 optimizer strategy.kind=fsdp strategy.shard=optimizer precision.kind=fp16
check 3 sent strategy.kind=fsdp strategy.reduce_dtype=bf16
