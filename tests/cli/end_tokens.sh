#!/usr/bin/env bash
# One token ends a text everywhere: documents end with the eos_token of the tokenizer's folder, generation stops at it,
# and an export has it in every file. Warnings name settings of the folder that are not applied.
. "$(dirname "$0")/lib.sh"
python3 - "$work" <<'PY'
import json, os, sys
work = sys.argv[1]
tokenizer = json.load(open("tests/golden/tokens/gpt2.json"))
token = tokenizer["added_tokens"][0]
tokenizer["added_tokens"].append({**token, "id": 420, "content": "<|im_end|>"})
for name in "plain", "chat":
    os.mkdir(f"{work}/{name}")
    json.dump(tokenizer, open(f"{work}/{name}/tokenizer.json", "w"))
json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": {"content": "<|im_end|>"},
           "pad_token": "<|endoftext|>", "model_max_length": int(1e30), "chat_template": "{{ messages }}", "add_prefix_space": False,
           "added_tokens_decoder": {"420": {"content": "<|im_end|>"}}}, open(f"{work}/chat/tokenizer_config.json", "w"))
open(f"{work}/chat/chat_template.jinja", "w").write("{{ messages }}")
with open(f"{work}/lines.jsonl", "w") as out:
    for i in range(200):
        out.write(json.dumps({"text": "The run %d isn't over." % i}) + "\n")
PY
cat >"$work/r.yaml" <<'YAML'
name: r
model: {kind: llama, layers: 1, heads: 2, embed: 16, ffn: 32}
data: {train: lines.jsonl, tokenizer: chat}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 2, warmup_steps: 1}
YAML
ids() { # of the first token file
    python3 -c '
import struct, sys
data = open(sys.argv[1], "rb").read()[1024:]
print(*struct.unpack("<%dH" % (len(data) // 2), data))' "$(field "o['train']['files'][0]")"
}
value() { # FILE KEY: value of a key in a JSON file
    python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1])).get(sys.argv[2])))' "$@"
}
is() { # what, value, wanted
    [ "$2" = "$3" ] || fail "$1: '$2', wanted '$3'"
}

# --- documents end with the token of the folder, which the launch names; data.end_of_text overrides it
expect 0 data prepare "$work/r.yaml"
says "each as TEXT '<|im_end|>'"
lacks "warning"
expect 0 data prepare "$work/r.yaml" --json
is "ends" "$(ids | tr ' ' '\n' | grep -cx 420)" 200
expect 0 data prepare "$work/r.yaml" --set data.tokenizer="$work/plain"
says "each as TEXT '<|endoftext|>'"
expect 0 data prepare "$work/r.yaml" --set data.end_of_text=0 --json
is "ends" "$(ids | tr ' ' '\n' | grep -cx 0)" 200
expect 2 validate "$work/r.yaml" --set data.end_of_text=500
says "data.end_of_text is 500" "no token with this id"
echo '{"eos_token_id": [420, 0]}' >"$work/plain/config.json"
expect 0 data prepare "$work/r.yaml" --set data.tokenizer="$work/plain"
says "each as TEXT '<|im_end|>'"
rm "$work/plain/config.json"

# --- a run; its export has the end token in every file, and the files that came with the tokenizer
expect 0 launch --wait --json "$work/r.yaml"
expect 0 export --to hf r "$work/hf"
is "config.json" "$(value "$work/hf/config.json" eos_token_id)" 420
is "generation_config.json" "$(value "$work/hf/generation_config.json" eos_token_id)" 420
is "eos_token" "$(value "$work/hf/tokenizer_config.json" eos_token)" '{"content": "<|im_end|>"}'
is "pad_token" "$(value "$work/hf/tokenizer_config.json" pad_token)" '"<|endoftext|>"'
cmp "$work/chat/chat_template.jinja" "$work/hf/chat_template.jinja" || fail "the chat template is lost"
rm -r "$work/chat"
expect 0 resume r --wait --json --set schedule.steps=3
json "o['state'] == 'finished'"

# --- imported weights without generation_config.json; the end token for training, and the one at which generation stops
rm "$work/hf/generation_config.json"
cp "$work/r.yaml" "$work/tune.yaml"
sed -i -e 's/^name: r$/name: tune/' -e 's/^model: .*/model: {from: hf}/' -e 's/, tokenizer: chat//' "$work/tune.yaml"
expect 0 validate "$work/tune.yaml"
lacks "warning"
expect 0 launch --wait --json "$work/tune.yaml"
expect 0 export --to hf tune "$work/tuned"
is "generation_config.json" "$(value "$work/tuned/generation_config.json" eos_token_id)" 420
expect 0 validate "$work/tune.yaml" --set 'model.end_ids=[0, 7]'
says "warning: documents end with '<|im_end|>' (420), but generated texts end only at 0, 7 ('model.end_ids')"
expect 0 validate "$work/tune.yaml" --set 'model.end_ids=[0, 7]' --json
json "len(o['recipes'][0]['warnings']) == 1"
expect 0 launch --wait "$work/tune.yaml" --set 'model.end_ids=[0, 7]' --set name=other
says "warning: documents end with"
expect 0 export --to hf other "$work/other"
for file in config generation_config; do
    is "$file.json" "$(value "$work/other/$file.json" eos_token_id)" "[0, 7]"
