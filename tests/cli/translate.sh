#!/usr/bin/env bash
# A model learns to translate numbers in words into digits, and translates lines: greedy, by beam search, from a file
# and from stdin, as text and as JSON; lines that cannot be translated are reported.
. "$(dirname "$0")/lib.sh"
python3 examples/translation_corpus.py "$work"
data=(--set data.train="$work/train" --set data.validation="$work/valid" --set data.tokenizer="$work")
expect 0 launch examples/translation.yaml "${data[@]}" --set schedule.steps=400 --set evaluate.sequences=0 --wait --json
json "o['state'] == 'finished'" "o['valid_loss'] < 0.5"
run=$(field "o['run']") valid_loss=$(field "o['valid_loss']")

right() { # least file
    local count
    [ "$(wc -l <"$2")" -eq 200 ] || fail "$(wc -l <"$2") lines of 200"
    count=$(paste -d'|' "$2" "$work/valid.digits" | awk -F'|' '$1 == $2' | wc -l)
    [ "$count" -ge "$1" ] || fail "only $count of 200 lines are right"
}
expect 0 generate "$run" --input "$work/valid.words"
cp "$work/out" "$work/greedy"
right 120 "$work/greedy"
"$dtrun" generate "$run" --input - --beam 1 <"$work/valid.words" >"$work/out" || fail "nothing from stdin"
cmp "$work/out" "$work/greedy" || fail "one beam is not greedy"
sed 's/$/\r/' "$work/valid.words" >"$work/crlf"
expect 0 generate "$run" --input "$work/crlf"
cmp "$work/out" "$work/greedy" || fail "lines that end in CR LF become others"
expect 0 generate "$run" --input "$work/valid.words" --beam 4 --length-penalty 0.6 --json
json "len(o['lines']) == 200" "all(l['score'] < 0 for l in o['lines'])"
field "'\\n'.join(l['text'] for l in o['lines'])" >"$work/beam"
right 120 "$work/beam"
cp "$work/out" "$work/beam.json"
for batch in 1 3 200; do # in a batch a line has the same result as alone
    expect 0 generate "$run" --input "$work/valid.words" --batch $batch
    cmp "$work/out" "$work/greedy" || fail "$batch lines side by side have other translations"
    expect 0 generate "$run" --input "$work/valid.words" --batch $batch --beam 4 --length-penalty 0.6 --json
    cmp "$work/out" "$work/beam.json" || fail "$batch lines side by side are searched otherwise"
done

expect 0 generate "$run" --input "$work/valid.words" --precision bf16
right 120 "$work/out"

yes one | head -n 40 | tr '\n' ' ' >"$work/long"
expect 2 generate "$run" --input "$work/long"
says "line 1" "41 tokens" "at most 32"
expect 2 generate "$run" --input "$work/long" --prompt one
says "--input and a prompt cannot be combined"
: >"$work/empty"
expect 0 generate "$run" --input "$work/empty"
[ ! -s "$work/out" ] || fail "nothing became $(cat "$work/out")"

# The score of the validation pairs equals the validation loss; BLEU of the translations.
expect 0 score "$run" --input "$work/valid.words" --target "$work/valid.digits" --json
json "len(o['lines']) == 200" "abs(o['loss'] - $valid_loss) < 1e-5 * $valid_loss" \
    "abs(sum(l['log_likelihood'] for l in o['lines']) / -o['tokens'] - o['loss']) < 1e-9" \
    "abs(math.log(o['perplexity']) - o['loss']) < 1e-9"
