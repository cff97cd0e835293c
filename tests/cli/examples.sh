#!/usr/bin/env bash
# Every example recipe trains, with fewer steps and small generated data.
. "$(dirname "$0")/lib.sh"

small=(--set evaluate.every=0 --set evaluate.sequences=2 --wait --json)
trains() { # steps arguments...
    local steps=$1
    shift
    expect 0 launch "$@" --set schedule.steps="$steps" --set schedule.warmup_steps=1 "${small[@]}"
    json "o['state'] == 'finished'" "o['steps'] == $steps" "o['loss'] > 0" "o['valid_loss'] > 0"
}

if [ -f /usr/share/games/fortunes/computers ]; then
    trains 12 examples/quickstart.yaml
    json "o['tokens_per_second'] > 0"
    expect 0 generate "$(field "o['run']")" --prompt "A " --tokens 20
else
    echo "quickstart.yaml is left out: the package fortunes is not installed"
fi

awk 'BEGIN { for (i = 0; i < 4000; i++) print "line " i ": to be, or not to be; that is " i * i }' \
    >"$work/text.txt"
trains 12 examples/char-shakespeare.yaml --set data.train="$work/text.txt"
trains 12 examples/layers.yaml --set data.train="$work/text.txt"
json "o['name'] == 'wide-shakespeare'"
trains 12 examples/muon.yaml --set data.train="$work/text.txt"
trains 12 examples/llama.yaml --set data.train="$work/text.txt"
expect 0 generate "$(field "o['run']")" --prompt "line " --tokens 100
expect 0 launch examples/llama.yaml --set data.train="$work/text.txt" --set model.kv_heads=0 --dry-run --json
json "o['plan']['recipe']['model']['kind'] == 'llama'"

python3 examples/chat_corpus.py "$work"
expect 0 data train-tokenizer "$work/chat/words.txt" --vocab 500 --special '<|end|>' --special '<|turn|>' \
    -o "$work/chat/tokenizer.json"
trains 12 examples/chat.yaml --set data.train="$work/chats.jsonl" --set data.tokenizer="$work/chat" \
    --set schedule.epochs=0
expect 0 init "$work/chats.jsonl" --tokenizer "$work/chat"
says "format: chat"

python3 examples/translation_corpus.py "$work"
trains 12 examples/translation.yaml --set data.train="$work/train" --set data.validation="$work/valid" \
    --set data.tokenizer="$work"
run=$(field "o['run']")
expect 0 generate "$run" --input "$work/valid.words" --beam 2
expect 0 launch examples/translate.yaml --set lines.run="$run" --set lines.input="$work/valid.words" \
    --set lines.output="$work/translated" --wait
[ "$(wc -l <"$work/translated")" -eq 200 ] || fail "translate.yaml wrote $(wc -l <"$work/translated") lines of 200"

# 40,000 GPT-2 tokens; a model with this vocabulary takes minutes here, so its blocks are narrow.
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(50257) for _ in range(40000))).tofile(open("'"$work"'/gpt2.bin", "wb"))'
trains 2 examples/gpt2-124m-cpu.yaml --set data.train="$work/gpt2.bin" --set data.split=0.1 \
    --set model.layers=1 --set model.heads=2 --set model.embed=32 --set batch.sequences=1 \
    --set batch.tokens=128 --set batch.accumulate=2
expect 0 launch examples/gpt2-124m-cpu.yaml --set data.train="$work/gpt2.bin" --dry-run --json
json "o['parameters'] == 124475904" "o['plan']['recipe']['model']['layers'] == 12"

awk 'BEGIN { srand(1); for (i = 0; i < 3000; i++) { c = i % 3
    printf "%g,%g,%g,%g,%d\n", c + rand(), rand(), rand() - c, rand(), c } }' >"$work/points.csv"
trains 150 examples/mlp.yaml --set data.train="$work/points.csv"
json "o['valid_loss'] < 0.3"
expect 3 generate "$(field "o['run']")"

python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(4000))).tofile(open("'"$work"'/ids.bin", "wb"))'
trains 4 examples/fine-tune.yaml --set model.from=tests/golden/huggingface/gpt2 --set batch.tokens=16 \
    --set data.train="$work/ids.bin"
expect 0 export --to hf "$(field "o['run']")" "$work/tuned"

# Two nodes on this machine, through agents as usual.
trains 12 examples/two-nodes.yaml --set data.train="$work/text.txt" \
    --set 'nodes=[localhost, "localhost#2"]' --set threads=1
