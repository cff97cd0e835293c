#!/usr/bin/env bash
# dp, ddp and fsdp train as one process does with the same global batch, on 1 to 4 ranks: fp32, 50
# steps of two micro-steps, losses, gradient norms and the validation loss within 1e-5. Recomputed
# activations change no bit.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(schedule.steps=50 evaluate.every=25 evaluate.sequences=33 batch.accumulate=2)
train 1 one "${common[@]}" batch.sequences=12

check() { # world name FIELD=VALUE...
    local world=$1 name=$2-$1
    shift 2
    train "$world" "$name" "${common[@]}" batch.sequences=$((12 / world)) "$@"
    for metric in loss gradient_norm valid_loss; do
        same_metric $metric one "$name" 1e-5
    done
}

fsdp=strategy.kind=fsdp
for world in 1 2 3 4; do
    check $world dp strategy.kind=dp
    check $world ddp strategy.kind=ddp
    check $world full $fsdp strategy.shard=full
    check $world kept $fsdp strategy.shard=full strategy.reshard_after_forward=false
    check $world gradients $fsdp strategy.shard=gradients
    check $world optimizer $fsdp strategy.shard=optimizer
done
for shard in full gradients optimizer; do # whole gradients until the last micro-step
    check 3 whole-$shard $fsdp strategy.shard=$shard strategy.reduce_each_micro_step=false
done
for recompute in selective full; do
    check 2 $recompute $fsdp activation_checkpointing=$recompute
    same_metric loss full-2 $recompute-2 0
done
