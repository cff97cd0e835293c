#!/usr/bin/env bash
# A user's tokenizer: JSON lines, csv and text are tokenized once, a run trains on them, its checkpoints contain the
# tokenizer, and problems of data or tokenizer are named.
. "$(dirname "$0")/lib.sh"
here=$PWD
python3 - "$work" <<'PY'
import json, sys
lines = ["The run %d isn't over: step %d of %d.\n  It goes on, caf\u00e9 \u4f60\u597d." % (i, i * 7, i * 11) for i in range(600)]
with open(sys.argv[1] + "/lines.jsonl", "w", newline="") as out:
    for i, text in enumerate(lines):
        out.write(json.dumps({"id": i, "body": text}) + ("\r\n" if i % 2 else "\n"))
with open(sys.argv[1] + "/lines.csv", "w", newline="") as out:
    out.write("id,body\r\n")
    for i, text in enumerate(lines):
        out.write('%d,"%s"\r\n' % (i, text.replace('"', '""')))
open(sys.argv[1] + "/text.txt", "w").write("\n".join(lines))
PY
mkdir "$work/tokenizer"
cp tests/golden/tokens/gpt2.json "$work/tokenizer/tokenizer.json"
cat >"$work/own.yaml" <<'YAML'
model: {layers: 1, heads: 2, embed: 16}
data: {train: lines.jsonl, tokenizer: tokenizer, field: body}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 6}
checkpoint: {every: 3}
ranks: 2
YAML

# --- tokenized once
expect 0 validate "$work/own.yaml"
[ ! -e "$work/cache/dtrun/tokens/"*/facts.json ] || fail "validate made tokens"
expect 0 data prepare "$work/own.yaml" --json
json "o['train']['documents'] == 600" "not o['train']['found']" "o['vocab'] == 420" "o['train']['broken'] == 0" \
    "o['train']['tokens'] > 600" "'validation' not in o"
jsonl=$(field "o['train']['tokens']")
expect 0 data prepare "$work/own.yaml"
says "600 documents" "already in the cache" "bytes a token"
expect 0 data prepare "$work/own.yaml" --set data.train="$work/lines.csv" --json
json "o['train']['documents'] == 600" "o['train']['tokens'] == $jsonl"
expect 0 data prepare "$work/own.yaml" --set data.train="$work/text.txt" --json
json "o['train']['documents'] == 1"

# --- a run
expect 0 launch --wait --json "$work/own.yaml" --set name=own
json "o['state'] == 'finished'" "o['steps'] == 6"
run=$(field "o['run']")
cmp "$work/state/dtrun/runs/$run/checkpoints/step-00000006/tokenizer.json" tests/golden/tokens/gpt2.json ||
    fail "the checkpoint has no tokenizer"
expect 0 show "$run" --json
json "o['recipe']['data']['train'] == ['$work/lines.jsonl']" "o['recipe']['data']['tokenizer'] == '$work/tokenizer'"
rm -r "$work/tokenizer" "$work/cache"
expect 0 generate "$run" --prompt "The café <|endoftext|>" --tokens 5 --json
json "o['prompt'] == 'The café <|endoftext|>'" "o['tokens'] == 5" "len(o['text']) > 0"

# --- resumed, with the same tokenizer and no other
mkdir "$work/tokenizer"
cp tests/golden/tokens/gpt2.json "$work/tokenizer/tokenizer.json"
expect 0 resume "$run" --wait --json --set schedule.steps=9
json "o['steps'] == 9"
cp tests/golden/tokens/qwen.json "$work/tokenizer/tokenizer.json"
expect 2 resume "$run" --set schedule.steps=12
expect 2 resume "$run" --set schedule.steps=12 --new-data
says "another tokenizer"

# --- a Unigram tokenizer: each document ends with its </s>, and generation returns text
cp tests/golden/tokens/t5.json "$work/tokenizer/tokenizer.json"
expect 0 launch --wait --json "$work/own.yaml" --set name=pieces --set schedule.steps=3 --set checkpoint.every=3
json "o['state'] == 'finished'"
expect 0 generate "$(field "o['run']")" --prompt "The run" --tokens 5 --json
json "o['prompt'] == 'The run'" "o['tokens'] == 5"
expect 0 data prepare "$work/own.yaml" --json
json "o['vocab'] == 361" "o['train']['documents'] == 600"

