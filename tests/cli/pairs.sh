#!/usr/bin/env bash
# A translation model trains on sentence pairs: text is tokenized once, every strategy and number of ranks has the
# losses of one process, a rank may die, and problems of the data are reported before a run.
. "$(dirname "$0")/lib.sh"

python3 - "$work" <<'PY'
import random, sys
draw = random.Random(5)
words = [f"wort{i}" for i in range(30)]
for name, count in (("train", 300), ("valid", 40)):
    with open(f"{sys.argv[1]}/{name}.de", "w") as de, open(f"{sys.argv[1]}/{name}.en", "w") as en:
        for _ in range(count):
            line = [draw.choice(words) for _ in range(draw.randrange(1, 16))]
            de.write(" ".join(line) + "\n")
            en.write(" ".join(w.replace("wort", "word") for w in reversed(line) if w != "wort7") + " .\n")
with open(f"{sys.argv[1]}/dict.de.txt", "w") as file:
    file.writelines(f"{w} 9\n" for w in words)
with open(f"{sys.argv[1]}/dict.en.txt", "w") as file:
    file.writelines(f"{w.replace('wort', 'word')} 9\n" for w in words + ["."])
PY
cat >"$work/translate.yaml" <<'YAML'
model: {kind: transformer, layers: 1, heads: 2, embed: 16, ffn: 32, label_smoothing: 0.1}
data: {train: train, validation: valid, source: de, target: en, tokenizer: .}
batch: {max_tokens: 64, tokens: 20, accumulate: 4}
optimizer: {lr: 0.01}
schedule: {kind: constant, steps: 12}
evaluate: {every: 6}
checkpoint: {every: 5}
log: {every: 1}
YAML

expect 0 validate "$work/translate.yaml"
expect 0 data prepare "$work/translate.yaml"
says "data.train: 300 sentence pairs" "data.validation: 40 sentence pairs" "now in the cache"
expect 0 data prepare "$work/translate.yaml"
says "already in the cache"
expect 0 launch "$work/translate.yaml" --dry-run
says "pairs of at most 64 tokens"

losses() { # of the last run: one line for each metric
    expect 0 metrics last --name loss
    cut -d, -f2- "$work/out" | sed 's/,[^,]*$//' >"$1"
    expect 0 metrics last --name valid_loss
    cut -d, -f2- "$work/out" | sed 's/,[^,]*$//' >>"$1"
}

expect 0 launch "$work/translate.yaml" --wait --json
json "o['state'] == 'finished'" "o['steps'] == 12"
losses "$work/one"
python3 - "$work/one" <<'PY' || fail "it learns nothing"
import sys
rows = [float(line.rsplit(",", 1)[1]) for line in open(sys.argv[1]) if line[0].isdigit()]
assert rows[11] < 0.9 * rows[0], rows
PY

same_losses() { # metrics of the last run
    losses "$work/other"
    python3 - "$work/one" "$work/other" <<'PY' || fail "$1: other losses than one process"
import sys
one, other = ([line.split(",") for line in open(name) if line[0].isdigit()] for name in sys.argv[1:])
assert len(one) == len(other) == 14, (len(one), len(other))
for a, b in zip(one, other):
    x, y = float(a[2]), float(b[2])
    assert a[:2] == b[:2] and abs(x - y) <= 1e-5 * abs(x), (a, b)
PY
}

# every strategy, 1 to 4 ranks: a step is the same 4 batches
for how in "ddp 2 2" "ddp 4 1" "fsdp 2 2" "fsdp 4 1" "dp 2 2" "dp 4 1"; do
    read -r strategy ranks accumulate <<<"$how"
    expect 0 launch "$work/translate.yaml" --set "strategy=$strategy" --set "ranks=$ranks" \
        --set "batch.accumulate=$accumulate" --wait --json
    json "o['state'] == 'finished'"
    same_losses "$how"
done

# another number of ranks continues where two stopped, in the middle of an epoch
expect 0 launch "$work/translate.yaml" --set ranks=2 --set batch.accumulate=2 --set schedule.steps=6 --wait --json
expect 0 resume "$(field "o['run']")" --set ranks=4 --set batch.accumulate=1 --set schedule.steps=12 --wait
same_losses "resumed with 4 ranks"

# its dictionaries: where they exist, nothing is reported; where they are gone, those of the checkpoint are used
expect 0 fork last@10 --set schedule.steps=13 --wait
grep -q tokenizer "$work/err" && fail "a tokenizer that is there is said to be gone: $(cat "$work/err")"
mkdir "$work/dicts"
cp "$work"/dict.*.txt "$work/dicts"
expect 0 launch "$work/translate.yaml" --set "data.tokenizer=$work/dicts" --set schedule.steps=6 --wait
rm -r "$work/dicts"
expect 0 resume last --set schedule.steps=12 --wait
says "the tokenizer is no longer at"
same_losses "resumed with the checkpoint's dictionaries"

# a rank dies in the middle of an epoch: the losses have the same bits
expect 0 launch "$work/translate.yaml" --set ranks=2 --set batch.accumulate=2 --wait --json
whole=$(field "(o['loss'], o['valid_loss'])")
DTRUN_FAULT="kill 1@7" expect 0 launch "$work/translate.yaml" --set ranks=2 --set batch.accumulate=2 --wait --json
json "o['attempt'] == 2"
[ "$(field "(o['loss'], o['valid_loss'])")" = "$whole" ] || fail "the resumed run ends elsewhere than $whole"

# the steps of epochs are known in advance, also if another number of ranks continues
expect 0 launch "$work/translate.yaml" --set schedule.steps=0 --set schedule.epochs=2 --dry-run --json
steps=$(field "o['time']['steps'] if 'time' in o and 'steps' in o['time'] else o.get('steps')")
expect 0 launch "$work/translate.yaml" --set schedule.steps=0 --set schedule.epochs=2 --wait --json
json "o['steps'] == $steps"

# wrong data
head -n 299 "$work/train.en" >"$work/short.en"
cp "$work/train.de" "$work/short.de"
expect 2 launch "$work/translate.yaml" --set "data.train=$work/short" --wait
says "short.de' has 300 lines" "short.en' 299"
expect 2 launch "$work/translate.yaml" --set batch.tokens=10 --wait
says "sentence pairs are longer than batch.tokens 10" "data.too_long: drop"
expect 0 launch "$work/translate.yaml" --set batch.tokens=10 --set data.too_long=drop --set schedule.steps=2 --wait
says "they are left out"
expect 2 validate "$work/translate.yaml" --set data.tokenizer=nothing
says "data.tokenizer"
expect 2 validate "$work/translate.yaml" --set batch.max_tokens=0
says "'batch.max_tokens' is missing"
