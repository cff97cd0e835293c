#!/usr/bin/env bash
# data.pack: sequences of whole documents, from the plan to the end; the same losses with one rank and with three, and
# after a stop and a resume, which cannot change data.pack.
. "$(dirname "$0")/lib.sh"

python3 - "$work/ids.bin" <<'PY'
import array, random, sys
draw = random.Random(1)
ids = array.array("H")
for _ in range(300):
    first = draw.randrange(2, 60)
    ids.extend((first + i) % 58 + 2 for i in range(draw.randrange(1, 24)))
    ids.append(1)
ids.tofile(open(sys.argv[1], "wb"))
PY
cat >"$work/pack.yaml" <<'YAML'
name: pack
ranks: 1
threads: 1
model: {layers: 1, heads: 2, embed: 16, vocab: 64}
data: {train: ids.bin, tokens: nanogpt, cross_documents: false, end_of_text: 1, pack: true}
batch: {sequences: 3, tokens: 16}
optimizer: {lr: 1e-2}
schedule: {steps: 60, warmup_steps: 2}
evaluate: {every: 30}
checkpoint: {every: 30}
log: {every: 1}
YAML
losses() { # RUN: "step loss" of training and validation, six digits
    "$dtrun" metrics "$1" --format csv | awk -F, '($3 == "loss" || $3 == "valid_loss") {printf "%s %s %.5f\n", $2, $3, $4}' | sort
}
# near A B: the same points, to 1e-5 (sums over one rank and over three are rounded differently)
near() {
    join -j 1 <(awk '{print $1 "-" $2, $3}' "$1" | sort) <(awk '{print $1 "-" $2, $3}' "$2" | sort) |
        awk 'function abs(x) { return x < 0 ? -x : x } abs($2 - $3) > 3e-5 * $2 { bad = 1 } END { exit bad || NR < 60 }' ||
        fail "$1 and $2 differ: $(diff "$1" "$2" | head -3)"
}

expect 0 validate "$work/pack.yaml"
expect 0 launch "$work/pack.yaml" --dry-run
says " sequences, " "% of which is padding"
expect 0 launch "$work/pack.yaml" --dry-run --json
json "0.02 < o['data']['padding'] < 0.5" "o['data']['sequences'] * 16 >= o['data']['train_items']"
expect 0 validate "$work/pack.yaml" --set data.cross_documents=true
says "'data.pack' has no effect without 'cross_documents: false'"
lacks "padding"

expect 0 launch "$work/pack.yaml" --wait --json
one=$(field "o['run']")
losses "$one" >"$work/one"
expect 0 launch "$work/pack.yaml" --wait --json --set ranks=3 --set batch.sequences=1 --set strategy=fsdp --set name=three
losses "$(field "o['run']")" >"$work/three"
near "$work/one" "$work/three"

# Half of the run, then the rest with another number of ranks: the data continue at the same position.
expect 0 launch "$work/pack.yaml" --wait --json --set name=half --set schedule.steps=30 --set optimizer.lr=0.01 \
    --set schedule.kind=constant
half=$(field "o['run']")
expect 0 launch "$work/pack.yaml" --wait --json --set name=straight --set schedule.kind=constant
losses "$(field "o['run']")" >"$work/straight"
expect 2 resume "$half" --wait --set schedule.steps=60 --set data.pack=false
says "data.pack was true, is none"
expect 0 resume "$half" --wait --json --set schedule.steps=60 --set ranks=3 --set batch.sequences=1
losses "$half" >"$work/resumed"
near "$work/straight" "$work/resumed"

# Epochs are counted equally before the run and by the engine.
expect 0 launch "$work/pack.yaml" --dry-run --json --set schedule.steps=0 --set schedule.epochs=2
steps=$(field "o['steps']")
expect 0 launch "$work/pack.yaml" --wait --json --set schedule.steps=0 --set schedule.epochs=2 --set name=epochs
json "o['steps'] == $steps" "$steps > 10"
