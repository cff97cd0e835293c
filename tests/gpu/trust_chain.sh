#!/usr/bin/env bash
# trust_chain.sh [DEVICE [WHAT...]]: a card trains as the CPU does: losses of one process, two ranks
# on one card (collectives staged through the host) in every strategy, the same bits run after run,
# a checkpoint of the card taken up by the CPU and back.
# DEVICE is cuda:0 where it is left out; cpu tries the script. DTRUN_BIN holds dtrun-engine and its
# libdtrun-cuda.so. WHAT is some of one, ranks, bits, moves, types. DTRUN_LOAN_QUICK=1: tiny sizes and fewer
# runs, to try the script on emulated cards.
cd "$(dirname "$0")/../.."
. tests/dist/lib.sh
device=${1:-cuda:0}
shift $(($# > 0))
parts=${*:-one ranks bits moves types llama}
[ "$device" = cpu ] || "$bin/card_info" "$device" || exit $?
make_text 40
card=(device="$device")
size=() batch=12 last=20 half=20 whole=40 worlds="1 2" strategies="ddp fsdp" shards="full gradients optimizer"
common=(schedule.steps=30 evaluate.every=15 evaluate.sequences=33 batch.accumulate=2)
if [ -n "${DTRUN_LOAN_QUICK:-}" ]; then
    size=(model.layers=1 model.heads=2 model.embed=32 batch.tokens=8 schedule.warmup_steps=1 evaluate.sequences=2)
    batch=2 last=3 half=2 whole=4 worlds=1 strategies=ddp shards=full
    common=(schedule.steps=3 evaluate.every=2 evaluate.sequences=2 batch.accumulate=1)
fi
# trains W NAME FIELD=VALUE...: of that size, as many steps as the last that is compared
trains() {
    train "$1" "$2" "${size[@]}" schedule.steps=$last batch.sequences=$((batch / $1)) "${@:3}"
}

: losses, gradient norms and the validation loss
same() {
    for metric in loss gradient_norm valid_loss; do
        same_metric $metric "$1" "$2" "$3"
    done
}
trains 1 cpu "${common[@]}"

# fp32: products and sums are in another order than the CPU's, 1e-5 as between strategies there.
one() {
    trains 1 one "${common[@]}" "${card[@]}"
    same cpu one 1e-5
    for recompute in selective full; do # recomputed activations change no bit
        trains 1 $recompute "${common[@]}" "${card[@]}" \
            activation_checkpointing=$recompute
        same one $recompute 0
    done
}

ranks_of_one_card() {
    check() { # name FIELD=VALUE...
        local name=$1
        shift
        trains 2 "$name" "${common[@]}" "${card[@]}" "$@"
        same cpu "$name" 1e-5
    }
    check ddp strategy.kind=ddp
    for shard in $shards; do
        check $shard strategy.kind=fsdp strategy.shard=$shard
    done
    check kept strategy.kind=fsdp strategy.reshard_after_forward=false
    check whole strategy.kind=fsdp strategy.reduce_each_micro_step=false
}

bits() {
    local world strategy graphs run
    for world in $worlds; do
        for strategy in $strategies; do
            run=bits-$strategy-$world
            for graphs in true again false; do # recorded, once more, and kernel by kernel
                trains $world $run-$graphs "${card[@]}" batch.accumulate=2 strategy.kind=$strategy \
                    model.dropout=0.1 model.attention_dropout=0.1 precision.kind=bf16 \
                    cuda_graphs=${graphs/again/true}
            done
            for graphs in again false; do
                same_metric loss $run-true $run-$graphs 0
                same_bits $run-true $run-$graphs $last
            done
        done
    done
    attention_bits
}

# Heads that are wide enough for flash attention and cuDNN's, and nothing dropped inside; where there
# is no cuDNN, ours runs twice.
attention_bits() {
    local way graphs run
    for way in own cudnn; do
        run=bits-attention-$way
        for graphs in true false; do
            DTRUN_ATTENTION=$way DTRUN_LOG=info trains 1 $run-$graphs "${card[@]}" batch.accumulate=3 \
                model.embed=128 model.heads=2 model.dropout=0.1 model.attention_dropout=0 \
                precision.kind=bf16 cuda_graphs=$graphs
        done
        same_metric loss $run-true $run-false 0
        same_bits $run-true $run-false $last
    done
    grep -q 'forward by cuDNN' "$work/$run-true.0.err" || echo "$device, bits: without cuDNN's attention"
}

# Half of the steps on one device, half on the other, as the CPU does all of them.
moves() {
    local halves=(schedule.period_steps=35 batch.accumulate=2)
    local step
    step=$(printf step-%08d $half)
    trains 1 whole-run "${halves[@]}" schedule.steps=$whole
    trains 1 card-half "${halves[@]}" "${card[@]}" schedule.steps=$half
    trains 1 cpu-half "${halves[@]}" schedule.steps=$half
    trains 1 to-cpu "${halves[@]}" schedule.steps=$whole "resume=$work/card-half.ck/$step"
    trains 1 to-card "${halves[@]}" "${card[@]}" schedule.steps=$whole "resume=$work/cpu-half.ck/$step"
    for run in card-half cpu-half to-cpu to-card; do
        same_metric loss whole-run $run 1e-5
    done
}

# Half precision: both backends round each op once, at places where their fp32 sums differ; the
# bound is the one that bf16 has against fp32.
types() {
    local type
    for type in bf16 fp16; do
        trains 1 cpu-$type "${common[@]}" precision.kind=$type
        trains 1 card-$type "${common[@]}" "${card[@]}" precision.kind=$type
        same_metric loss cpu-$type card-$type 1e-2
    done
}

# The ops that Llama's blocks alone have, with and without norms of queries and keys.
llama() {
    local norms again
    for norms in true false; do
        local model=(model.kind=llama model.kv_heads=2 model.head_width=10 model.ffn=88 model.qk_norm=$norms
            model.qkv_bias=$norms batch.sequences=12 "${common[@]}")
        train 1 cpu-llama "${model[@]}"
        for again in none selective full; do
            train 1 card-llama-$again "${model[@]}" "${card[@]}" activation_checkpointing=$again
            same cpu-llama card-llama-$again 1e-5
            same card-llama-none card-llama-$again 0
        done
    done
}

for part in $parts; do
    case $part in
        one | bits | moves | types | llama) $part ;;
        ranks) ranks_of_one_card ;;
        *) fail "no part '$part': one, ranks, bits, moves, types, llama" ;;
    esac
    echo "$device, $part: good"
done
