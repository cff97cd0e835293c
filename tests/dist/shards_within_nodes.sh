#!/usr/bin/env bash
# shards_within_nodes: compares fsdp that divides parameters within nodes ('strategy.within: node') with one process that
# takes the same global batch, on two nodes of two ranks, and on two of four with 'tensor'.
#
#   shards_within_nodes.sh PRECISION        the rows of one precision in a table in which every pair of values of two
#                                           columns occurs
#   shards_within_nodes.sh --all PRECISION  every sharding x type that is sent x micro-steps x tensor
#   shards_within_nodes.sh resumes          the bits of fsdp, checkpoints under other meshes, and a flipped bit
#
# The bounds are those of strategies_agree.sh, and for gradients sent in bf16 its bound of 3e-5; each gradient is then
# rounded by up to 0.4 %, and norms have the bound 3e-3. Largest differences seen in fp32: losses 6.4e-9 and norms 8.8e-8,
# sent in bf16 1.0e-5 and 8.7e-4.
. "$(dirname "$0")/lib.sh"
shardings=(full gradients optimizer kept whole)
precisions=(fp32 bf16 fp16)
reduces=(fp32 bf16)
micro_steps=(1 2)
tensors=(1 2)
declare -A loss_bound=([fp32]=1e-5 [bf16]=2e-3 [fp16]=2e-4) norm_bound=([fp32]=1e-5 [bf16]=3e-2 [fp16]=4e-3)
declare -A fields=(
    [full]='strategy.shard=full'
    [gradients]='strategy.shard=gradients'
    [optimizer]='strategy.shard=optimizer'
    [kept]='strategy.reshard_after_forward=false'
    [whole]='strategy.reduce_each_micro_step=false')
steps=20
nodes='nodes=["a","b"]'

# table: prints a row "SHARDING PRECISION REDUCE MICRO_STEPS TENSOR" with each pair of values of two columns
table() {
    local s
    for s in "${!shardings[@]}"; do
        for k in 0 1 2; do
            echo "${shardings[s]} ${precisions[(s + k) % 3]} ${reduces[(s + k) % 2]} ${micro_steps[(s / 2 + k) % 2]}" \
                "${tensors[(s + k + k / 2) % 2]}"
        done
    done
}

# Count the different pairs of each two columns (values of each: 5, 3, 2, 2, 2); a missing pair fails the test.
table | awk -v columns='5 3 2 2 2' '
    { for (i = 1; i <= NF; i++) for (j = 1; j < i; j++) if (!seen[i, j, $i, $j]++) pairs[i, j]++ }
    END {
        n = split(columns, values)
        for (i = 1; i <= n; i++) for (j = 1; j < i; j++) if (pairs[i, j] != values[i] * values[j]) {
            printf "columns %d and %d: %d pairs, expected %d\n", j, i, pairs[i, j], values[i] * values[j]
            exit 1
        }
    }' || fail "the table lacks a pair of values"

# run NAME TENSOR [FIELD=VALUE...]: four data ranks on two nodes; a step has 8 sequences; clipped
run() {
    local per_node=$((2 * $2)) name=$1 tensor=$2
    shift 2
    plan "$name" "$nodes" ranks=$per_node tensor="$tensor" strategy.kind=fsdp strategy.within=node clip=0.7 \
        schedule.steps=$steps evaluate.every=$steps evaluate.sequences=17 "$@"
    ranks $((2 * per_node)) "$name" --per-node $per_node || fail "$name: exit $?"
    grep -q '"event":"finished"' "$work/$name.0" || fail "$name has not finished"
}

# one_process PRECISION: the same batch and shapes
one_process() {
    [ -e "$work/one-$1.0" ] || train 1 "one-$1" precision.kind="$1" clip=0.7 batch.sequences=1 batch.accumulate=8 \
        schedule.steps=$steps evaluate.every=$steps evaluate.sequences=17
}

# row SHARDING PRECISION REDUCE MICRO_STEPS TENSOR
row() {
    local one=one-$2 name=$1-$2-sent-$3-$4-$5 sharding=() loss=${loss_bound[$2]} norm=${norm_bound[$2]}
    echo "$name:"
    read -ra sharding <<<"${fields[$1]}"
    one_process "$2"
    run "$name" "$5" "${sharding[@]}" precision.kind="$2" strategy.reduce_dtype="$3" \
        batch.sequences=$((2 / $4)) batch.accumulate="$4"
    [ "$2$3" != fp32bf16 ] || { loss=3e-5 norm=3e-3; }
    same_metric loss "$one" "$name" "$loss"
    same_metric valid_loss "$one" "$name" "$loss"
    same_metric gradient_norm "$one" "$name" "$norm"
}

