#!/usr/bin/env bash
# evaluate.samples with each strategy and precision: the texts that `dtrun generate` makes of the checkpoints.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/samples_lib.sh"

for strategy in ddp fsdp; do
    expect 0 "${common[@]}" --name $strategy "${drawn[@]}" --set ranks=4 --set strategy.kind=$strategy
    like_generate $strategy 20 7 "${options[@]}"
    like_generate $strategy 40 7 "${options[@]}"
done
expect 0 "${common[@]}" --name dp "${drawn[@]}" --set ranks=2 --set strategy.kind=dp
like_generate dp 40 7 "${options[@]}"
expect 0 "${common[@]}" --name divided "${drawn[@]}" --set ranks=4 --set tensor=2 --set strategy.kind=fsdp
like_generate divided 40 7 "${options[@]}"
expect 0 "${common[@]}" --name bf16 "${drawn[@]}" --set precision=bf16 --set strategy.kind=fsdp
like_generate bf16 40 7 "${options[@]}" --precision bf16
expect 0 "${common[@]}" --name fp16 "${drawn[@]}" --set precision=fp16
[ "$(texts fp16 | cut -d, -f1 | uniq -c | xargs)" = "3 [20 3 [40" ] || fail "$(texts fp16)"

# conversations: a prompt is the message of a user, and the text is the answer that `dtrun generate --chat` gives
python3 examples/chat_corpus.py "$work"
cd "$work" || exit
head -n 120 chats.jsonl >few.jsonl
expect 0 data train-tokenizer chat/words.txt --vocab 400 --special '<|end|>' --special '<|turn|>' -o chat/tokenizer.json
cat >chat.yaml <<'YAML'
name: chat
model: {kind: llama, layers: 2, heads: 2, embed: 32, ffn: 48}
data: {format: chat, train: few.jsonl, tokenizer: chat, pack: true, split: 0.1}
batch: {sequences: 4, tokens: 160}
optimizer: {lr: 3e-3}
schedule: {steps: 12, warmup_steps: 2}
evaluate: {every: 6, samples: ["Where does the owl live?", "Hi <|end|>"], samples_tokens: 30, samples_temperature: 1}
ranks: 2
threads: 1
YAML
printf '{"messages": [{"role": "user", "content": "%s"}]}\n' "Where does the owl live?" "Hi <|end|>" >questions.jsonl
answers_as_chat() { # run
    expect 0 generate "$1" --chat questions.jsonl -n 30 --temperature 1 --json
    field "'\\n'.join(json.dumps(line['text'].replace(chr(0), chr(0xfffd))) for line in o['lines'])" >after
    texts "$1" "$2" | python3 -c 'import json, sys; [print(json.dumps(json.loads(line)[3])) for line in sys.stdin]' >during
    [ -s during ] && cmp during after || fail "$1: $(diff during after)"
}
expect 0 launch chat.yaml --wait
answers_as_chat chat 12
expect 0 resume chat --wait --set schedule.steps=18
answers_as_chat chat 18
expect 2 launch chat.yaml --set batch.tokens=16
says "chat.yaml:7:" "evaluate.samples: prompt 1: it has 16 tokens with the chat template, and 'batch.tokens' is 16"

# an adapter
expect 0 export chat --to hf base
cat >adapter.yaml <<'YAML'
extends: chat.yaml
name: adapter
model: {from: base}
lora: {rank: 4}
strategy: fsdp
YAML
expect 0 launch adapter.yaml --wait
answers_as_chat adapter 12