# --- refused by name
cp tests/golden/tokens/gpt2.json "$work/tokenizer/tokenizer.json"
expect 2 validate "$work/own.yaml" --set model.vocab=300
says "model.vocab is 300" "420 tokens"
expect 2 validate "$work/own.yaml" --set data.tokenizer="$work/nothing.json"
says "nothing.json"
printf '{"model": {"type": "WordLevel", "vocab": {}}}' >"$work/tokenizer/tokenizer.json"
expect 2 validate "$work/own.yaml"
says "WordLevel" "tokenizer.json"
cp tests/golden/tokens/gpt2.json "$work/tokenizer/tokenizer.json"
expect 2 data prepare "$work/own.yaml" --set data.field=text
says "600 of 600 lines have no text under 'text'" "lines.jsonl:1" "the field is missing"
expect 2 data prepare "$work/own.yaml" --set data.train="$work/lines.csv" --set data.field=text
says "no column 'text'"
expect 2 validate "$work/own.yaml" --set data.tokens=char
says "leave data.tokens out"
printf 'good\n\xff\xfe\n' >"$work/bad.txt"
expect 2 data prepare "$work/own.yaml" --set data.train="$work/bad.txt"
says "bad.txt" "byte 5"
{ cat "$work/lines.jsonl"; printf '{"body": "\\ud800"}\n{"body": 3}\n\n{"body": ""}\nnot json\n'; } >"$work/more.jsonl"
expect 0 data prepare "$work/own.yaml" --set data.train="$work/more.jsonl" --json
json "o['train']['documents'] == 600" "o['train']['broken'] == 3" "o['train']['tokens'] == $jsonl"
says "left out 3 lines" "more.jsonl:601" "more.jsonl:602" "more.jsonl:605"
printf 'no text\n' >>"$work/more.jsonl"
for again in 1 2; do # also with tokens that exist
    expect 0 data prepare "$work/own.yaml" --set data.train="$work/more.jsonl"
    says "left out 4 lines" "more.jsonl:605 and 1 more"
done
printf '{"body": ""}\n' >"$work/nothing.jsonl"
expect 2 data prepare "$work/own.yaml" --set data.train="$work/nothing.jsonl"
says "all documents are empty"

# --- a tokenizer trained on the user's text
expect 0 data train-tokenizer "$work/lines.jsonl" "$work/lines.csv" --field body --vocab 320 -o "$work/learned.json" --json
json "o['vocab'] == 320" "o['documents'] == 1200" "o['broken'] == 0" "o['file'].endswith('learned.json')"
expect 2 data train-tokenizer "$work/lines.jsonl" --field body -o "$work/learned.json"
says "exists" "--force"
expect 0 data train-tokenizer "$work/*.jsonl" --field body --vocab 100000 --split qwen --force -o "$work/learned.json"
says "less than --vocab 100000"
expect 0 data train-tokenizer "$work/more.jsonl" --field body --force -o "$work/learned.json"
says "left out 4 lines"
expect 0 launch --wait --json "$work/own.yaml" --set data.tokenizer="$work/learned.json" --set name=learned
json "o['state'] == 'finished'"
expect 2 data train-tokenizer
says "FILE"
expect 2 data train-tokenizer "$work/lines.jsonl" -o "$work/x.json"
says "600 of 600 lines have no text under 'text'"
expect 2 data train-tokenizer "$work/bad.txt" -o "$work/x.json"
says "bad.txt" "byte 5"
expect 2 data train-tokenizer "$work/text.txt" --set a=b
says "--set does not apply to"
expect 2 data prepare "$work/own.yaml" --vocab 300
says "--vocab does not apply to"
[ ! -e "$work/x.json" ] || fail "a tokenizer was written"

# --- tokens that the tokenizer puts around a text: once a document, once a prompt
python3 - "$work" <<'PY'
import json, sys
tokenizer = json.load(open("tests/golden/tokens/gpt2.json"))
piece = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": 420, "content": "<s>"})
tokenizer["post_processor"] = {
    "type": "TemplateProcessing", "single": [piece("<s>"), {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [420], "tokens": ["<s>"]}}}