make_text 40
all=false
[ "${1:-}" != --all ] || { all=true; shift; }
what=${1:-}
[[ " ${precisions[*]} resumes " = *" $what "* ]] || fail "'$what' is not one of: ${precisions[*]} resumes"
if [ $all = true ]; then
    for sharding in "${shardings[@]}"; do
        for reduce in "${reduces[@]}"; do
            for micro in "${micro_steps[@]}"; do
                for tensor in "${tensors[@]}"; do
                    row "$sharding" "$what" "$reduce" "$micro" "$tensor"
                done
            done
        done
    done
    exit 0
fi
while read -r sharding precision reduce micro tensor; do
    [ "$precision" != "$what" ] || row "$sharding" "$precision" "$reduce" "$micro" "$tensor"
done < <(table)
[ "$what" = resumes ] || exit 0

# The order of sums is that of fsdp among all ranks if a step has one micro-step: within nodes, then between them.
whole_run=(schedule.steps=$steps batch.sequences=2)
for sharding in full optimizer; do
    read -ra options <<<"${fields[$sharding]}"
    for within in node run; do
        plan "$sharding-$within" "$nodes" ranks=2 strategy.kind=fsdp strategy.within=$within "${whole_run[@]}" "${options[@]}"
        ranks 4 "$sharding-$within" --per-node 2 || fail "$sharding-$within: exit $?"
    done
    same_metric loss "$sharding-run" "$sharding-node" 0
done

# leg NAME NODES RANKS_PER_NODE TENSOR FIRST LAST FIELD=VALUE...: continues from $at, and leaves its last checkpoint there
leg() {
    local name=$1 count=$2 per_node=$3 tensor=$4 first=$5 last=$6 list
    local data=$((count * per_node / tensor))
    shift 6
    list=$(printf '"%s",' $(seq -f 'node%.0f' "$count"))
    plan "$name" "nodes=[${list%,}]" ranks="$per_node" tensor="$tensor" batch.sequences=$((12 / data)) \
        schedule.steps="$last" schedule.period_steps=35 ${at:+"resume=$at"} "$@"
    ranks $((count * per_node)) "$name" --per-node "$per_node" || fail "$name: exit $?"
    [ "$(grep -c '"learning_rate"' "$work/$name.0")" = $((last - first)) ] || fail "$name did not continue from step $first"
    [[ $name = "$one" || $name = still* ]] || same_metric loss "$one" "$name" 1e-6
    at="$work/$name.ck/$(printf 'step-%08d' "$last")"
}
hybrid='strategy.kind=fsdp strategy.within=node'
one=one at=
leg one 1 1 1 0 35
at=
# shellcheck disable=SC2086 # two words
{
    leg two-by-two 2 2 1 0 5 $hybrid
    [ "$(find "$at" -name 'model-*.safetensors' | wc -l)" = 2 ] || fail "a part is not saved exactly once"
    leg lost-a-node 1 2 1 5 10 $hybrid
    leg three-by-one 3 1 1 10 15 $hybrid strategy.shard=gradients
    leg tensor 2 2 2 15 20 $hybrid
    leg all-ranks 1 3 1 20 25 strategy.kind=fsdp
    leg two-by-three 2 3 1 25 30 $hybrid strategy.shard=optimizer
    leg ddp 1 4 1 30 35
}

# To the bit: a learning rate that changes no parameter.
still=(optimizer.lr=1e-60 optimizer.weight_decay=0 schedule.warmup_steps=1)
at= one=still
leg still 1 1 1 0 1 "${still[@]}"
at=
# shellcheck disable=SC2086
leg still-two-by-two 2 2 1 0 1 $hybrid "${still[@]}"
leg still-alone 1 1 1 1 2 "${still[@]}"
"$bin/dist_compare" tensors "" "$work/still.ck/step-00000001/model-0.safetensors" "$at/model-0.safetensors" 0 ||
    fail "saved parameters are not those of one process"

# A bit flips in a part that a rank of the other node holds too: all say so before the next save, which is not made.
plan flipped "$nodes" ranks=2 strategy.kind=fsdp strategy.within=node checkpoint.every=5
code=0
DTRUN_FAULT="flip 1@7" ranks 4 flipped --per-node 2 || code=$?
[ $code = 1 ] || fail "ranks with other parameters exit $code"
for rank in 0 1 2 3; do
    grep -q '"status":"corrupt","message":"step 10: the parameters of rank [13] differ from those of 1 rank' \
        "$work/flipped.$rank" || fail "rank $rank: $(tail -n 1 "$work/flipped.$rank")"
done
[ -e "$work/flipped.ck/step-00000005/complete" ] && [ ! -e "$work/flipped.ck/step-00000010" ] ||
    fail "after a flip there are $(ls "$work/flipped.ck")"
