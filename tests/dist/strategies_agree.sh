#!/usr/bin/env bash
# strategies_agree: compares every strategy on several ranks with one process that takes the same global batch.
#
#   strategies_agree.sh               21 rows, in which every pair of values of two columns occurs
#   strategies_agree.sh KIND          the rows of one model kind; all_kinds lists them
#   strategies_agree.sh --all KIND    every strategy x precision x recomputation x number of ranks, and the bits
#
# One process computes the same micro-steps with the same shapes, in the same precision. Only the order in which
# gradients are added differs. In fp32 each loss, gradient norm and validation loss agrees within 1e-5. In bf16 and
# fp16 the same bound holds for steps 1 and 2, which start from equal weights (the learning rate of step 1 is 0).
# Later a difference of 1e-8 in a weight turns single roundings. A turned rounding moves one value by at least 0.4 %
# in bf16 and 0.05 % in fp16; a loss is the mean of many tokens and moves by less than half of that. Gradient norms
# have the bounds of golden_losses.sh.
#
# Largest differences seen: the table under DTRUN_CPU_ISA x86-64, avx2, avx512, avx512_bf16 times ONEDNN_MAX_CPU_ISA
# AVX2, AVX512_CORE, AVX512_CORE_BF16; the whole product under the last pair, of the transformer under the first too:
#
#                                   fp32      bf16      fp16
#   steps 1 and 2                   1.2e-8    4.5e-9    7.2e-9
#   losses                          1.2e-8    1.3e-4    2.0e-5
#   gradient norms                  1.2e-7    1.2e-3    2.1e-4
#   one process and fp32, losses              1.2e-3    1.2e-4
. "$(dirname "$0")/lib.sh"
all_kinds=(gpt2 llama transformer)
strategies=(dp ddp full kept gradients optimizer whole)
precisions=(fp32 bf16 fp16)
recomputations=(none selective full)
declare -A loss_bound=([fp32]=1e-5 [bf16]=2e-3 [fp16]=2e-4) norm_bound=([fp32]=1e-5 [bf16]=3e-2 [fp16]=4e-3)
declare -A fields=(
    [dp]='strategy.kind=dp'
    [ddp]='strategy.kind=ddp'
    [full]='strategy.kind=fsdp'
    [kept]='strategy.kind=fsdp strategy.reshard_after_forward=false'
    [gradients]='strategy.kind=fsdp strategy.shard=gradients'
    [optimizer]='strategy.kind=fsdp strategy.shard=optimizer'
    [whole]='strategy.kind=fsdp strategy.reduce_each_micro_step=false'
    [whole_gradients]='strategy.kind=fsdp strategy.shard=gradients strategy.reduce_each_micro_step=false'
    [whole_optimizer]='strategy.kind=fsdp strategy.shard=optimizer strategy.reduce_each_micro_step=false')
all=false
[ "${1:-}" != --all ] || { all=true; shift; }
kinds=("${all_kinds[@]}")
[ $# = 0 ] || kinds=("$@")
for kind in "${kinds[@]}"; do
    [[ " ${all_kinds[*]} " = *" $kind "* ]] || fail "'$kind' is not a model kind; expected one of: ${all_kinds[*]}"
done
micro_steps=6 # of all ranks together; 12 can be divided by 4 ranks too
[ $all = false ] || micro_steps=12
steps=10

# table: prints a row "KIND STRATEGY PRECISION RECOMPUTATION RANKS" for each strategy of each kind.
table() {
    local s k kind
    for s in "${!strategies[@]}"; do
        k=0
        for kind in "${all_kinds[@]}"; do
            echo "$kind ${strategies[s]} ${precisions[(s + k) % 3]} ${recomputations[(s + 2 * k) % 3]} $((2 + (s + k) % 2))"
            k=$((k + 1))
        done
    done
}

# Count the different pairs of each two columns (values of each, for three kinds: 3, 7, 3, 3, 2); a missing pair fails the test.
table | awk -v columns="${#all_kinds[@]} 7 3 3 2" '
    { for (i = 1; i <= NF; i++) for (j = 1; j < i; j++) if (!seen[i, j, $i, $j]++) pairs[i, j]++ }
    END {
        n = split(columns, values)
        for (i = 1; i <= n; i++) for (j = 1; j < i; j++) if (pairs[i, j] != values[i] * values[j]) {
            printf "columns %d and %d: %d pairs, expected %d\n", j, i, pairs[i, j], values[i] * values[j]
            exit 1
        }
    }' || fail "the table lacks a pair of values"

# set_model KIND: sets ${model[@]}
set_model() {
    model=("batch.sequences=$((12 / micro_steps))")
    case $1 in
    llama) # grouped keys, wide heads, biases and norms of q and k, an odd width
        model+=(model.kind=llama model.heads=6 model.kv_heads=2 model.embed=33 model.head_width=10 model.ffn=50
            model.qkv_bias=true model.qk_norm=true model.rope_scaling=llama3 model.rope_factor=4
            model.rope_original_tokens=64 model.tied=false) ;;
    transformer) # batches of many shapes, of which ranks share none
        [ -e "$work/translation.json" ] || make_pairs
        model=("${pairs[@]}") ;;
    esac
}

