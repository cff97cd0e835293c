#!/usr/bin/env bash
# plain_speed.sh DEVICE NAME...: measures dtrun as tests/bench/gpu_run.py does, without Python: the engine's own rates,
# and the lines of bench_ops. NAME: first, 124m, fp16, graphs, xl, ops, attention.
set -euo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
device=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Two million tokens of 15 bits (the upper byte is below 128), which are in any vocabulary of GPT-2's size.
tokens() {
    [ -z "${quick:-}" ] || head -c 300000 /dev/zero > "$work/tokens.bin"
    [ -e "$work/tokens.bin" ] ||
        head -c 4000000 /dev/urandom | LC_ALL=C tr '\200-\377' '\000-\177' > "$work/tokens.bin"
}

# rate WHAT LAYERS HEADS EMBED SEQUENCES [FIELD=VALUE...]: prints the median tokens per second of the last four reports
rate() {
    local what=$1 size=(model.layers="$2" model.heads="$3" model.embed="$4" model.vocab=50257 batch.tokens=1024)
    local steps=60
    [ -z "${quick:-}" ] || { size=(model.layers=2 model.heads=2 model.embed=32 model.vocab=64 batch.tokens=8); steps=6; set -- "${@:1:4}" 2 "${@:6}"; }
    tokens
    "$bin/dist_make_plan" "$work/plan.json" /dev/null device="$device" "data.train=[\"$work/tokens.bin\"]" \
        data.tokens=nanogpt data.split=0.01 "${size[@]}" batch.sequences="$5" schedule.steps="$steps" \
        schedule.warmup_steps=0 schedule.warmup_init_lr=0 optimizer.lr=1e-4 clip=1.0 precision.kind=bf16 \
        evaluate.every=0 evaluate.sequences=1 log.every=$((steps / 6)) threads=4 "${@:6}"
    "$bin/dtrun-engine" train --plan "$work/plan.json" > "$work/events"
    sed -n 's/.*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$work/events" | tail -n 4 | sort -g |
        awk -v what="$what" '{rate[NR] = $1} END {if (NR == 0) exit 1; printf "%s: %.0f tokens/s\n", what, rate[int((NR + 1) / 2)]}'
}

for name; do
    case $name in
        first | 124m) rate "124M, bf16, 32 x 1024" 12 12 768 32 ;;
        fp16) rate "124M, fp16, 32 x 1024" 12 12 768 32 precision.kind=fp16 ;;
        graphs)
            rate "124M, bf16, 1 x 1024, recorded" 12 12 768 1
            rate "124M, bf16, 1 x 1024, launched" 12 12 768 1 cuda_graphs=false
            ;;
        xl) rate "1.5B, bf16, 8 x 1024" 48 25 1600 8 ;;
        ops) "$bin/bench_ops" "$device" bf16 "" ${quick:+quick} ;;
        attention) DTRUN_ATTENTION=own "$bin/bench_ops" "$device" bf16 attention ${quick:+quick} ;;
        *) echo "skipped: $name needs Python"; exit 77 ;;
    esac
done
