#!/usr/bin/env bash
# An adapter next to published weights: the same losses for every strategy, number of ranks and accumulation; a killed
# run resumes to the bit, and on other ranks; its checkpoints hold the adapter alone, and are refused once the base has
# changed. Wrong recipes are in tests/recipes/wrong.
. "$(dirname "$0")/lib.sh"

cp -r tests/golden/huggingface/llama "$work/model"
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(4000))).tofile(open("'"$work"'/ids.bin", "wb"))'
cat >"$work/tune.yaml" <<'YAML'
name: tune
ranks: 1
threads: 1
strategy: ddp
model: {from: model}
lora: {rank: 3, alpha: 5, targets: [q, v, o, up, down]}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 4}
optimizer: {lr: 1e-2}
schedule: {steps: 6}
evaluate: {every: 2, sequences: 8}
checkpoint: {every: 2}
log: {every: 1}
YAML

# losses RUN: its losses, one a line
losses() {
    "$dtrun" metrics "$1" --name loss --format csv | cut -d, -f2,4 | tail -n +2
}

# near A B: the losses of two runs differ by less than 1e-5
near() {
    python3 - "$(losses "$1")" "$(losses "$2")" <<'PY' >"$work/err" 2>&1 || fail "other losses: $1 $2"
import sys
a, b = (dict((int(line.split(",")[0]), float(line.split(",")[1])) for line in text.split()) for text in sys.argv[1:])
assert a.keys() == b.keys() and len(a) == 6, (a, b)
for step in a:
    assert abs(a[step] - b[step]) < 1e-5, (step, a[step], b[step])
PY
}

launch() {
    expect 0 launch "$work/tune.yaml" --wait --json "$@"
    json "o['state'] == 'finished'"
    run=$(field "o['run']")
}

launch
one=$run
saved=$(field "o['checkpoint']")
for set in "ranks=2 batch.sequences=2" "ranks=2 batch.sequences=2 strategy=fsdp" \
    "ranks=2 batch.sequences=2 strategy=fsdp strategy.shard=optimizer" \
    "batch.sequences=1 batch.accumulate=4" "ranks=2 batch.sequences=2 strategy=dp" \
    "ranks=2 tensor=2" "ranks=4 tensor=4" "ranks=4 tensor=2 batch.sequences=1 batch.accumulate=2 strategy=fsdp" \
    "activation_checkpointing=full"; do
    words=()
    for word in $set; do words+=(--set "$word"); done
    launch "${words[@]}"
    near "$one" "$run"
done

# --- a checkpoint holds the adapter alone: 2 blocks of 5 targets, A and B
python3 - "$saved" <<'PY' >"$work/err" 2>&1 || fail "not the adapter alone"
import json, sys
index = json.load(open(sys.argv[1] + "/index.json"))
assert len(index["tensors"]) == 2 * 5 * 2, list(index["tensors"])
assert all(".lora_A.weight" in name or ".lora_B.weight" in name for name in index["tensors"])
assert len(index["base"]["files"]) == 1
PY

# --- the base and the adapter are used together: the score of the validation text is the one of training
python3 - "$work" <<'PY'
import array, sys
ids = array.array("H", open(sys.argv[1] + "/ids.bin", "rb").read())
open(sys.argv[1] + "/lines.txt", "w").write(" ".join(map(str, ids[-17:])) + "\n")
PY
expect 0 generate "$one" --prompt "1 2 3" --tokens 4 --temperature 0
with=$(cat "$work/out")
expect 0 score "$one" --input "$work/lines.txt" --json
with_score=$(cat "$work/out")
expect 0 launch "$work/tune.yaml" --wait --json --set schedule.steps=1 --set optimizer.lr=1e-30 --set name=zero
expect 0 score "$(field "o['run']")" --input "$work/lines.txt" --json
[ "$(cat "$work/out")" != "$with_score" ] || fail "the adapter changes no score"

# --- killed in the middle, resumed to the bit
DTRUN_FAULT="kill 0@3" expect 0 launch "$work/tune.yaml" --wait --json --set failure.max_restarts=1
json "o['state'] == 'finished'" "o['attempt'] == 2"
[ "$(losses "$(field "o['run']")" | sort -u | tail -n 3)" = "$(losses "$one" | tail -n 3)" ] ||
    fail "another loss after the kill"

# --- resumed on other ranks, with another strategy
expect 0 launch "$work/tune.yaml" --wait --json --set schedule.steps=4
part=$(field "o['run']")
expect 0 resume "$part" --wait --json --set schedule.steps=6 --set ranks=2 --set batch.sequences=2 --set strategy=fsdp
json "o['state'] == 'finished'" "o['step'] == 6"

# --- another base, another scale: refused
cp "$work/model/model.safetensors" "$work/kept"
python3 - "$work/model/model.safetensors" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-1, 2)
    last = file.read(1)[0]
    file.seek(-1, 2)
    file.write(bytes([last ^ 1]))