# run NAME KIND STRATEGY PRECISION RECOMPUTATION RANKS [FIELD=VALUE...]
run() {
    local name=$1 strategy=() model
    set_model "$2"
    read -ra strategy <<<"${fields[$3]}"
    train "$6" "$name" "${model[@]}" schedule.steps=$steps evaluate.every=$steps evaluate.sequences=17 \
        batch.accumulate=$((micro_steps / $6)) "${strategy[@]}" precision.kind="$4" activation_checkpointing="$5" "${@:7}"
    grep -E '"step":[12],.*"learning_rate"' "$work/$name.0" > "$work/$name-first.0"
}

# row KIND STRATEGY PRECISION RECOMPUTATION RANKS: train it and compare it with one process
row() {
    local one=$1-$3 name=$1-$2-$3-$4-$5
    echo "$name:"
    [ -e "$work/$one.0" ] || run "$one" "$1" ddp "$3" none 1
    run "$name" "$@"
    same_metric loss "$one-first" "$name-first" 1e-5
    same_metric gradient_norm "$one-first" "$name-first" 1e-5
    same_metric loss "$one" "$name" "${loss_bound[$3]}"
    same_metric valid_loss "$one" "$name" "${loss_bound[$3]}"
    same_metric gradient_norm "$one" "$name" "${norm_bound[$3]}"
}

# keeps_bits NAME KIND STRATEGY PRECISION RANKS [FIELD=VALUE...]: recomputed activations change no bit with dropout
keeps_bits() {
    local name=$1 again
    for again in none selective full; do
        run "$name-$again" "$2" "$3" "$4" $again "$5" model.dropout=0.1 model.attention_dropout=0.1 "${@:6}"
    done
    for again in selective full; do
        same_metric loss "$name-none" "$name-$again" 0
        same_bits "$name-none" "$name-$again" $steps
    done
}

# whole_product KIND: every row of a kind, two more shards with whole gradients; recomputation changes no bit
whole_product() {
    local kind=$1 worlds='2 3' strategy precision recomputation world norm norms=pre name
    [ "$kind" != gpt2 ] || worlds='1 2 3 4'
    [ "$kind" != transformer ] || norms='pre post'
    for precision in "${precisions[@]}"; do
        for strategy in "${strategies[@]}" whole_gradients whole_optimizer; do
            for world in $worlds; do
                for recomputation in "${recomputations[@]}"; do
                    row "$kind" "$strategy" "$precision" "$recomputation" "$world"
                    name=$kind-$strategy-$precision
                    same_bits "$name-none-$world" "$name-$recomputation-$world" $steps
                done
            done
        done
        for norm in $norms; do
            keeps_bits "dropped-one-$precision-$norm" "$kind" ddp "$precision" 1 model.norm="$norm"
            keeps_bits "dropped-two-$precision-$norm" "$kind" full "$precision" 2 model.norm="$norm"
        done
    done
}

# muon KIND: ddp and fsdp agree under an optimizer that needs whole matrices
muon() {
    echo "$1-muon:"
    run "$1-muon-ddp" "$1" ddp fp32 none 2 optimizer.kind=muon
    run "$1-muon-full" "$1" full fp32 none 2 optimizer.kind=muon
    same_metric loss "$1-muon-ddp" "$1-muon-full" 1e-5
}

# sent KIND: gradients are rounded to bf16 to be sent. The bound is ten times the largest difference seen, 2.7e-6.
sent() {
    local strategy
    for strategy in ddp full; do
        echo "$1-sent-$strategy:"
        run "$1-sent-$strategy" "$1" $strategy fp32 none 2 strategy.reduce_dtype=bf16
        same_metric loss "$1-fp32" "$1-sent-$strategy" 3e-5
    done
}

make_text 40
for kind in "${kinds[@]}"; do
    if [ $all = true ]; then
        whole_product "$kind"
    else
        readarray -t rows < <(table | grep "^$kind ")
        for line in "${rows[@]}"; do
            read -ra values <<<"$line"
            row "${values[@]}"
        done
    fi
    for precision in bf16 fp16; do # one process follows fp32 too
        echo "$kind-$precision:"
        same_metric loss "$kind-fp32" "$kind-$precision" "${loss_bound[$precision]}"
    done
    # The gate has each of these for one kind.
    [[ $all = false && $kind != llama ]] || muon "$kind"
    [[ $all = false && $kind != gpt2 ]] || sent "$kind"
done