done
is "eos_token" "$(value "$work/other/tokenizer_config.json" eos_token)" '"<|endoftext|>"'
is "model_max_length" "$(value "$work/other/tokenizer_config.json" model_max_length)" 1e+30

# --- a tokenizer that the user trained
expect 0 data train-tokenizer "$work/lines.jsonl" --vocab 300 -o "$work/own.json"
expect 0 launch --wait --json "$work/r.yaml" --set data.tokenizer="$work/own.json" --set name=own
expect 0 export --to hf own "$work/own"
is "config.json" "$(value "$work/own/config.json" eos_token_id)" 0
is "generation_config.json" "$(value "$work/own/generation_config.json" eos_token_id)" 0
is "eos_token" "$(value "$work/own/tokenizer_config.json" eos_token)" '"<|endoftext|>"'

# --- settings of the folder that dtrun does not apply
python3 - "$work" <<'PY'
import json, sys
path = sys.argv[1] + "/hf/tokenizer_config.json"
config = json.load(open(path))
config.update(add_prefix_space=True, add_bos_token=True, split_special_tokens=True, odd_new_field=1,
              bos_token="<|begin|>", additional_special_tokens=["<|im_start|>", "<|im_end|>"])
json.dump(config, open(path, "w"))
PY
expect 0 validate "$work/tune.yaml"
says "sets 'add_prefix_space' to true, but tokenizer.json does not put a space before a text" \
    "sets 'add_bos_token' to true, but tokenizer.json does not put a token before a text" "'split_special_tokens'" \
    "has 'odd_new_field', which dtrun does not know" \
    "has tokens that tokenizer.json lacks: '<|begin|>', '<|im_start|>'; dtrun reads them as ordinary text"
echo '[1]' >"$work/hf/tokenizer_config.json"
expect 2 validate "$work/tune.yaml"
says "tokenizer_config.json' is not a JSON object"

# --- ALBERT's normalizer has ten steps
python3 - "$work" <<'PY'
import json, sys
tokenizer = json.load(open("tests/golden/tokens/albert.json"))
steps = tokenizer["normalizer"]["normalizers"]
steps += [{"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFC"}, {"type": "Lowercase"}]
assert len(steps) == 10
json.dump(tokenizer, open(sys.argv[1] + "/ten.json", "w"))
PY
expect 0 validate "$work/r.yaml" --set data.tokenizer="$work/ten.json"

# --- data of ids only: no token is invented for the beginning
python3 -c '
import array
array.array("H", [i * i % 61 for i in range(2000)]).tofile(open("'"$work"'/ids.bin", "wb"))
array.array("H", [i * 7 % 61 for i in range(17)]).tofile(open("'"$work"'/valid.bin", "wb"))
print(*[i * 7 % 61 for i in range(17)])' >"$work/ids.txt"
sed -i 's/^data: .*/data: {train: ids.bin, validation: valid.bin, tokens: nanogpt}/' "$work/r.yaml"
expect 0 launch --wait --json "$work/r.yaml" --set name=ids
loss=$(field "o['valid_loss']")
expect 0 score ids --input "$work/ids.txt" --json
json "o['tokens'] == 16" "abs(o['loss'] - $loss) < 1e-5"
expect 2 generate ids --tokens 2
says "trained on token ids" "--prompt"
expect 0 generate ids --prompt "3 4" --tokens 2 --temperature 0

# --- a beam search refuses options that it would ignore
expect 2 generate r --beam 2 --repetition-penalty 1.5
says "--beam and --repetition-penalty cannot be combined"
one_line
expect 2 generate r --beam 2 --top-p 0.5
says "--beam and --top-p cannot be combined"
expect 0 generate r --beam 2 --temperature 0 --tokens 3 --prompt The
expect 2 validate <(printf 'task: generate\nlines: {run: r, input: x}\ngenerate: {beam: 2, repetition_penalty: 1.5}\n')
says "'generate.beam' and 'generate.repetition_penalty' cannot be combined"

# --- every character can be generated, including U+0000: 3,000 nearly uniform bytes contain it
sed -i 's/^data: .*/data: {train: lines.jsonl, tokenizer: byte}/' "$work/r.yaml"
expect 0 launch --wait --json "$work/r.yaml" --set name=bytes
expect 0 generate bytes --prompt x --temperature 100 --tokens 3000 --json
json "'\0' in o['text']"
