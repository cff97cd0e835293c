#!/usr/bin/env bash
# What a resume can change: other data and another model are refused by name before an attempt exists; --new-data starts
# other data at their beginning, --new-model computes differently.
. "$(dirname "$0")/lib.sh"
make_tiny
sed -n 1,200p "$work/corpus.txt" >"$work/valid.txt"
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.period_steps=100
run=$(field "o['run']")
untouched() {
    local said=$subject
    expect 0 show "$run" --json
    json "o['state'] == 'finished'" "len(o['attempts']) == 1" "o['step'] == 60"
    [ "$(ls -d "$work/state/dtrun/runs/$run"/attempt-* | wc -l)" = 1 ] || fail "a folder was left"
    subject=$said
}
refused() { # expected text, then the settings
    local words=$1
    shift
    expect 2 resume "$run" --wait --set schedule.steps=80 "$@"
    one_line
    says "$words"
}
refused "seed was 1337, is 2" --set seed=2
says "--new-data"
refused "data.split was 0.1, is 0.3" --set data.split=0.3
refused "batch.tokens was 16, is 8" --set batch.tokens=8
refused "data.tail was wrap, is drop" --set data.tail=drop
refused "file 1 was read as char, is as byte" --set data.tokens=byte
refused "there were 1 files, there are 2" --set "data.train=[$work/corpus.txt, $work/valid.txt]"
refused "data.split was 0.1, is none" --set "data.validation=[$work/valid.txt]"
refused "it is from another model" --set model.layers=2
refused "in this model" --set model.embed=32
refused "no parameter 'lm_head.weight'" --set model.tied=false
refused "model.activation was gelu_tanh, is gelu " --set model.activation=gelu
says "--new-model"
refused "model.heads was 2, is 1 " --set model.heads=1
refused "optimizer" --set optimizer.kind=sgd --set optimizer.momentum=0.9
untouched
cp "$work/corpus.txt" "$work/kept.txt"
echo "and a line more" >>"$work/corpus.txt"
refused "file 1 had"
tr q Q <"$work/kept.txt" >"$work/corpus.txt"
refused "file 1 has other content"
refused "the character 'Q'" --new-data # a letter that is not in the vocabulary
mv "$work/kept.txt" "$work/corpus.txt"
untouched

# An attempt that fails before its first step, for any reason, leaves the run unchanged.
DTRUN_ENGINE=/bin/false expect 1 resume "$run" --wait --set schedule.steps=80 --set optimizer.lr=1 \
    --set failure.max_restarts=0
says "the run is still finished"
lacks "resume $run"
expect 0 show "$run" --json
json "o['state'] == 'finished'" "o['step'] == o['steps_total'] == 60" \
    "[a['state'] for a in o['attempts']] == ['finished', 'failed']" \
    "o['recipe']['optimizer']['lr'] == 3e-3"
expect 2 resume "$run"
says "has completed all its 60 steps"

# Another number of ranks changes the tokens of a step, which is reported; batch.total keeps them.
expect 0 launch --wait --json "$work/tiny.yaml" --set ranks=2 --set schedule.steps=6
fewer=$(field "o['run']")
expect 0 resume "$fewer" --wait --set ranks=1 --set schedule.steps=8
says "a step now has 32 tokens (1 rank), before 64, and the learning rate is the same" \
    "--set batch.total=4 keeps the number"
expect 0 resume "$fewer" --wait --set schedule.steps=10 # as in the attempt before
lacks "a step now has"
expect 0 fork "$fewer" --wait --set ranks=3 --set schedule.steps=14
says "a step now has 96 tokens (3 ranks), before 32"
expect 2 launch "$work/tiny.yaml" --set ranks=3 --set batch.total=8
one_line
says "'batch.total' 8 cannot be divided: 3 ranks x 2 sequences take 6 at once" "such as 6,"
expect 2 launch "$work/tiny.yaml" --set batch.total=8 --set batch.accumulate=2
says "'batch.accumulate' 2 and 'batch.total' 8 cannot be combined"
expect 0 launch --wait --json "$work/tiny.yaml" --set ranks=2 --set batch.total=8 --set schedule.steps=6
kept=$(field "o['run']")
for ranks in 1 4; do # 4 micro-steps, then 1
    expect 0 resume "$kept" --wait --set ranks=$ranks --set schedule.steps=$((6 + 4 * ranks))
    lacks "a step now has"
done

# An allowed change resumes, also with data of equal content elsewhere.
cp "$work/corpus.txt" "$work/moved.txt"
expect 0 resume "$run" --wait --json --set schedule.steps=70 --set "data.train=$work/moved.txt" \
    --set optimizer.lr=1e-3 --set evaluate.every=5 --set ranks=1 --set strategy=fsdp
json "o['state'] == 'finished'" "o['steps'] == 70"

# New data start at their beginning, and belong to the run from then on.
expect 0 resume "$run" --wait --json --set schedule.steps=80 --set seed=2 --new-data
json "o['state'] == 'finished'" "o['steps'] == 80"
expect 0 resume "$run" --wait --set schedule.steps=90 --set model.activation=gelu \
    --set model.dropout=0.1 --new-model
says "another model with the same parameters: model.activation was gelu_tanh, is gelu"
expect 2 resume "$run" --wait --set schedule.steps=100 --set seed=1337
says "seed was 2, is 1337"
at() { python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(o["epoch"], o["sample"])' \
    "$work/state/dtrun/runs/$run/checkpoints/step-000000$1/index.json"; }
[ "$(at 80)" = "0 20" ] || fail "after ten steps of two sequences in new data: $(at 80)"

# A checkpoint without fingerprints, and a changed field of the model: reported, and resumed.
index=$work/state/dtrun/runs/$run/checkpoints/step-00000090/index.json
python3 - "$index" <<'PY'
import json, sys
index = json.load(open(sys.argv[1]))
for key in ('data', 'steps_total'):
    del index[key]
del index['recipe']['model']['activation']
json.dump(index, open(sys.argv[1], 'w'))
PY
"$dtrun" generate "$run" --checkpoint 90 >/dev/null 2>"$work/err" && fail "a damaged one is taken"
printf '%s\n' "$(sed -n 's/.*its digest is \([0-9a-f]*\),.*/\1/p' "$work/err")" >"${index%/*}/complete"
expect 0 resume "$run" --wait --set schedule.steps=100 --set model.activation=gelu_tanh
says "does not name its training data"

# A stopped run whose next attempt fails before its first step continues with its previous recipe.
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=1000000000 --set schedule.period_steps=100
run=$(cat "$work/out")
within 60 step_reached "$run" 5
expect 0 stop "$run"
DTRUN_ENGINE=/bin/false expect 1 resume "$run" --wait --set optimizer.lr=1 --set failure.max_restarts=0
says "resume $run"
expect 0 status "$run" --json
json "o['state'] == 'failed'"
at=$(field "o['step']")
expect 0 resume "$run" --wait --set schedule.steps=$((at + 5))
says "attempt 2 failed before its first step: the run continues with the recipe of attempt 1"
expect 0 show "$run" --json
json "o['state'] == 'finished'" "o['recipe']['optimizer']['lr'] == 3e-3" "o['attempt'] == 3"
