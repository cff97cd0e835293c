#!/usr/bin/env bash
# tensor_agrees: compares runs whose ranks divide layers ('tensor') with one process that takes the same global batch.
#
#   tensor_agrees.sh KIND          the rows of one kind in a table in which every pair of values of two columns occurs
#   tensor_agrees.sh --all KIND    every strategy x tensor x precision x recomputation x number of ranks
#
# The bounds are those of strategies_agree.sh, over 20 steps. In bf16 and fp16 a sum over ranks is rounded once, after
# it is complete, as in one process. One sum is not: if ranks share a key head, each rounds its term of the gradient of
# keys and values before the terms are added. The norm of steps 1 and 2 then differs by up to 1.4e-4 in bf16 (the norm of
# one process in bf16 differs by 9.4e-4 from that in fp32), and its bound is 5e-4. In fp16, with an eighth of the rounding,
# it is 6e-5.
#
# In 16 bits the transformer's first steps have bounds of their own. Its activations and logits are near 1, those of the
# others near 0.02, and its products of fewer columns add in another order: a single rounding that turns in one target's
# logit moves the loss by 6e-6 in bf16. Seen are 1.1e-7 and 3.3e-6 in loss, 3.0e-5 and 6.6e-5 in norm (bf16, fp16). The
# norm of one process in bf16 differs by 2.8e-3 from that in fp32, in fp16 by 8e-4.
. "$(dirname "$0")/lib.sh"
all_kinds=(gpt2 llama one_key transformer shared)
strategies=(ddp full gradients optimizer kept whole)
precisions=(fp32 bf16 fp16)
recomputations=(none selective full)
tensors=(2 4)
declare -A loss_bound=([fp32]=1e-5 [bf16]=2e-3 [fp16]=2e-4) norm_bound=([fp32]=1e-5 [bf16]=3e-2 [fp16]=4e-3)
declare -A shared_bound=([fp32]=1e-5 [bf16]=5e-4 [fp16]=6e-5)
declare -A turned_loss=([fp32]=1e-5 [bf16]=2e-5 [fp16]=2e-5) turned_norm=([fp32]=1e-5 [bf16]=2e-4 [fp16]=2e-4)
declare -A fields=(
    [ddp]='strategy.kind=ddp'
    [full]='strategy.kind=fsdp'
    [gradients]='strategy.kind=fsdp strategy.shard=gradients'
    [optimizer]='strategy.kind=fsdp strategy.shard=optimizer'
    [kept]='strategy.kind=fsdp strategy.reshard_after_forward=false'
    [whole]='strategy.kind=fsdp strategy.reduce_each_micro_step=false')
all=false
[ "${1:-}" != --all ] || { all=true; shift; }
kind=${1:-}
[[ " ${all_kinds[*]} " = *" $kind "* ]] || fail "'$kind' is not one of: ${all_kinds[*]}"
steps=20
pairs=()
key_heads=0 # fewer than the ranks that share them; 0: none are shared

case $kind in
gpt2) # a head of odd width; bytes, so that each rank has a part of the vocabulary
    model=(model.heads=4 model.embed=36 data.tokens=byte) ;;
llama) # grouped keys, wide heads, biases and norms of q and k, an odd width; only rank 0 has a part of the vocabulary
    key_heads=2
    model=(model.kind=llama model.heads=8 model.kv_heads=2 model.embed=33 model.head_width=10 model.ffn=52
        model.qkv_bias=true model.o_bias=true model.mlp_bias=true model.qk_norm=true model.tied=false) ;;
one_key) # one key head, which all ranks share
    key_heads=1
    model=(model.kind=llama model.heads=4 model.kv_heads=1 model.embed=35 model.head_width=6 model.ffn=20
        data.tokens=byte) ;;
transformer) # norms first, a head of odd width, two vocabularies, in which each rank has a part of the words in use
    make_pairs 200
    model=("${pairs[@]}" model.embed=36 model.norm=pre model.tied=false model.activation=gelu) ;;
shared) # norms last, one matrix for embeddings and head, sinusoids
    make_pairs 200
    # Such a model lets differences grow: in one process, fp16 differs from fp32 by 1.7e-4 in loss and 9.3e-3 in norm.
    loss_bound[fp16]=1e-3 norm_bound[fp16]=3e-2
    model=("${pairs[@]}" model.embed=36 model.source_vocab=205 model.shared_embeddings=true model.positions=sinusoidal
        model.activation=relu model.decoder_layers=2 optimizer.lr=1e-3) ;;