PY
expect 2 resume "$part" --set schedule.steps=8
says "are not those that the adapter in" "digests differ"
expect 3 generate "$part" --prompt "1"
says "are not those that the adapter in"
expect 2 fork "$part" --set schedule.steps=8
says "are not those that the adapter in"
cp "$work/kept" "$work/model/model.safetensors"
expect 2 resume "$part" --set schedule.steps=8 --set lora.alpha=9
says "lora.alpha was 5, is 9"
expect 2 resume "$part" --set schedule.steps=8 --set lora.rank=4
says "is 3 x 12 in the checkpoint and 4 x 12 in this model"
expect 2 launch "$work/tune.yaml" --set model.from=run:"$part" --set lora.rank=2
says "is an adapter"

# --- exports: the adapter by PEFT's names, and a whole model that scores alike
expect 2 export "$one" --to hf "$work/none"
says "is an adapter: export it with '--to peft', or add '--merge' for a whole model"
[ ! -e "$work/none" ] || fail "a refused export left a folder"
expect 0 export "$one" --to peft "$work/peft" --json
json "o['to'] == 'peft'"
python3 - "$work/peft" <<'PY' >"$work/err" 2>&1 || fail "another folder for PEFT"
import json, struct, sys
config = json.load(open(sys.argv[1] + "/adapter_config.json"))
assert config["r"] == 3 and config["lora_alpha"] == 5 and config["peft_type"] == "LORA", config
assert config["target_modules"] == ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"], config
raw = open(sys.argv[1] + "/adapter_model.safetensors", "rb").read()
header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
assert header["base_model.model.model.layers.1.mlp.up_proj.lora_B.weight"]["shape"] == [20, 3], header
header.pop("__metadata__", None)
assert len(header) == 20 and not any("base_layer" in name for name in header)
PY
expect 2 export "$one" --to peft "$work/peft"
says "already exists"
expect 0 export "$one" --to hf --merge "$work/merged"
says "logits differ from the adapter's by at most"
expect 0 launch "$work/tune.yaml" --wait --json --set name=whole --set model.from="$work/merged" --set lora.rank=0 \
    --set schedule.steps=1 --set optimizer.kind=sgd --set optimizer.lr=1e-99 \
    --set optimizer.weight_decay=0
whole=$(field "o['run']")
expect 0 export "$whole" --to hf "$work/again"
expect 2 export "$whole" --to peft "$work/none"
says "is a whole model, not an adapter"
expect 2 export "$whole" --to hf --merge "$work/none"
says "is a whole model, not an adapter"
expect 0 score "$one" --input "$work/lines.txt" --json
mine=$(cat "$work/out")
expect 0 score "$whole" --input "$work/lines.txt" --json
python3 - "$mine" "$(cat "$work/out")" <<'PY' >"$work/err" 2>&1 || fail "the merged model scores otherwise"
import re, sys
a, b = ([float(x) for x in re.findall(r"-?\d+\.\d+", text)] for text in sys.argv[1:])
assert len(a) == len(b) > 0 and all(abs(x - y) <= 1e-4 * abs(x) for x, y in zip(a, b)), (a, b)
PY

# --- a folder of PEFT is continued: without a change of the values it is exported to the bit
cat >"$work/more.yaml" <<'YAML'
name: more
ranks: 2
threads: 1
strategy: fsdp
lora: {from: peft}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 2}
optimizer: {kind: sgd, lr: 1e-99, weight_decay: 0}
schedule: {steps: 1}
evaluate: {every: 0}
YAML
expect 0 launch "$work/more.yaml" --wait --json
more=$(field "o['run']")
expect 0 export "$more" --to peft "$work/peft-again"
cmp "$work/peft/adapter_model.safetensors" "$work/peft-again/adapter_model.safetensors" >"$work/err" 2>&1 ||
    fail "another adapter"
expect 0 resume "$more" --wait --json --set schedule.steps=2 --set optimizer.lr=1e-2
json "o['step'] == 2"
expect 2 validate "$work/more.yaml" --set lora.rank=4
says "'lora.rank' is 4, and '" "has 3 ('r'): leave it out"
expect 2 validate "$work/more.yaml" --set lora.targets=[q]
says "'lora.targets' and 'lora.from' cannot be combined"
expect 2 validate "$work/more.yaml" --set lora.from="$work/model"
says "is not a folder of PEFT"
# config KEY VALUE: a copy of the folder whose config has this
config() {
    rm -rf "$work/other"
    cp -r "$work/peft" "$work/other"
    python3 - "$work/other/adapter_config.json" "$@" <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
config[sys.argv[2]] = json.loads(sys.argv[3])
json.dump(config, open(sys.argv[1], "w"))
PY
    expect 2 validate "$work/more.yaml" --set lora.from="$work/other"
}
config use_dora true
says "'use_dora' is set, which dtrun does not support: DoRA"
config bias '"all"'
says "'bias' is 'all'"
config target_modules '"all-linear"'
says "is not a list of names"
config target_modules '["q_proj", "lm_head"]'
says "'lm_head', which is not a matrix of a block"
config peft_type '"IA3"'
says "'peft_type' is 'IA3'; expected LORA"
rm -rf "$work/other"
cp -r "$work/peft" "$work/other"
sed -i 's/"r": 3/"r": 2/' "$work/other/adapter_config.json"
expect 2 launch "$work/more.yaml" --set lora.from="$work/other"
says "is 3 x 12 in the file and 2 x 12 in this model"

# --- the smoke test trains its own small base
expect 0 smoke "$work/tune.yaml" --json
json "len(o['recipes'][0]['checks']) == 8"
