#!/usr/bin/env bash
# The engine with its GPU part on emulated cards (emulated/cuda_runtime.h), whose memory the host cannot access and
# whose streams do nothing before they are waited for. Tests losses of one process, two ranks that share a card, two
# cards under dp, the same bits in repeated runs and with every recomputation, a checkpoint that is resumed elsewhere,
# and ranks that divide layers. The models are tiny: trust_chain.sh tests the numbers of a real card.
. tests/dist/lib.sh
make_text 4
export XDG_CACHE_HOME=$work LD_LIBRARY_PATH=$bin # the emulated card's NVML
tiny=(model.layers=2 model.heads=2 model.embed=32 batch.tokens=8 evaluate.sequences=4
    schedule.period_steps=4 schedule.warmup_steps=1)

# run W NAME STEPS FIELD=VALUE...
run() {
    local world=$1 name=$2 steps=$3
    shift 3
    train "$world" "$name" "${tiny[@]}" batch.sequences=$((4 / world)) schedule.steps="$steps" "$@"
}

# like_cpu NAME: compares with the CPU in fp32; products and sums have another order
like_cpu() {
    same_metric loss cpu "$1" 1e-5
    same_metric gradient_norm cpu "$1" 1e-5
}

run 1 cpu 4
run 1 one 4 device=cuda:0
run 2 ddp 3 device=cuda:0
# Recorded from the third pass on; repeated with every kernel launched by the host.
DTRUN_LOG=info run 2 fsdp 3 device=cuda:0 strategy.kind=fsdp batch.accumulate=1
run 2 again 3 device=cuda:0 strategy.kind=fsdp batch.accumulate=1 cuda_graphs=false
grep -q 'forward and backward pass: .* recorded' "$work/fsdp.0.err" || fail "fsdp records no pass"
run 2 dp 3 device=cuda:0 strategy.kind=dp
run 4 tensor 3 device=cuda:0 strategy.kind=fsdp tensor=2 batch.sequences=2
DTRUN_LOG=info run 2 layers 3 device=cuda:0 tensor=2 batch.sequences=2 batch.accumulate=2
run 2 layers-again 3 device=cuda:0 tensor=2 batch.sequences=2 batch.accumulate=2 cuda_graphs=false
grep -q 'forward and backward pass: .* recorded' "$work/layers.0.err" || fail "divided layers record no pass"
for name in one ddp fsdp dp tensor layers; do
    like_cpu $name
done
same_metric loss fsdp again 0
same_bits fsdp again 3
same_metric loss layers layers-again 0
same_bits layers layers-again 3

# GELU is fused into its product: in all three, forward applies it to unrounded sums, backward to rounded ones
for kept in none selective full; do
    run 1 $kept 1 device=cuda:0 precision.kind=bf16 activation_checkpointing=$kept
done
same_bits none selective 1
same_bits none full 1
run 1 keep_all 1 device=cuda:0 precision.kind=bf16 activation_checkpointing=keep_all # the gradient of unrounded sums
same_metric loss none keep_all 1e-4

# The ops that only Llama's blocks have.
llama=(model.kind=llama model.kv_heads=1 model.head_width=10 model.ffn=24)
normed=("${llama[@]}" model.qkv_bias=true model.qk_norm=true)
run 1 llama-cpu 3 "${llama[@]}"
run 1 normed-cpu 3 "${normed[@]}"
for kept in none selective full keep_all; do
    run 1 llama-$kept 3 device=cuda:0 "${llama[@]}" activation_checkpointing=$kept
    run 1 normed-$kept 3 device=cuda:0 "${normed[@]}" activation_checkpointing=$kept
    for model in llama normed; do
        same_metric loss $model-cpu $model-$kept 1e-5
        same_metric gradient_norm $model-cpu $model-$kept 1e-5
        same_bits $model-none $model-$kept 3
    done
done

grep -q '"gpu_busy_percent_rank_1":50.*"gpu_power_watts_rank_1":250.5' "$work/ddp.1" ||
    fail "rank 1 does not tell what its card does"

run 1 card-half 2 device=cuda:0
run 1 cpu-half 2
run 1 to-cpu 4 "resume=$work/card-half.ck/step-00000002"
run 1 to-card 4 device=cuda:0 "resume=$work/cpu-half.ck/step-00000002"
like_cpu to-cpu
like_cpu to-card
# Moments in bf16: the same bits from a checkpoint, and nearly the CPU's losses
run 1 moments 4 device=cuda:0 optimizer.moments=bf16
run 1 moments-half 2 device=cuda:0 optimizer.moments=bf16
run 1 moments-on 4 device=cuda:0 optimizer.moments=bf16 "resume=$work/moments-half.ck/step-00000002"
run 1 moments-cpu 4 optimizer.moments=bf16
same_bits moments moments-on 4
same_metric loss moments-cpu moments 1e-4
"$bin/dtrun-engine" generate --checkpoint "$work/one.ck/step-00000004" --tokens 3 --temperature 0 \
    > "$work/by-cpu"
"$bin/dtrun-engine" generate --checkpoint "$work/one.ck/step-00000004" --tokens 3 --temperature 0 \
    --device cuda:0 > "$work/by-card"
cmp "$work/by-cpu" "$work/by-card" || fail "the card continues the text in another way"
for device in cpu cuda:0; do
    "$bin/dtrun-engine" generate --checkpoint "$work/normed-none.ck/step-00000003" --tokens 3 \
        --temperature 0 --device $device > "$work/by-$device"
done
cmp "$work/by-cpu" "$work/by-cuda:0" || fail "the card continues a Llama's text in another way"

# Lines of several lengths in one batch.
printf '%s\n' 'the' 'a' 'the cat' >"$work/lines"
for model in one.ck/step-00000004 normed-none.ck/step-00000003; do
    for device in cpu cuda:0; do
        "$bin/dtrun-engine" generate --checkpoint "$work/$model" --input "$work/lines" --tokens 3 --past-end \
            --temperature 0 --device $device > "$work/by-$device" || fail "no lines by $device"
    done
    cmp "$work/by-cpu" "$work/by-cuda:0" || fail "the card continues lines of $model in another way"
    [ "$(wc -l <"$work/by-cpu")" = 3 ] || fail "lines of $model: $(cat "$work/by-cpu")"
done

# Pairs, and their translations at evaluation, also with divided layers.
make_pairs
translations() { # name ranks FIELD=VALUE...
    train "$2" "pairs-$1" "${pairs[@]}" schedule.steps=2 model.embed=16 model.heads=2 batch.max_tokens=32 \
        evaluate.sequences=4 evaluate.bleu=true evaluate.beam=2 "${@:3}"
}
translations cpu 2 strategy.kind=fsdp
translations card 2 strategy.kind=fsdp device=cuda:0
translations tensor 2 tensor=2 batch.accumulate=2 device=cuda:0
for metric in loss valid_loss valid_bleu; do
    same_metric $metric pairs-cpu pairs-card 1e-5
    same_metric $metric pairs-cpu pairs-tensor 1e-5
done
