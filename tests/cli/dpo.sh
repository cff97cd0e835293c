#!/usr/bin/env bash
# Pairs of answers (dpo): losses and rewards agree for every strategy and division; a killed run resumes to the bit, and
# on other ranks; lines and recipes that are wrong are named. Loss and gradients are compared with TRL in
# unit.model_lora.
. "$(dirname "$0")/lib.sh"

python3 tests/cli/dpo_data.py tests/golden/huggingface/llama "$work"
cat >"$work/dpo.yaml" <<'YAML'
name: dpo
ranks: 1
threads: 1
strategy: ddp
model: {from: model}
lora: 4
dpo: 0.5
data: {train: pairs.jsonl, format: chat, split: 0.2}
batch: {sequences: 4, tokens: 48}
optimizer: {lr: 3e-3}
schedule: {steps: 6}
evaluate: {every: 3}
checkpoint: {every: 2}
log: {every: 1}
YAML

# points RUN NAME: a metric, one "step value" a line
points() {
    "$dtrun" metrics "$1" --name "$2" --format csv | cut -d, -f2,4 | tail -n +2 | tr , ' '
}

# near A B: the losses and rewards of two runs differ by less than 1e-5
near() {
    for name in loss reward_margin valid_loss; do
        paste -d ' ' <(points "$1" $name) <(points "$2" $name) | awk '
            function abs(x) { return x < 0 ? -x : x }
            $1 != $3 || abs($2 - $4) > 1e-5 { bad = 1; print }
            END { exit bad || NR == 0 }' >"$work/err" || fail "another $name: $1 $2"
    done
}

launch() {
    expect 0 launch "$work/dpo.yaml" --wait --json "$@"
    json "o['state'] == 'finished'"
    run=$(field "o['run']")
}

launch
one=$run
# The adapter starts at zero: the loss is log 2, and the margin 0. Then the chosen answers become likelier.
python3 - "$(points "$one" loss)" "$(points "$one" reward_margin)" "$(points "$one" reward_accuracy)" <<'PY' >"$work/err" 2>&1 || fail "no preference is learned"
import math, sys
loss, margin, accuracy = ([float(line.split()[1]) for line in text.splitlines()] for text in sys.argv[1:])
assert abs(loss[0] - math.log(2)) < 1e-6 and abs(margin[0]) < 1e-5, (loss, margin)
assert loss[-1] < 0.6 and margin[-1] > 0.1 and accuracy[-1] == 1, (loss, margin, accuracy)
PY
for set in "ranks=2 batch.sequences=2" "ranks=2 batch.sequences=2 strategy=fsdp" "batch.sequences=1 batch.accumulate=4" \
    "ranks=2 tensor=2" "ranks=4 tensor=2 batch.sequences=2 strategy=fsdp" "activation_checkpointing=full"; do
    words=()
    for word in $set; do words+=(--set "$word"); done
    launch "${words[@]}"
    near "$one" "$run"
done

# --- killed, resumed to the bit; resumed on other ranks
DTRUN_FAULT="kill 0@3" expect 0 launch "$work/dpo.yaml" --wait --json --set failure.max_restarts=1
json "o['attempt'] == 2"
[ "$(points "$(field "o['run']")" loss | sort -u | tail -n 3)" = "$(points "$one" loss | tail -n 3)" ] ||
    fail "another loss after the kill"
expect 0 launch "$work/dpo.yaml" --wait --json --set schedule.steps=4
part=$(field "o['run']")
expect 0 resume "$part" --wait --json --set schedule.steps=6 --set ranks=2 --set batch.sequences=2 --set strategy=fsdp
json "o['step'] == 6"
expect 0 export "$one" --to peft "$work/peft"

# --- what a user sees of the pairs
expect 0 validate "$work/dpo.yaml"
says "80 conversations (messages) in 40 pairs, "
expect 0 smoke "$work/dpo.yaml" --json
json "len(o['recipes'][0]['checks']) == 9"
expect 0 data show "$work/dpo.yaml" 2
says "conversation 2"

# wrong LINE TEXT...: a file with this second line is refused, with its number
wrong() {
    { head -n 1 "$work/pairs.jsonl"; printf '%s\n' "$1"; head -n 9 "$work/pairs.jsonl"; } >"$work/wrong.jsonl"
    expect 2 validate "$work/dpo.yaml" --set "data.train=[$work/wrong.jsonl]"
    shift
    says "wrong.jsonl:2: " "$@"
}
wrong '{"prompt": "abc", "chosen": "def"}' "not a pair of answers: with 'dpo' a line has 'prompt', 'chosen' and 'rejected'"
wrong '{"messages": [{"role": "user", "content": "abc"}]}' "not a pair of answers"
wrong '{"chosen": "def", "rejected": "xyz"}' "a pair of answers without a prompt"
wrong '{"prompt": "abc", "chosen": "def", "rejected": "def"}' "are the same: nothing is preferred"
wrong '{"prompt": 3, "chosen": "def", "rejected": "def"}' "not a pair of answers"
expect 2 validate "$work/dpo.yaml" --set batch.tokens=12
says "longer than batch.tokens 12"
expect 0 validate "$work/dpo.yaml" --set batch.tokens=28 --set data.too_long=drop
expect 2 validate "$work/dpo.yaml" --set strategy=dp
says "'dpo' and 'strategy: dp' cannot be combined"
expect 2 validate "$work/dpo.yaml" --set data.too_long=cut
says "'dpo' and 'data.too_long: cut' cannot be combined"
expect 2 validate "$work/dpo.yaml" --set lora.rank=0
says "'dpo' trains an adapter, whose base is the reference: set 'lora'"