esac
[ ${#pairs[@]} -gt 0 ] || model+=(batch.sequences=2)

# table: prints a row "KIND STRATEGY PRECISION RECOMPUTATION TENSOR" for each strategy of each kind.
table() {
    local s k
    for s in "${!strategies[@]}"; do
        for k in "${!all_kinds[@]}"; do
            echo "${all_kinds[k]} ${strategies[s]} ${precisions[(s + k) % 3]} ${recomputations[(s + 2 * k) % 3]}" \
                "${tensors[(s / 3 + k) % 2]}"
        done
    done
}

# Count the different pairs of each two columns (values of each, for five kinds: 5, 6, 3, 3, 2); a missing pair fails the test.
table | awk -v columns="${#all_kinds[@]} 6 3 3 2" '
    { for (i = 1; i <= NF; i++) for (j = 1; j < i; j++) if (!seen[i, j, $i, $j]++) pairs[i, j]++ }
    END {
        n = split(columns, values)
        for (i = 1; i <= n; i++) for (j = 1; j < i; j++) if (pairs[i, j] != values[i] * values[j]) {
            printf "columns %d and %d: %d pairs, expected %d\n", j, i, pairs[i, j], values[i] * values[j]
            exit 1
        }
    }' || fail "the table lacks a pair of values"

# run NAME STRATEGY PRECISION RECOMPUTATION TENSOR RANKS [FIELD=VALUE...]: a step has 4 micro-steps
run() {
    local name=$1 strategy=()
    read -ra strategy <<<"${fields[$2]}"
    train "$6" "$name" "${model[@]}" "${strategy[@]}" precision.kind="$3" activation_checkpointing="$4" tensor="$5" \
        batch.accumulate=$((4 * $5 / $6)) evaluate.every=$steps evaluate.sequences=17 \
        schedule.steps=$steps "${@:7}"
    grep -E '"step":[12],.*"learning_rate"' "$work/$name.0" > "$work/$name-first.0"
}

# row STRATEGY PRECISION RECOMPUTATION TENSOR RANKS: train it and compare it with one process
row() {
    local one=$kind-$2 name=$kind-$1-$2-$3-$4-$5 first_loss=1e-5 first_norm=1e-5
    [[ $key_heads = 0 || $4 -le $key_heads ]] || first_norm=${shared_bound[$2]}
    [ ${#pairs[@]} = 0 ] || first_loss=${turned_loss[$2]} first_norm=${turned_norm[$2]}
    echo "$name:"
    [ -e "$work/$one.0" ] || run "$one" ddp "$2" none 1 1
    run "$name" "$@"
    same_metric loss "$one-first" "$name-first" $first_loss
    same_metric gradient_norm "$one-first" "$name-first" $first_norm
    same_metric loss "$one" "$name" "${loss_bound[$2]}"
    same_metric valid_loss "$one" "$name" "${loss_bound[$2]}"
    same_metric gradient_norm "$one" "$name" "${norm_bound[$2]}"
}

# drops TENSOR RANKS RECOMPUTATION: the masks are those of as many data ranks with whole layers; clipped
drops() {
    local one=$kind-dropped-$(($2 / $1)) name=$kind-dropped-$1-$2-$3
    local options=(model.dropout=0.1 model.attention_dropout=0.1 clip=0.5)
    echo "$name:"
    [ -e "$work/$one.0" ] || run "$one" ddp fp32 none 1 $(($2 / $1)) "${options[@]}"
    run "$name" full fp32 "$3" "$1" "$2" "${options[@]}"
    same_metric loss "$one" "$name" 1e-5
    same_metric gradient_norm "$one" "$name" 1e-5
}

make_text 40
if [ $all = false ]; then
    while read -r _ strategy precision recomputation tensor; do
        row "$strategy" "$precision" "$recomputation" "$tensor" 4
    done < <(table | grep "^$kind ")
    drops 2 2 selective
    exit 0
fi
for precision in "${precisions[@]}"; do
    for recomputation in "${recomputations[@]}"; do
        for strategy in "${strategies[@]}"; do
            for ranks in '2 2' '2 4' '4 4' '4 8'; do
                # shellcheck disable=SC2086 # two words
                row "$strategy" "$precision" "$recomputation" $ranks
            done
        done
    done
done
for recomputation in "${recomputations[@]}"; do
    drops 2 2 "$recomputation"
    drops 2 4 "$recomputation"
    drops 4 4 "$recomputation"
done
