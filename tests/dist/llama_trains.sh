#!/usr/bin/env bash
# A model of kind llama (grouped keys, wide heads, biases and norms of q and k, an odd width): dp, ddp
# and fsdp in every shard as one process with the same global batch; half precisions near it; what is
# computed again changes no bit; a stopped and resumed run has the bits of one that was not, and continues
# on another number of ranks; its checkpoint makes text, more than a batch is long.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(model.kind=llama model.heads=6 model.kv_heads=2 model.embed=33 model.head_width=10 model.ffn=50
        model.qkv_bias=true model.qk_norm=true model.rope_scaling=llama3 model.rope_factor=4
        model.rope_original_tokens=64 model.tied=false
        schedule.steps=30 evaluate.every=15 evaluate.sequences=33 batch.accumulate=2)

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
for precision in fp32 bf16 fp16; do
    train 2 $precision "${common[@]}" batch.sequences=6 $fsdp precision.kind=$precision
    same_metric valid_loss one $precision 3e-2
    for again in none selective full; do
        train 2 $precision-$again "${common[@]}" "${dropped[@]}" batch.sequences=6 $fsdp \
            precision.kind=$precision activation_checkpointing=$again
    done
    for again in selective full; do
        same_metric loss $precision-none $precision-$again 0
        same_bits $precision-none $precision-$again 30
    done
done

train 2 muon-ddp "${common[@]}" batch.sequences=6 strategy.kind=ddp optimizer.kind=muon
train 2 muon-fsdp "${common[@]}" batch.sequences=6 $fsdp optimizer.kind=muon
same_metric loss muon-ddp muon-fsdp 1e-5

train 2 cut "${common[@]}" "${dropped[@]}" batch.sequences=6 $fsdp checkpoint.every=10
train 2 rest "${common[@]}" "${dropped[@]}" batch.sequences=6 $fsdp \
    "resume=$work/cut.ck/step-00000020"
same_bits cut rest 30
train 2 start "${common[@]}" batch.sequences=6 $fsdp checkpoint.every=10
train 3 elsewhere "${common[@]}" batch.sequences=4 strategy.kind=ddp \
    "resume=$work/start.ck/step-00000020"
for metric in loss valid_loss; do
    same_metric $metric start elsewhere 1e-5
done

"$bin/dtrun-engine" generate --checkpoint "$work/one.ck/step-00000030" --prompt "the ship" --tokens 80 \
    --temperature 0 > "$work/text.out" || fail "generate: exit $?"
[ "$(wc -c < "$work/text.out")" -ge 80 ] || fail "it wrote $(cat "$work/text.out")"
