#!/usr/bin/env bash
# A model starts from published weights (model.from) and is exported again with the same bits; weights that do not fit
# are named, and nothing incomplete remains.
. "$(dirname "$0")/lib.sh"

model=$work/model
cp -r tests/golden/huggingface/gpt2 "$model"
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(4000))).tofile(open("'"$work"'/ids.bin", "wb"))'
cat >"$work/tune.yaml" <<'YAML'
name: tune
ranks: 3
threads: 1
strategy: fsdp
model: {from: model}
data: {train: ids.bin, tokens: nanogpt}
batch: {sequences: 2}
schedule: {steps: 4}
evaluate: {every: 2, sequences: 6}
checkpoint: {every: 2}
log: {every: 1}
YAML
# A step without a change: the rate is below fp32's smallest number, so that the parameters stay.
still=(--set optimizer.kind=sgd --set optimizer.lr=1e-99 --set optimizer.weight_decay=0 --set schedule.steps=1)

# same FOLDER FILE...: compares the tensors of both, by name, type, shape and bytes
same() {
    python3 - "$@" <<'PY' >"$work/err" 2>&1 || fail "not the same tensors: $*"
import json, pathlib, struct, sys
def tensors(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        raw = path.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        for name, entry in json.loads(raw[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                assert name not in found
                found[name] = (entry["dtype"], entry["shape"], raw[8 + length + begin:8 + length + end])
    assert found
    return found
a, b = map(tensors, sys.argv[1:3])
assert a.keys() == b.keys(), set(a) ^ set(b)
for name in a:
    assert a[name] == b[name], name
PY
}

# --- import and export, to the bit: with three ranks that hold a third each, with one, in fp32, in bf16, in several
# files
expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --json
json "o['state'] == 'finished'"
run=$(field "o['run']")
expect 0 export --to hf "$run" "$work/hf" --json
json "o['to'] == 'hf'" "o['path'] == '$work/hf'" "o['runs'] == ['$run']"
[ "$(cd "$work/hf" && echo *)" = "config.json generation_config.json model.safetensors" ] || fail "has $(ls "$work/hf")"
same "$model" "$work/hf"
python3 - "$model/config.json" "$work/hf/config.json" <<'PY' >"$work/err" 2>&1 || fail "config.json is another"
import json, sys
before, after = (json.load(open(path)) for path in sys.argv[1:])
before.setdefault("tie_word_embeddings", True)
before.pop("dtype", None)
before["torch_dtype"] = "float32"
assert before == after, (before, after)
PY
grep -q '"layer_norm_epsilon": 1e-05[,]*$' "$work/hf/config.json" || fail "numbers are not as Python writes them"
expect 0 show "$run"
says "weights" "$model"
expect 0 show "$run" --json
json "o['recipe']['model']['from'] == '$model'" "o['recipe']['model']['layers'] == 2" \
    "o['recipe']['model']['vocab'] == 61" "o['recipe']['batch']['tokens'] == 16" \
    "o['provenance'][0]['weights']['kind'] == 'huggingface'" \
    "len(o['provenance'][0]['weights']['files'][0]['xxh3_128']) == 32" "'model.layers' in o['origins']"

expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --json --set strategy=ddp --set ranks=1 \
    --set model.from=tests/golden/huggingface/gpt2_parts
halves=$(field "o['run']")
expect 0 export --to hf "$halves" "$work/halves" --dtype bf16 --file-mb 0.003 --json
[ "$(ls "$work/halves" | grep -c '^model-0000[1-9]-of-0000[1-9].safetensors$')" -gt 2 ] || fail "has $(ls "$work/halves")"
same tests/golden/huggingface/gpt2_parts "$work/halves"
expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --json --set strategy=dp --set ranks=2 \
    --set model.from="$work/halves"
expect 0 export --to hf "$(field "o['run']")" "$work/again" --dtype bf16
same "$work/halves" "$work/again"


# --- greedy text equals that of transformers
numbers() { # name: the integers of a tensor of the fixture
    python3 - "$1" <<'PY'
import array, json, struct, sys
raw = open("tests/golden/huggingface/gpt2_expect.safetensors", "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
begin, end = json.loads(raw[8:8 + length])[sys.argv[1]]["data_offsets"]
print(*array.array("i", raw[8 + length + begin:8 + length + end]))
PY
}
expect 0 generate "$run" --prompt "$(numbers prompt)" --temperature 0 --tokens 10
[ "$(xargs <"$work/out")" = "$(numbers prompt) $(numbers greedy)" ] || fail "writes other tokens: $(cat "$work/out")"

# --- every family, imported and exported
for family in llama qwen2 qwen3; do
    expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --json --set name=$family --set batch.tokens=16 \
        --set model.from=tests/golden/huggingface/$family
    expect 0 export --to hf $family "$work/$family"
    same tests/golden/huggingface/$family "$work/$family"
    expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --set name=$family-again --set model.from="$work/$family" --set batch.tokens=16
    expect 0 export --to hf $family-again "$work/$family-again"
    same "$work/$family" "$work/$family-again"
    python3 -c 'import json, sys; a, b = (json.load(open(path)) for path in sys.argv[1:]); assert a == b' \
        "$work/$family/config.json" "$work/$family-again/config.json" || fail "config.json is another"
done

# --- .bin files of llm.c and llama2.c are imported; the export equals the weights that they were made from
expect 0 launch "$work/tune.yaml" "${still[@]}" --wait --json --set name=llmc --set model.from=tests/golden/bin/llmc.bin
expect 0 export --to hf llmc "$work/llmc"
same tests/golden/huggingface/gpt2 "$work/llmc"
expect 0 show llmc --json
json "o['provenance'][0]['weights']['kind'] == 'bin'" "o['recipe']['model']['vocab'] == 61"
expect 0 launch "$work/tune.yaml" --wait --json --set name=stories --set model.from=tests/golden/bin/llama2c_v0.bin \
    --set batch.tokens=16
expect 0 resume stories --wait --json --set schedule.steps=6
json "o['steps'] == 6" "o['attempt'] == 2"
expect 0 export --to hf stories "$work/stories"
head -c 15000 tests/golden/bin/llama2c_v0.bin >"$work/short.bin"
expect 2 validate "$work/tune.yaml" --set model.from="$work/short.bin"
says "'$work/short.bin': by its header 15696 bytes of weights follow, and 14972 do: the file is cut off or damaged"
expect 2 validate "$work/tune.yaml" --set model.from=tests/golden/bin/llmc.bin --set model.layers=3
says "'model.layers' is 3, and" "llmc.bin' has 2 ('n_layer'): leave it out"
expect 2 validate "$work/tune.yaml" --set model.from="$work/ids.bin"
says "ids.bin' is not a .bin file of llm.c (GPT-2) or llama2.c"

# --- the model trains, and resumes without the folder; another run starts from its best checkpoint
expect 0 launch "$work/tune.yaml" --wait --json
tuned=$(field "o['run']")
rm -r "$model"
expect 0 resume "$tuned" --wait --json --set schedule.steps=6
json "o['steps'] == 6" "o['attempt'] == 2"
expect 0 fork "$tuned@4" --wait --json --set schedule.steps=7 --name forked
json "o['steps'] == 7"
expect 0 export --to hf forked "$work/forked"
expect 2 resume "$tuned" --set model.from="$work/hf" --set schedule.steps=8
says "'model.from' is only for a new run"
expect 0 launch "$work/tune.yaml" --set model.from=run:tune@best --set name=next "${still[@]}" --wait --json
expect 0 export --to hf next "$work/next"
expect 0 export --to hf "$tuned" "$work/best" --checkpoint best
same "$work/best" "$work/next"
[ -f "$work/next/generation_config.json" ] || fail "what the first weights came with is lost"
expect 0 export --to hf "$tuned" "$work/four" --checkpoint 4
expect 0 export --to hf "$tuned" "$work/four too" --checkpoint "$work/state/dtrun/runs/$tuned/checkpoints/step-00000004"
same "$work/four" "$work/four too"

# --- refusals of export
expect 2 export --to hf "$tuned" "$work/four"
says "already exists and is not empty"
one_line
mkdir "$work/empty"
expect 0 export --to hf "$tuned" "$work/empty/"
expect 3 export --to hf "$tuned" "$work/no/such/folder"
says "cannot make"
expect 2 export --to hf "$tuned" "$work/x" --checkpoint 3
says "no checkpoint of step 3"
expect 2 export --to onnx "$tuned" "$work/x"
expect 2 export --to csv "$tuned" --dtype bf16
says "needs --to hf"
expect 2 export --to hf "$tuned" forked "$work/x"
says "takes 1 run at most"
expect 2 export --to hf nothing "$work/x"
[ ! -e "$work/x" ] || fail "something was left"
ls -d "$work"/*.partial* >"$work/err" 2>/dev/null && fail "something half made was left"

# --- weights that do not fit are named, before a run exists
runs=$(ls "$work/state/dtrun/runs" | wc -l)
cp -r tests/golden/huggingface/gpt2 "$model"
refused() { # text... -- arguments
    local texts=()
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    expect 2 launch "$work/tune.yaml" --wait "${@:2}"
    says "${texts[@]}"
    [ "$(ls "$work/state/dtrun/runs" | wc -l)" = "$runs" ] || fail "a run was left"
}
broken() { # makes a copy of the folder in $work/broken, to damage
    rm -rf "$work/broken"
    cp -r "$model" "$work/broken"
}
change() { # key, value: sets a value in config.json of this copy
    broken
    python3 - "$work/broken/config.json" "$1" "$2" <<'PY'
import json, sys
path, key, value = sys.argv[1:]
config = json.load(open(path))
config[key] = json.loads(value)
json.dump(config, open(path, "w"))
PY
}
from=(-- --set model.from="$work/broken")
refused "'model.layers' is 3" "('n_layer')" "leave it out" -- --set model.layers=3
refused "'model.kind' is \"mlp\"" -- --set model.kind=mlp
refused "'model.embed' is 768" "('n_embd')" -- --set model.preset=gpt2-small
refused "'batch.tokens' is 17" -- --set batch.tokens=17
expect 0 validate "$work/tune.yaml" --set batch.tokens=8
refused "'$work/nothing' does not exist" -- --set model.from="$work/nothing"
refused "unknown run 'nobody'" -- --set model.from=run:nobody@best
refused "expected a step" -- --set model.from=run:tune@worst
change model_type '"bert"'
refused "a model of type 'bert' is not supported" "${from[@]}"
change rotary_dim 64
refused "has 'rotary_dim', which dtrun does not know" "${from[@]}"
change n_layer 3
refused "has no tensor 'transformer.h.2.ln_1.weight'" "${from[@]}"
change n_embd 24
refused "is 61 x 12 in the file and 61 x 24 in this model" "${from[@]}"
change vocab_size 62
refused "is 61 x 12 in the file and 62 x 12 in this model" "${from[@]}"
broken
truncate -s 5000 "$work/broken/model.safetensors"
refused "model.safetensors" "does not fit its shape or the file's" "${from[@]}"
broken
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$work/broken/model.safetensors"
refused "is a Git LFS pointer" "${from[@]}"
broken
rm "$work/broken/config.json"
refused "has no config.json" "${from[@]}"
broken
rm "$work/broken/model.safetensors"
refused "the download is incomplete" "${from[@]}"
rm -rf "$work/broken"
cp -r tests/golden/huggingface/gpt2_parts "$work/broken"
rm "$work/broken/model-00002-of-"*
refused "names 'model-00002-of-" "the download is incomplete" "${from[@]}"
refused "ids.bin" -- --set model.from="$work/ids.bin"
# leftover of an interrupted run
cp -r "$work/state/dtrun/runs/$tuned/checkpoints/step-00000004" "$work/cut"
rm "$work/cut/complete"
refused "is incomplete" -- --set model.from="$work/cut"
# tokens beyond the vocabulary of the weights
python3 -c '
import array
array.array("H", [i % 70 for i in range(4000)]).tofile(open("'"$work"'/large.bin", "wb"))'
refused "is 61, and the vocabulary has 61" -- --set data.train="$work/large.bin"

# A head equal to the embedding may be stored again, a different one may not; files may be links, as in a download
# cache.
with_head() { # value by which the head differs
    python3 - "$model" "$work/broken" "$1" <<'PY'
import json, pathlib, shutil, struct, sys
model, out, by = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
shutil.rmtree(out, ignore_errors=True)
(out / "blobs").mkdir(parents=True)
raw = (model / "model.safetensors").read_bytes()
length = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
begin, end = header["transformer.wte.weight"]["data_offsets"]
head = bytearray(data[begin:end])
head[:4] = struct.pack("<f", struct.unpack("<f", head[:4])[0] + by)
header["lm_head.weight"] = {"dtype": "F32", "shape": header["transformer.wte.weight"]["shape"],
                            "data_offsets": [len(data), len(data) + len(head)]}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
(out / "blobs/a").write_bytes(struct.pack("<Q", len(text)) + text + data + head)
(out / "model.safetensors").symlink_to("blobs/a")
shutil.copy(model / "config.json", out / "blobs/b")
(out / "config.json").symlink_to("blobs/b")
PY
}
with_head 0
expect 0 launch "$work/tune.yaml" --set model.from="$work/broken" "${still[@]}" --wait --set name=linked
expect 0 export --to hf linked "$work/linked"
same "$model" "$work/linked"
runs=$(ls "$work/state/dtrun/runs" | wc -l)
with_head 0.5
refused "'lm_head.weight' differs from the token embedding" "${from[@]}"

# Values that are not numbers are found by whatever reads them.
python3 - "$model/model.safetensors" <<'PY'
import struct, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-4, 2)
    file.write(struct.pack("<f", float("nan")))
PY
expect 1 launch "$work/tune.yaml" --wait --json --set failure.max_restarts=3 --set name=nan
json "o['attempt'] == 1" # a restart would read the same file
expect 0 logs nan
says "contains NaN, which is not a valid weight"

# --- text that is not tokenized as the weights were trained
cp -r tests/golden/huggingface/gpt2_parts "$work/words"
yes "to be or not to be" | command head -n 400 >"$work/words.txt"
expect 0 validate "$work/tune.yaml" --set model.from="$work/words" --set data.train="$work/words.txt" --set data.tokens=char
says "character by character" "their own tokenizer"

# --- text with the tokenizer of the weights, unless the recipe has its own
cat >"$work/words.yaml" <<'YAML'
model: {from: words}
data: {train: words.txt}
batch: {sequences: 2, tokens: 8}
schedule: {steps: 2}
YAML
expect 0 validate "$work/words.yaml" # no checkpoint exists yet
says "character by character" "their own tokenizer"
python3 - "$work/words/tokenizer.json" <<'PY'
import json, sys
letters = "ĠĊtobern"
json.dump({"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
           "decoder": {"type": "ByteLevel"},
           "model": {"type": "BPE", "vocab": {l: i for i, l in enumerate([*letters, "to", "be"])},
                     "merges": ["t o", "b e"]}}, open(sys.argv[1], "w"))
PY
expect 0 validate "$work/words.yaml" --origins
says "data.tokenizer" "model.from"
grep -q "character by character" "$work/out" "$work/err" && fail "warned of text that is read by the weights' tokenizer"
expect 0 launch "$work/words.yaml" --wait --json
json "o['state'] == 'finished'"
run=$(field "o['run']")
expect 0 show "$run" --json
json "o['recipe']['data']['tokenizer'] == '$work/words'"
rm -r "$work/words" # the checkpoint has the tokenizer
expect 0 resume "$run" --set schedule.steps=3 --wait
says "no longer at '$work/words'" "from the checkpoint"
expect 2 resume "$run" --set schedule.steps=4 --set data.tokenizer="$work/words" --wait
says "$work/words"
expect 0 fork "$run" --set schedule.steps=5 --wait
expect 0 generate "$run" --prompt "to be" --tokens 4
[[ $(cat "$work/out") == "to be"* ]] || fail "writes $(cat "$work/out")"

# --- where a generated text ends: by generation_config.json, else by config.json; also for a run on ids
ends() { # file, eos_token_id: the expected end token
    python3 - "$work/ends/$1" "$2" <<'PY'
import json, sys
config = json.load(open(sys.argv[1]))
config["eos_token_id"] = json.loads(sys.argv[2])
json.dump(config, open(sys.argv[1], "w"))
PY
    expect 0 launch "$work/tune.yaml" "${still[@]}" --set model.from="$work/ends" --set name=ends --wait
    expect 0 show ends --json
    json "o['recipe']['model']['end_ids'] == $3"
}
cp -r tests/golden/huggingface/llama "$work/ends"
ends config.json 7 "[]" # generation_config.json exists, and only it counts
rm "$work/ends/generation_config.json"
ends config.json 7 "['7']"
cp tests/golden/huggingface/llama/generation_config.json "$work/ends"
ends generation_config.json "[2, 7]" "['2', '7']"
ends generation_config.json "[$(seq -s, 0 60)]" "[str(i) for i in range(61)]"
expect 0 generate ends --prompt "12 7" --tokens 9 --json
json "o['tokens'] == 1" "o['ended'] == 'end_of_text'"
expect 0 generate ends --prompt "12 7" --tokens 9 --beam 2 --json
json "o['tokens'] == 1" "o['ended'] == 'end_of_text'"
expect 0 generate ends --prompt "12 7" --tokens 9 --past-end --json
json "o['tokens'] == 9" "o['ended'] == 'tokens'"
