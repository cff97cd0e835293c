#!/usr/bin/env bash
# trust_chain.sh [DEVICE [WHAT...]]: checks that a card trains like the CPU: losses of one process, two ranks on one
# card (collectives staged through the host) in every strategy, the same bits run after run, a checkpoint of the card
# resumed on the CPU and back. The default of DEVICE is cuda:0; cpu tries the script. DTRUN_BIN has dtrun-engine and its
# libdtrun-cuda.so. WHAT is some of the names at the end. DTRUN_LOAN_QUICK=1: tiny sizes and fewer runs, to try the
# script on emulated cards.
cd "$(dirname "$0")/../.."
. tests/dist/lib.sh
device=${1:-cuda:0}
shift $(($# > 0))
every="one ranks bits moves types lengths llama transformer documents"
parts=${*:-$every}
[ "$device" = cpu ] || "$bin/card_info" "$device" || exit $?
make_text 40
card=(device="$device")
size=() batch=12 last=20 half=20 whole=40 worlds="1 2" strategies="ddp fsdp" shards="full gradients optimizer"
recomputed="none selective full" places="post pre" switches="true false" kinds="gpt2 llama"
common=(schedule.steps=30 evaluate.every=15 evaluate.sequences=33 batch.accumulate=2)
if [ -n "${DTRUN_LOAN_QUICK:-}" ]; then
    size=(model.layers=1 model.heads=2 model.embed=32 batch.tokens=8 schedule.warmup_steps=1 evaluate.sequences=2)
    batch=2 last=3 half=2 whole=4 worlds=1 strategies=ddp shards=full
    recomputed="none full" places=pre switches=true kinds=gpt2
    common=(schedule.steps=3 evaluate.every=2 evaluate.sequences=2 batch.accumulate=1)
fi
# trains W NAME FIELD=VALUE...: trains this size, up to the last step that is compared
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

# fp32: products and sums have another order than on the CPU; the bound is 1e-5, as between strategies there.
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
            for graphs in true again false; do # recorded, repeated, and kernel by kernel
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

# Heads that are wide enough for dtrun's kernels on tensor cores and for cuDNN's, without dropout; without cuDNN, or
# without a card for wgmma, dtrun's kernel for sm_80 runs again.
attention_bits() {
    local way graphs run
    for way in mma wgmma cudnn; do
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

# Half of the steps on one device, half on the other, compared with the CPU for all of them.
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

# Half precision: both backends round each op once, but their fp32 sums differ; the bound is that of bf16 against fp32.
types() {
    local type
    for type in bf16 fp16; do
        trains 1 cpu-$type "${common[@]}" precision.kind=$type
        trains 1 card-$type "${common[@]}" "${card[@]}" precision.kind=$type
        same_metric loss cpu-$type card-$type 1e-2
    done
}

# Sequences of 1,024 on heads of 64 and 128: flash attention in bf16, the plain kernel in fp32.
lengths() {
    local heads long=(model.layers=1 model.embed=128 batch.tokens=1024 batch.sequences=2 batch.accumulate=1
        schedule.steps=2 evaluate.every=0)
    [ -z "${DTRUN_LOAN_QUICK:-}" ] || long+=(batch.tokens=16 schedule.steps=1)
    for heads in 2 1; do
        train 1 cpu-long-$heads "${long[@]}" model.heads=$heads
        train 1 card-long-$heads "${long[@]}" "${card[@]}" model.heads=$heads
        train 1 card-long-bf16-$heads "${long[@]}" "${card[@]}" model.heads=$heads precision.kind=bf16
        same_metric loss cpu-long-$heads card-long-$heads 1e-5
        for metric in loss gradient_norm; do
            same_metric $metric card-long-$heads card-long-bf16-$heads 1e-2
        done
    done
}

# The ops that only Llama's blocks have, with and without norms of queries and keys.
llama() {
    local norms again
    for norms in $switches; do
        local model=(model.kind=llama model.kv_heads=2 model.head_width=10 model.ffn=88 model.qk_norm=$norms
            model.qkv_bias=$norms batch.sequences=12 "${common[@]}")
        [ -z "${DTRUN_LOAN_QUICK:-}" ] || model+=("${size[@]}" model.kv_heads=1 model.ffn=24 batch.sequences=2)
        train 1 cpu-llama "${model[@]}"
        for again in $recomputed; do
            train 1 card-llama-$again "${model[@]}" "${card[@]}" activation_checkpointing=$again
            same cpu-llama card-llama-$again 1e-5
            same card-llama-none card-llama-$again 0
        done
    done
}

# An encoder and decoder on sentence pairs of many lengths: padded rows that attention does not see, attention over the
# source, smoothed labels, losses masked after the end of a sentence. Also with wide heads in bf16, for which a card
# uses matrix products.
transformer() {
    local norm again model=("${pairs[@]}" "${common[@]}" schedule.steps=$last)
    [ -z "${DTRUN_LOAN_QUICK:-}" ] || model+=(batch.max_tokens=16 model.layers=1 model.embed=16 model.heads=2)
    for norm in $places; do
        train 1 cpu-$norm "${model[@]}" model.norm=$norm
        for again in $recomputed; do
            train 1 card-$norm-$again "${model[@]}" "${card[@]}" model.norm=$norm activation_checkpointing=$again
            same cpu-$norm card-$norm-$again 1e-5
            same card-$norm-none card-$norm-$again 0
        done
    done
    model+=(model.dropout=0.1 precision.kind=bf16 model.embed=128 model.heads=2 model.layers=1)
    [ -z "${DTRUN_LOAN_QUICK:-}" ] || model+=(evaluate.every=0)
    train 1 cpu-wide "${model[@]}"
    for again in true false; do
        train 1 card-wide-$again "${model[@]}" "${card[@]}" cuda_graphs=$again
        same_metric loss cpu-wide card-wide-$again 1e-2
    done
    same_bits card-wide-true card-wide-false $last
}

# Several documents in a sequence, which do not see each other; each of these words begins one.
documents() {
    local kind again apart=("${common[@]}" data.cross_documents=false data.end_of_text=1)
    for kind in $kinds; do
        local model=("${apart[@]}" model.kind=$kind)
        [ $kind = gpt2 ] || model+=(model.kv_heads=2 model.ffn=88)
        trains 1 cpu-apart-$kind "${model[@]}"
        [ $kind != gpt2 ] || ! "$bin/dist_compare" metrics loss "$work/cpu.0" "$work/cpu-apart-gpt2.0" 1e-5 > /dev/null ||
            fail "documents that see each other have the losses of those that do not"
        for again in none full; do
            trains 1 card-apart-$kind-$again "${model[@]}" "${card[@]}" activation_checkpointing=$again
            same cpu-apart-$kind card-apart-$kind-$again 1e-5
            same card-apart-$kind-none card-apart-$kind-$again 0
        done
    done
}

for part in $parts; do
    case " $every " in
        *" $part "*) ;;
        *) fail "no part '$part': $every" ;;
    esac
    case $part in
        ranks) ranks_of_one_card ;;
        transformer) make_pairs && transformer ;;
        *) $part ;;
    esac
    echo "$device, $part: good"
done