tokenizer["truncation"] = {"max_length": 5, "direction": "Right", "strategy": "LongestFirst", "stride": 0}
json.dump(tokenizer, open(sys.argv[1] + "/begins.json", "w"))
PY
expect 0 data prepare "$work/own.yaml" --set data.tokenizer="$work/begins.json"
says "600 documents" "each as '<s>' TEXT" "truncation and padding of the tokenizer are ignored"
expect 0 data prepare "$work/own.yaml" --set data.tokenizer="$work/begins.json" --json
json "o['train']['tokens'] == $jsonl + 600" "o['vocab'] == 421"
python3 - "$(field "o['train']['files'][0]")" <<'PY' || fail "documents do not begin with <s>"
import struct, sys
data = open(sys.argv[1], "rb").read()[1024:]
ids = struct.unpack("<%dH" % (len(data) // 2), data)
begins = [i for i, id in enumerate(ids) if id == 420]
assert begins[0] == 0 and len(begins) > 1 and all(ids[i - 1] == 0 for i in begins[1:]), begins[:3]
PY
expect 0 data prepare "$work/own.yaml" --set data.tokenizer="$work/begins.json" --set data.train="$work/text.txt" --json
json "o['train']['documents'] == 1"
python3 - "$(field "o['train']['files'][0]")" <<'PY' || fail "a text does not begin with <s> once"
import struct, sys
data = open(sys.argv[1], "rb").read()[1024:]
ids = struct.unpack("<%dH" % (len(data) // 2), data)
assert ids[0] == 420 and ids.count(420) == 1, ids[:9]
PY
expect 0 launch --wait --json "$work/own.yaml" --set data.tokenizer="$work/begins.json" --set name=begins
drawn=(--tokens 12 --temperature 4 --json)
expect 0 generate begins --prompt "The run" "${drawn[@]}"
with=$(field "o['text']")
expect 0 generate begins --prompt "The run" "${drawn[@]}" --no-special
without=$(field "o['text']")
expect 0 generate begins --prompt "<s>The run" "${drawn[@]}" --no-special
[ "$(field "o['text']")" = "$with" ] || fail "the token before a prompt is not <s>"
[ "$with" != "$without" ] || fail "--no-special makes no difference"

# --- two preparations at once, and an interrupted one
rm -rf "$work/cache"
python3 -c '
for i in range(200000): print("line %d says something that is not like line %d" % (i, i * 3))' >"$work/large.txt"
"$dtrun" data prepare "$work/own.yaml" --set data.train="$work/large.txt" --json >"$work/first" 2>/dev/null &
expect 0 data prepare "$work/own.yaml" --set data.train="$work/large.txt" --json
wait $! || fail "the other one failed"
python3 - "$work/first" "$work/out" <<'PY' || fail "two at once differ"
import json, sys
a, b = (json.load(open(path))["train"] for path in sys.argv[1:])
assert a["tokens"] == b["tokens"] and a["files"] == b["files"] and len(a["files"]) > 3, (a, b)
PY
whole=$(field "o['train']['tokens']")
folder=$(dirname "$(field "o['train']['files'][0]")")
cat "$folder"/part-*.bin | sha256sum >"$work/before"
rm "$folder/facts.json" "$folder/part-00002.bin"
expect 0 data prepare "$work/own.yaml" --set data.train="$work/large.txt" --json
json "o['train']['tokens'] == $whole"
cat "$folder"/part-*.bin | sha256sum | cmp - "$work/before" || fail "what was taken up again is another"

# The whole file tokenized at once has the same tokens as its parts.
python3 - "$work/large.txt" "$folder" "${DTRUN_BIN}/tokens_show" "$here/tests/golden/tokens/gpt2.json" <<'PY' || fail "parts differ from the whole"
import glob, struct, subprocess, sys
text = open(sys.argv[1], "rb").read()
shown = subprocess.run([sys.argv[3], sys.argv[4]], input=struct.pack("<I", len(text)) + text, stdout=subprocess.PIPE, check=True).stdout
whole = struct.unpack("<%di" % struct.unpack("<I", shown[:4]), shown[4:])
parts = []
for path in sorted(glob.glob(sys.argv[2] + "/part-*.bin")):
    data = open(path, "rb").read()[1024:]
    parts += struct.unpack("<%dH" % (len(data) // 2), data)
assert list(whole) + [0] == parts, (len(whole), len(parts))
PY
