#!/usr/bin/env bash
# data.mixture: shares in the forecast, with the run and in its log; the same losses bit for bit after a fork and a resume,
# and to rounding with another number of ranks; of characters, of JSON lines by a tokenizer in packs, and of
# conversations; other weights are refused at a resume.
. "$(dirname "$0")/lib.sh"
here=$PWD
cd "$work" || exit
python3 - <<'PY'
import json, random
draw = random.Random(1)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
def text(n): return " ".join(draw.choice(words) for _ in range(n))
for name, rows in (("big", 300), ("small", 40)):
    with open(name + ".txt", "w") as out:
        out.writelines(text(8) + "\n" for _ in range(rows))
    with open(name + ".jsonl", "w") as out:
        out.writelines(json.dumps({"text": text(draw.randrange(3, 30))}) + "\n" for _ in range(rows))
    with open(name + "_chats.jsonl", "w") as out:
        out.writelines(json.dumps({"messages": [{"role": "user", "content": text(4)},
                                                {"role": "assistant", "content": text(draw.randrange(2, 12))}]}) + "\n"
                       for _ in range(rows))
PY
cat >mix.yaml <<'YAML'
name: mix
ranks: 2
threads: 1
model: {layers: 1, heads: 2, embed: 16}
data: [{files: big.txt, weight: 1}, {name: few, files: small.txt, weight: 3}]
batch: {sequences: 2, tokens: 16}
optimizer: {lr: 1e-2}
schedule: {kind: constant, steps: 60, warmup_steps: 2}
evaluate: {every: 30}
checkpoint: {every: 20, keep: 0}
log: {every: 1}
YAML
losses() { # RUN DIGITS
    "$dtrun" metrics "$1" --format csv |
        awk -F, -v f="%s %s %.$2g\n" '($3 == "loss" || $3 == "valid_loss") {printf f, $2, $3, $4}' | sort
}
drawn() { # RUN TEXT: what its log says of the mixture
    "$dtrun" logs "$1" | grep 'drawn of the mixture' >out
    says "$2"
}
same() { diff "$1" "$2" >err || fail "$1 and $2 differ"; }

# --- what is shown and recorded
expect 0 validate mix.yaml
says "mixture" "big 25 % (" "few 75 % (" "epochs of"
expect 0 launch mix.yaml --dry-run --json
json "[p['name'] for p in o['data']['mixture']] == ['big', 'few']" "o['data']['mixture'][1]['share'] == 0.75" \
    "all(abs(p['epochs'] - 240 * p['share'] / p['sequences']) < 1e-9 for p in o['data']['mixture'])"
expect 0 launch mix.yaml --wait --json
one=$(field "o['run']")
losses "$one" 17 >one
expect 0 show "$one"
says "mixture" "few 75 % ("
expect 0 show "$one" --json
json "o['provenance'][0]['mixture'][1]['share'] == 0.75"
drawn "$one" "big 60 sequences ("
drawn "$one" ", few 180 ("

# --- init
expect 0 init big.txt small.txt --mix 0.7,3e-1 -o made.yaml
grep -qF 'weight: 3e-1}' made.yaml || fail "the recipe has no weight"
expect 0 validate --strict made.yaml
says "big 70 % (" "small 30 % ("
expect 2 init big.txt small.txt --mix 0.7
says "--mix has 1 weight for 2 training files"
for wrong in 0.7,0 0.7,-1 0.7, nan,1 ,1 1e99,1; do
    expect 2 init big.txt small.txt --mix "$wrong"
    says "is not a weight"
done

# --- the same data after a checkpoint, and on other ranks
expect 0 fork "$one@20" --wait --json --set name=fork
losses "$(field "o['run']")" 17 >fork
same one fork
expect 0 launch mix.yaml --wait --json --set name=half --set schedule.steps=40
half=$(field "o['run']")
expect 0 resume "$half" --wait --set schedule.steps=60 --set ranks=1 --set batch.sequences=4
losses "$half" 4 >half
losses "$one" 4 >rounded
join <(awk '{print $1 "-" $2, $3}' rounded) <(awk '{print $1 "-" $2, $3}' half) |
    awk '{ d = $2 - $3; if (d < 0) d = -d; if (d > 2e-3 * $2) bad = 1 } END { exit bad || NR < 60 }' ||
    fail "other losses with one rank: $(diff rounded half | head -3)"
expect 2 resume "$half" --wait --set schedule.steps=70 --set 'data.mixture[0].weight=2'
says "data.mixture was 0.25 of 1 file, 0.75 of 1 file, is 0.4 of 1 file, 0.6 of 1 file"

# --- JSON lines, packed; the parts are prepared once, whatever their weights
mkdir tok
expect 0 data train-tokenizer big.jsonl --vocab 300 --special '<|end|>' -o tok/tokenizer.json
sed 's/^data: .*/data: {mixture: [{files: big.jsonl, weight: 0.3}, {files: small.jsonl, weight: 0.7}], tokenizer: tok, end_of_text: 0, cross_documents: false, pack: true}/; s/tokens: 16/tokens: 32/' mix.yaml >packs.yaml
expect 0 data prepare packs.yaml
expect 0 launch packs.yaml --wait --json --set name=packs
packs=$(field "o['run']")
losses "$packs" 17 >packs
drawn "$packs" "big 72 sequences ("
expect 0 fork "$packs@40" --wait --json --set name=packs-fork
losses "$(field "o['run']")" 17 >packs_fork
same packs packs_fork
expect 0 data prepare packs.yaml --set 'data.mixture[0].weight=9'
says "already in the cache"

# --- conversations
mkdir chat
printf '%s' "{% for m in messages %}<|turn|>{{ m.role }}
{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|turn|>assistant
{% endif %}" >chat/chat_template.jinja
expect 0 data train-tokenizer big.jsonl --vocab 300 --special '<|end|>' --special '<|turn|>' -o chat/tokenizer.json
sed 's/^data: .*/data: {format: chat, mixture: [{files: big_chats.jsonl, weight: 1}, {files: small_chats.jsonl, weight: 1}], tokenizer: chat, pack: true}/; s/tokens: 16/tokens: 64/' mix.yaml >chats.yaml
expect 0 validate chats.yaml
says "340 conversations (messages)" "big_chats 50 % (" "small_chats 50 % ("
expect 0 data show chats.yaml 1 --from 301
says "small_chats.jsonl:1 (messages)"
expect 0 launch chats.yaml --wait --json --set name=chats
chats=$(field "o['run']")
losses "$chats" 17 >chats
drawn "$chats" "big_chats 121 sequences ("
expect 0 fork "$chats@40" --wait --json --set name=chats-fork
losses "$(field "o['run']")" 17 >chats_fork
same chats chats_fork
cd "$here" || exit
