#!/usr/bin/env bash
# An encoder and decoder on sentence pairs, whose batches have many shapes: dp, ddp and fsdp in every shard as one
# process with the same batches, also where ranks share none of their shapes; half precisions near it; what is
# computed again changes no bit; a stopped and resumed run has the bits of one that was not, and continues on another
# number of ranks, in the middle of an epoch.
. "$(dirname "$0")/lib.sh"
make_pairs
common=("${pairs[@]}" schedule.steps=30 evaluate.every=15 evaluate.sequences=33)

train 1 one "${common[@]}" batch.accumulate=6
check() { # world name FIELD=VALUE...
    local world=$1 name=$2-$1
    shift 2
    train "$world" "$name" "${common[@]}" batch.accumulate=$((6 / world)) "$@"
    for metric in loss gradient_norm valid_loss; do
        same_metric $metric one "$name" 1e-5
    done
}
fsdp=strategy.kind=fsdp
for world in 2 3; do
    check $world dp strategy.kind=dp
    check $world ddp strategy.kind=ddp
    check $world full $fsdp strategy.shard=full
    check $world gradients $fsdp strategy.shard=gradients
    check $world optimizer $fsdp strategy.shard=optimizer
done
check 2 kept $fsdp strategy.shard=full strategy.reshard_after_forward=false
check 3 whole $fsdp strategy.shard=full strategy.reduce_each_micro_step=false

dropped=(model.dropout=0.1 model.attention_dropout=0.1)
for norm in post pre; do
    for precision in fp32 bf16 fp16; do
        run=$norm-$precision
        train 2 $run "${common[@]}" model.norm=$norm batch.accumulate=3 $fsdp precision.kind=$precision
        same_metric valid_loss $norm-fp32 $run 3e-2
        for again in none selective full; do
            train 2 $run-$again "${common[@]}" "${dropped[@]}" model.norm=$norm batch.accumulate=3 $fsdp \
                precision.kind=$precision activation_checkpointing=$again
        done
        for again in selective full; do
            same_metric loss $run-none $run-$again 0
            same_bits $run-none $run-$again 30
        done
    done
done

train 2 muon-ddp "${common[@]}" batch.accumulate=3 strategy.kind=ddp optimizer.kind=muon
train 2 muon-fsdp "${common[@]}" batch.accumulate=3 $fsdp optimizer.kind=muon
same_metric loss muon-ddp muon-fsdp 1e-5

train 2 cut "${common[@]}" "${dropped[@]}" batch.accumulate=3 $fsdp checkpoint.every=10
train 2 rest "${common[@]}" "${dropped[@]}" batch.accumulate=3 $fsdp "resume=$work/cut.ck/step-00000020"
same_bits cut rest 30
train 2 start "${common[@]}" batch.accumulate=3 $fsdp checkpoint.every=10
train 3 elsewhere "${common[@]}" batch.accumulate=2 strategy.kind=ddp "resume=$work/start.ck/step-00000020"
for metric in loss valid_loss; do
    same_metric $metric start elsewhere 1e-5
done
