#!/usr/bin/env bash
# The same numbers if ranks are on several nodes and communicate through Gloo: two of one rank, two of
# two, and two and one. fp32, 50 steps of two micro-steps: losses, gradient norms and the validation
# loss within 1e-5 of one process; a second run of two and two has the same bits.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(schedule.steps=50 evaluate.every=25 evaluate.sequences=33 batch.accumulate=2)
train 1 one "${common[@]}" batch.sequences=12

check() { # world name FIELD=VALUE...
    local world=$1 name=$2-$1-$per_node
    shift 2
    set -- "${common[@]}" batch.sequences=$((12 / world)) "$@"
    train "$world" "$name" "$@"
    for metric in loss gradient_norm valid_loss; do
        same_metric $metric one "$name" 1e-5
    done
    [ "$world" = 4 ] || return 0
    train "$world" "$name-again" "$@"
    same_bits "$name" "$name-again" 50
}

fsdp=strategy.kind=fsdp
for nodes in 2:1 4:2 3:2; do
    world=${nodes%:*} per_node=${nodes#*:}
    DTRUN_LOG=info train "$world" asked "${common[@]}" schedule.steps=1
    grep -q "$world ranks on 2 node(s)" "$work/asked.0.err" || fail "$nodes: not two nodes"
    check "$world" ddp strategy.kind=ddp
    check "$world" full $fsdp
    check "$world" kept $fsdp strategy.reshard_after_forward=false
    check "$world" gradients $fsdp strategy.shard=gradients
    check "$world" optimizer $fsdp strategy.shard=optimizer
done
