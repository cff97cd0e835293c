#!/usr/bin/env bash
# Ranks that divide layers, combined with other features: published weights, separate and packed documents, a vocabulary
# from the data, forks, a loss scale that overflows, translation with BLEU, a stop.
. "$(dirname "$0")/lib.sh"

python3 - "$work" <<'PY'
import array, random, sys
draw = random.Random(1)
ids = array.array("H")
for _ in range(200):
    first = draw.randrange(2, 60)
    ids.extend((first + i) % 58 + 2 for i in range(draw.randrange(1, 24)))
    ids.append(1)
ids.tofile(open(sys.argv[1] + "/ids.bin", "wb"))
words = [f"w{i}" for i in range(200)]
for name, count in (("train", 200), ("valid", 20)):
    with open(f"{sys.argv[1]}/{name}.de", "w") as de, open(f"{sys.argv[1]}/{name}.en", "w") as en:
        for _ in range(count):
            line = [draw.choice(words) for _ in range(draw.randrange(1, 16))]
            de.write(" ".join(line) + "\n")
            en.write(" ".join(reversed(line)) + " .\n")
for side in ("de", "en"):
    with open(f"{sys.argv[1]}/dict.{side}.txt", "w") as file:
        file.writelines(f"{w} 9\n" for w in words + ["."])
PY
cat >"$work/text.yaml" <<'YAML'
ranks: 4
threads: 1
data: {train: ids.bin, tokens: nanogpt, split: 0.1}
batch: {total: 8, tokens: 16, sequences: 2}
optimizer: {lr: 3e-3}
schedule: {kind: constant, steps: 10}
evaluate: {every: 5}
checkpoint: {every: 5}
log: {every: 1}
YAML

# losses RUN FILE: "step metric value" of training and validation
losses() {
    "$dtrun" metrics "$1" --format csv |
        awk -F, '($3 == "loss" || $3 == "valid_loss" || $3 == "gradient_norm" || $3 == "valid_bleu") { print $2, $3, $4 }' |
        sort >"$2"
}
# train FILE OPTION...: launches a recipe; writes its losses to FILE and its id to $run
train() {
    local file=$1
    shift
    expect 0 launch "$@" --wait --json
    json "o['state'] == 'finished'"
    run=$(field "o['run']")
    losses "$run" "$work/$file"
}
# near A B COUNT: the same points, at least COUNT, to 1e-5
near() {
    subject="losses of $1 and $2"
    join -j 1 <(awk '{ print $1 "-" $2, $3 }' "$work/$1" | sort) <(awk '{ print $1 "-" $2, $3 }' "$work/$2" | sort) |
        awk -v count="$3" 'function abs(x) { return x < 0 ? -x : x }
            abs($2 - $3) > 1e-5 * abs($2) { bad = 1 } END { exit bad || NR < count }' ||
        fail "they differ: $(diff "$work/$1" "$work/$2" | head -4)"
}


# --- separate documents, packed: published weights, divided and joined again to the same bits
cp -r tests/golden/huggingface/llama "$work/llama"
apart=("$work/text.yaml" --set "model.from=$work/llama" --set data.cross_documents=false --set data.end_of_text=1
    --set data.pack=true)
train one "${apart[@]}" --set ranks=1 --set name=one
train four "${apart[@]}" --set tensor=2 --set strategy=fsdp --set name=four
near one four 22
base=$run
expect 0 launch "${apart[@]}" --set tensor=4 --set schedule.steps=1 --set optimizer.kind=sgd --set optimizer.lr=1e-99 \
    --set optimizer.weight_decay=0 --set evaluate.every=0 --set checkpoint.every=0 --set name=still --wait --json
expect 0 export --to hf "$(field "o['run']")" "$work/hf"
subject="the exported weights"
python3 - "$work/llama" "$work/hf" <<'PY' >"$work/err" 2>&1 || fail "they are others"
import json, struct, sys
def tensors(folder):
    raw = open(folder + "/model.safetensors", "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    return {name: raw[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]]
            for name, e in json.loads(raw[8:8 + length]).items() if name != "__metadata__"}
assert tensors(sys.argv[1]) == tensors(sys.argv[2])
PY

# --- a fork with another division, and with whole layers, continues with the same losses
for tensor in 4 1; do
    expect 0 fork "$base@5" --wait --json --set tensor=$tensor --set "name=fork-$tensor" --set strategy=ddp
    losses "$(field "o['run']")" "$work/fork-$tensor"
    near one fork-$tensor 22
done

# --- translation with BLEU
cat >"$work/pairs.yaml" <<'YAML'
name: pairs
threads: 1
model: {kind: transformer, layers: 1, heads: 4, embed: 16, ffn: 32, label_smoothing: 0.1, norm: pre}
data: {train: train, validation: valid, source: de, target: en, tokenizer: .}
batch: {max_tokens: 64, tokens: 20, accumulate: 2}
optimizer: {lr: 0.01}
schedule: {kind: constant, steps: 6}
evaluate: {every: 3, bleu: true, beam: 2}
checkpoint: {every: 3}
log: {every: 1}
YAML
train pairs-1 "$work/pairs.yaml" --set ranks=1
train pairs-4 "$work/pairs.yaml" --set ranks=2 --set tensor=2
near pairs-1 pairs-4 14
expect 0 generate "$run" --input "$work/valid.de" --beam 2
[ "$(wc -l <"$work/out")" -eq 20 ] || fail "it translated $(wc -l <"$work/out") lines of 20"
expect 0 score "$run" --input "$work/valid.de" --target "$work/valid.en" --json

# --- smoke tests two groups of two
expect 0 smoke "$work/pairs.yaml" --set ranks=8 --set tensor=4 --json
json "[c['verdict'] for c in o['recipes'][0]['checks']] == ['good'] * 8" \
    "'on 4 ranks' in o['recipes'][0]['checks'][0]['figure']"
