#!/usr/bin/env bash
# The ranks of a run translate sentences, with BLEU, and score the translations: the output equals that of one process,
# to the byte.
. "$(dirname "$0")/lib.sh"
python3 examples/translation_corpus.py "$work"
data=(--set data.train="$work/train" --set data.validation="$work/valid" --set data.tokenizer="$work")
expect 0 launch examples/translation.yaml "${data[@]}" --set schedule.steps=110 --set evaluate.sequences=0 --wait --json
run=$(field "o['run']")
expect 0 generate "$run" --input "$work/valid.words" --threads 1
cp "$work/out" "$work/one"
for ranks in 1 3; do
    expect 0 generate "$run" --input "$work/valid.words" --ranks $ranks --threads 1 --output "$work/shared$ranks" --reference "$work/valid.digits"
    cmp "$work/one" "$work/shared$ranks" || fail "$ranks ranks translate otherwise"
    says "BLEU"
done
expect 0 generate "$run" --input "$work/valid.words" --threads 1 --beam 4 --length-penalty 0.6
cp "$work/out" "$work/one"
expect 0 generate "$run" --input "$work/valid.words" --ranks 2 --threads 1 --beam 4 --length-penalty 0.6 --output "$work/beams" --reference "$work/valid.digits" --json
cmp "$work/one" "$work/beams" || fail "2 ranks search otherwise"
json "o['bleu']['lines'] == 200" "o['task'] == 'generate'"
expect 0 score "$run" --input "$work/valid.words" --target "$work/valid.digits" --threads 1
cp "$work/out" "$work/one"
expect 0 score "$run" --input "$work/valid.words" --target "$work/valid.digits" --threads 1 --ranks 2 --wait
cmp "$work/one" "$work/out" || fail "2 ranks score otherwise"
head -n 199 "$work/valid.digits" >"$work/short"
expect 2 score "$run" --input "$work/valid.words" --target "$work/short" --ranks 2
says "/short' ends before line 200 of '"
expect 2 score "$run" --input "$work/valid.words" --ranks 2
says "give the translations too (--target, or lines.target in a recipe)"
yes one | head -n 40 | tr '\n' ' ' >"$work/long"
cat "$work/valid.words" "$work/long" >"$work/longer"
expect 1 generate "$run" --input "$work/longer" --ranks 2 --json
json "'line 201' in o['reason']" "o['attempt'] == 1"
