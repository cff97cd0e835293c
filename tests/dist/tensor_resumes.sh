#!/usr/bin/env bash
# tensor_resumes KIND: a run whose ranks divide layers continues at any other 'tensor', strategy and number of ranks from its checkpoints:
# losses within 1e-6 of the run of one process. What is saved is to the bit what one process saves, and generate and the
# export for Hugging Face's library read it.
. "$(dirname "$0")/lib.sh"
make_text 40
# kind NAME: sets ${model[@]}, and ${text[@]}, options of generate
kind() {
    text=(--tokens 50 --temperature 0 --prompt "the s")
    case $1 in
    transformer) make_pairs 200
        model=("${pairs[@]}" model.embed=36 model.norm=pre model.tied=false)
        awk 'BEGIN { for (i = 0; i < 200; i += 4) print "s" i, "s" (i * 7 + 3) % 200, "s" 199 - i }' > "$work/lines"
        text=(--input "$work/lines") ;;
    gpt2) model=(model.heads=4 model.embed=36 data.tokens=byte) ;;
    llama) model=(model.kind=llama model.heads=8 model.kv_heads=2 model.embed=33 model.head_width=10 model.ffn=52
        model.qk_norm=true model.tied=false) ;;
    *) fail "'$1' is not 'gpt2', 'llama' or 'transformer'" ;;
    esac
}

# leg NAME TENSOR RANKS FIRST LAST FIELD=VALUE...: continues from $at, and leaves its last checkpoint there
leg() {
    local name=$1 tensor=$2 ranks=$3 first=$4 last=$5 batch
    shift 5
    batch=batch.sequences=$((8 * tensor / ranks))
    [ "$model_kind" != transformer ] || batch=batch.accumulate=$((4 * tensor / ranks))
    train "$ranks" "$name" "${model[@]}" tensor="$tensor" "$batch" \
        schedule.steps="$last" schedule.period_steps=35 ${at:+"resume=$at"} "$@"
    [ "$(grep -c '"learning_rate"' "$work/$name.0")" = $((last - first)) ] ||
        fail "$name did not continue from step $first"
    [[ $name = "$one" || $name = *-still-* ]] || same_metric loss "$one" "$name" 1e-6
    at="$work/$name.ck/$(printf 'step-%08d' "$last")"
}

model_kind=${1:-}
kind "$model_kind"
one=$model_kind-one at=
leg "$one" 1 1 0 40
at=
leg "$model_kind-a" 2 2 0 5
leg "$model_kind-b" 4 4 5 10 strategy.kind=fsdp
leg "$model_kind-c" 1 1 10 15
leg "$model_kind-d" 2 4 15 20 strategy.kind=fsdp
leg "$model_kind-e" 4 4 20 25
leg "$model_kind-f" 1 2 25 30 strategy.kind=fsdp strategy.shard=gradients
leg "$model_kind-g" 2 4 30 35
leg "$model_kind-h" 1 4 35 40

# To the bit: a learning rate that changes no parameter. First values, saved by 4 ranks and read by one.
still=(optimizer.lr=1e-60 optimizer.weight_decay=0 schedule.warmup_steps=1)
at= one=$model_kind-still
leg "$one" 1 1 0 1 "${still[@]}"
at=
leg "$model_kind-still-a" 2 4 0 1 "${still[@]}" strategy.kind=fsdp
leg "$model_kind-still-b" 4 4 1 2 "${still[@]}"
same_metric loss "$one" "$model_kind-still-a" 1e-6
leg "$model_kind-still-c" 1 1 2 3 "${still[@]}"
"$bin/dist_compare" tensors "" "$work/$one.ck/step-00000001/model-0.safetensors" "$at/model-0.safetensors" 0 ||
    fail "parameters of $model_kind are not those of one process"
for checkpoint in "$model_kind-still-b.ck/step-00000002" "$one.ck/step-00000001"; do
    "$bin/dtrun-engine" generate --checkpoint "$work/$checkpoint" --threads 1 "${text[@]}" > "$work/${checkpoint%%.*}.text"
done
[ -s "$work/$one.text" ] || fail "generate wrote nothing"
cmp "$work/$one.text" "$work/$model_kind-still-b.text" || fail "generate reads other parameters of $model_kind"
[ "$model_kind" != transformer ] || exit 0
"$bin/dtrun-engine" export --checkpoint "$work/$one.ck/step-00000001" --output "$work/$model_kind-whole" \
    > /dev/null || fail "no export"
"$bin/dtrun-engine" export --checkpoint "$work/$model_kind-still-b.ck/step-00000002" \
    --output "$work/$model_kind-parts" > /dev/null || fail "no export of parts"
cmp "$work/$model_kind-whole/model.safetensors" "$work/$model_kind-parts/model.safetensors" ||
    fail "the exports of $model_kind differ"
