#!/usr/bin/env bash
# Loss and gradient norm of 50 steps are those of tests/golden/losses, with a file for each run: this shows that a
# change does not move numbers.
#
#   DTRUN_BIN=build/dev/bin bash tests/dist/golden_losses.sh           compares
#   DTRUN_BIN=build/dev/bin bash tests/dist/golden_losses.sh --write   rewrites the files; commit them with the reason
#                                                        why they moved
#
# The instruction set that made them (avx512_bf16) meets them to the last bit. Others sum in another
# order, and do not round probabilities to bf16: forced down one by one (DTRUN_CPU_ISA times
# ONEDNN_MAX_CPU_ISA) they moved losses and norms by at most 2.1e-8 and 2.2e-7 in fp32, 2.8e-4 and
# 3.8e-3 in bf16, 3e-5 and 5.4e-4 in fp16, where single roundings turn. The bounds are six times that, for processors
# that were not tested. The transformer's were made with avx2.
. "$(dirname "$0")/lib.sh"
golden=tests/golden/losses
make_text 40

# golden NAME BOUND_OF_LOSS BOUND_OF_NORM FIELD=VALUE...
golden() {
    local name=$1 loss=$2 norm=$3
    shift 3
    train 1 "$name" schedule.steps=50 "$@"
    {
        echo "# 50 steps of '$name'; made by: bash tests/dist/golden_losses.sh --write"
        sed -nE 's/.*"event":"metrics","step":([0-9]+),.*"loss":([^,}]+),.*"gradient_norm":([^,}]+).*/{"step":\1,"values":{"loss":\2,"gradient_norm":\3}}/p' "$work/$name.0"
    } > "$work/$name.txt"
    [ "$(grep -c '^{' "$work/$name.txt")" = 50 ] || fail "$name: expected 50 steps with metrics"
    if [ "$write" = --write ]; then
        cp "$work/$name.txt" "$golden/$name.txt"
        return
    fi
    echo "$name:"
    "$bin/dist_compare" metrics loss "$golden/$name.txt" "$work/$name.txt" "$loss" ||
        fail "losses of $name have moved"
    "$bin/dist_compare" metrics gradient_norm "$golden/$name.txt" "$work/$name.txt" "$norm" ||
        fail "gradient norms of $name have moved"
}

write=${1:-}
golden fp32 1.2e-7 2e-6
golden bf16 2e-3 3e-2 precision.kind=bf16
golden fp16 3e-4 4e-3 precision.kind=fp16
fairseq=(model.activation=gelu model.positions=sinusoidal model.scale_embedding=true model.tied=false model.dropout=0.1
    model.attention_dropout=0.1 optimizer.variant=fairseq)
golden fairseq 1.2e-7 2e-6 "${fairseq[@]}"
golden llama 1.2e-7 2e-6 model.kind=llama model.kv_heads=2 model.ffn=88 model.head_width=10 model.qk_norm=true \
    model.qkv_bias=true model.tied=false
make_pairs
golden transformer 1.2e-7 2e-6 "${pairs[@]}" model.activation=relu model.positions=sinusoidal model.scale_embedding=true \
    model.dropout=0.1 model.attention_dropout=0.1
for kind in selective full keep_all; do # recomputed activations are the same
    train 1 $kind schedule.steps=50 "${fairseq[@]}" activation_checkpointing=$kind
    same_bits fairseq $kind 50
done