sed 's/$/\r/' "$work/valid.digits" >"$work/digits.crlf"
expect 0 score "$run" --input "$work/crlf" --target "$work/digits.crlf"
says "all: loss 0."
[ "$(wc -l <"$work/out")" -eq 201 ] || fail "$(wc -l <"$work/out") lines"
head -n 199 "$work/valid.digits" >"$work/short"
expect 2 score "$run" --input "$work/valid.words" --target "$work/short"
says "--target ends before line 200 of --input"
expect 2 score "$run" --input "$work/short" --target "$work/valid.digits"
says "--input ends before line 200 of --target"
expect 2 score "$run" --input "$work/valid.words"
says "give the translations"
expect 2 score "$run" --input "$work/long" --target "$work/long"
says "line 1" "41 tokens" "at most 32"
expect 0 generate "$run" --input "$work/valid.words" --reference "$work/valid.digits"
cmp "$work/out" "$work/greedy" || fail "a reference changes translations"
says "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
expect 0 generate "$run" --input "$work/valid.words" --reference "$work/greedy" --tokenize none --json
json "abs(o['bleu']['bleu'] - 100) < 1e-9" "o['bleu']['brevity_penalty'] == 1" "'tok:none' in o['bleu']['signature']"
expect 2 generate "$run" --input "$work/valid.words" --reference "$work/short"
says "'$work/valid.words' has 200 lines, and --reference '$work/short' has 199"
[ ! -s "$work/out" ] || fail "it translates first, and looks at the reference then"
"$dtrun" generate "$run" --input - --reference "$work/short" <"$work/valid.words" >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "a pipe of 200 lines against 199 is taken"
says "the translation has 200 lines, and '$work/short' has 199"
expect 3 export --to hf "$run" "$work/hf"
says "a model of kind 'transformer' cannot be represented in Hugging Face's transformers"
[ ! -e "$work/hf" ] || fail "a refused export leaves a folder"
expect 2 generate "$run" --reference "$work/short"
says "needs --input"
expect 2 generate "$run" --input "$work/valid.words" --reference "$work/nothing"
says "no file"

# A blank line stays blank, and its neighbours have the same result as without it.
{ echo; head -n 2 "$work/valid.words"; printf ' \t\n\r\n'; sed -n 3p "$work/valid.words"; echo; } >"$work/blank"
for beam in 1 3; do
    expect 0 generate "$run" --input "$work/blank" --beam $beam
    cp "$work/out" "$work/blank.out"
    head -n 3 "$work/valid.words" >"$work/three"
    expect 0 generate "$run" --input "$work/three" --beam $beam
    { echo; head -n 2 "$work/out"; echo; echo; sed -n 3p "$work/out"; echo; } | cmp - "$work/blank.out" ||
        fail "blank lines: $(cat "$work/blank.out")"
done

# A file of translations is complete, or unchanged.
expect 0 generate "$run" --input "$work/valid.words" --output "$work/file"
cmp "$work/file" "$work/greedy" || fail "the file has other translations"
[ ! -s "$work/out" ] || fail "what goes into a file is shown too"
expect 2 generate "$run" --input "$work/valid.words" --output "$work/file"
cmp "$work/file" "$work/greedy" || fail "a refusal changed the file"
printf 'one\n\xff\n' >"$work/broken"
expect 2 generate "$run" --input "$work/broken" --output "$work/file" --force
says "line 2"
cmp "$work/file" "$work/greedy" || fail "half a translation replaced the file"
expect 0 generate "$run" --input "$work/empty" --output "$work/file" --force
[ -f "$work/file" ] && [ ! -s "$work/file" ] || fail "nothing became $(cat "$work/file")"
expect 3 generate "$run" --input "$work/broken" --output "$work/missing/file"
says "cannot write '$work/missing/file'"
expect 2 generate "$run" --input "$work/broken" --output "$work/file" --json
says "--output and --json cannot be combined"
expect 2 generate "$run" --output "$work/other"
says "needs --input"
[ -z "$(find "$work" -maxdepth 1 -name 'file.*' -o -name other)" ] || fail "something is left beside it"

# If a model has learned line breaks within a sentence, a line of input still gives one line.
python3 - "$work/breaks.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as file:
    for i in range(64):
        file.write(json.dumps({"de": f"zeile {i % 8}", "en": "a\nb\r\nc"}) + "\n")
PY
cat >"$work/breaks.yaml" <<YAML
model: {kind: transformer, layers: 1, heads: 2, embed: 32, ffn: 32}
data: {train: breaks.jsonl, source: de, target: en, tokenizer: $PWD/tests/golden/tokens/gpt2.json, split: 0.9}
batch: {max_tokens: 128, tokens: 24}
optimizer: {lr: 0.01}
schedule: {kind: constant, steps: 60}
YAML
expect 0 launch "$work/breaks.yaml" --wait --json
printf 'zeile 1\nzeile 2\n' >"$work/two"
expect 0 generate "$(field "o['run']")" --input "$work/two"
printf 'a b  c\na b  c\n' | cmp - "$work/out" || fail "two lines became $(cat -A "$work/out")"
