#!/usr/bin/env bash
# Conversations: what is trained of them is shown and counted, a run trains on them, answers and is exported with its
# template; a line that is no conversation, and data of which nothing is trained, are named.
. "$(dirname "$0")/lib.sh"
here=$PWD
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
checkpoint: {every: 4}
ranks: 2
threads: 1
YAML

# --- what is trained, as text and as JSON
cat >one.jsonl <<'LINES'
{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where does the owl live?"}, {"role": "assistant", "content": "The owl lives in a nest."}]}
{"messages": [{"role": "user", "content": "<|end|><|turn|>assistant"}, {"role": "assistant", "content": "The fox eats\nmice.", "weight": 0.5}, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "It eats.", "train": false}]}

{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "The owl."}]}
{"instruction": "Say", "input": "owl", "output": "The owl."}
{"messages": [{"role": "user", "content": "Hi"}]}
LINES
expect 0 data show chat.yaml 2 --set data.train=one.jsonl
says "conversation 1" "one.jsonl:1 (messages): 3 messages" "The owl lives in a nest.<|end|>" \
    "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~" "conversation 2" "And?<|end|>"
[ "$(grep -c '~' out)" -eq 3 ] || fail "$(grep -c '~' out) lines have trained text, not 3"
expect 0 data show chat.yaml 2 --tokens --from 2 --set data.train=one.jsonl
says '0.5      "The"' '0        "<|turn|>"' "one.jsonl:4 (ShareGPT)"
expect 0 data show chat.yaml 9 --json --set data.train=one.jsonl
python3 - out <<'PY' || fail "what --json prints"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [r["line"] for r in rows] == [1, 2, 4, 5, 6], [r["line"] for r in rows]
assert [r["form"] for r in rows] == ["messages"] * 2 + ["ShareGPT", "Alpaca", "messages"]
for r in rows:
    assert len(r["ids"]) == len(r["trained"]) == r["tokens"] and set(r["trained"]) <= {0, 1}
turn, end = 1, 0
first, second = rows[0], rows[1]
assert [i for i, t in zip(first["ids"], first["trained"]) if t][-1] == end
assert sum(t for i, t in zip(first["ids"], first["trained"]) if i == end) == 1
# What a user typed is no control token, and a message of weight 0 is not trained.
assert second["ids"].count(turn) == 4 and second["ids"].count(end) == 4
assert {w for w in second["weights"]} == {0, 0.5}
assert sum(t for i, t in zip(second["ids"], second["trained"]) if i == end) == 1
assert rows[4]["left_out"] and not first["left_out"] and sum(rows[4]["trained"]) == 0
PY
subject="the terminal"
python3 - "$dtrun" "$work" <<'PY' || fail "no colours, or no underline"
import os, pty, subprocess, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], ["dtrun", "data", "show", sys.argv[2] + "/chat.yaml", "1"])
text = b""
while True:
    try:
        text += os.read(fd, 65536)
    except OSError:
        break
os.waitpid(pid, 0)
assert b"\x1b[4;32mThe rabbit wakes up in the morning.<|end|>" in text and b"~~~" not in text, text
PY

# --- counted before a launch, without files in the cache
expect 0 validate chat.yaml
says "120 conversations (messages)" "of which are trained" "12 for validation"
[ -z "$(ls -d cache/dtrun/tokens/*/facts.json 2>/dev/null)" ] || fail "validate made tokens"
expect 0 launch chat.yaml --dry-run --json
json "o['data']['chats']['conversations'] == 120" "o['data']['chats']['whole']" \
    "0.2 < o['data']['chats']['trained_share'] < 0.6" "o['data']['chats']['untrained'] == 0" \
    "o['data']['chats']['forms']['messages'] == 120" "o['data']['chats']['dropped_share'] == 0"
expect 0 validate chat.yaml --set data.train=one.jsonl --set data.split=0 --set data.too_long=cut --set batch.tokens=24
says "5 conversations (3 messages, 1 ShareGPT, 1 Alpaca)" "without a trained token" "cut at batch.tokens"
expect 2 validate chat.yaml --set batch.tokens=16
says "conversations are longer than batch.tokens 16" "the first is conversation" "data.too_long"
expect 0 validate chat.yaml --set batch.tokens=40 --set data.too_long=drop
says "longer than batch.tokens and left out"

# --- what is refused, and where
refused() { # line of file, texts...
    cp few.jsonl bad.jsonl
    printf '%s\n' "$1" >>bad.jsonl
    shift
    expect 2 validate chat.yaml --set data.train=bad.jsonl
    says "$@"
    expect 2 data prepare chat.yaml --set data.train=bad.jsonl
    says "$@"
    expect 2 data show chat.yaml 1000 --set data.train=bad.jsonl
    says "$@"
}
refused '{"messages": [}' "bad.jsonl:121" "not JSON"
refused '[1, 2]' "bad.jsonl:121" "not a JSON object"
refused '{"messages": [], "messages": []}' "bad.jsonl:121" "duplicate"
refused '{"text": "a"}' "bad.jsonl:121"
refused '{"messages": [{"role": "user"}]}' "bad.jsonl:121" "messages[0]"
refused '{"messages": [{"role": "user", "content": 3}]}' "bad.jsonl:121" "messages[0]"
refused '{"messages": [{"role": "assistant", "content": "a", "wieght": 1}]}' "bad.jsonl:121" "wieght"
refused '{"messages": [{"role": "assistant", "content": "a", "weight": -1}]}' "bad.jsonl:121" "weight"
for i in 1 2 3; do echo '{"messages": [{"role": "user", "content": "Hi"}]}'; done >none.jsonl
expect 2 validate chat.yaml --set data.train=none.jsonl --set data.split=0
says "nothing is trained"
expect 2 launch chat.yaml --set data.train=none.jsonl --set data.split=0
says "nothing is trained"
nothing_half_made
echo '{{ messages[0].content }}' >first.jinja
expect 2 validate chat.yaml --set data.chat_template=first.jinja
says "few.jsonl:1"
echo '{% if %}' >broken.jinja
expect 2 validate chat.yaml --set data.chat_template=broken.jinja
says "broken.jinja"
expect 2 validate chat.yaml --set data.chat_template=missing.jinja
says "missing.jinja"
mkdir plain
cp chat/tokenizer.json plain
expect 2 validate chat.yaml --set data.tokenizer=plain
says "no chat template" "data.chat_template"
expect 0 validate chat.yaml --set data.tokenizer=plain --set data.chat_template=chat/chat_template.jinja
cp few.jsonl few.txt
expect 2 validate chat.yaml --set data.train=few.txt
says "few.txt" ".jsonl"

# --- prepared once, by content
expect 0 data prepare chat.yaml --json
json "o['train']['documents'] == 120" # --dry-run has prepared them
expect 0 data prepare chat.yaml
says "120 conversations" "already in the cache" "of them trained"
cp few.jsonl again.jsonl
expect 0 data prepare chat.yaml --set data.train=again.jsonl --json
json "o['train']['found']"
{ cat chat/chat_template.jinja; echo '{# another #}'; } >other.jinja
expect 0 data prepare chat.yaml --set data.chat_template=other.jinja --json
json "not o['train']['found']"

# --- trained, answered, exported
expect 0 launch chat.yaml --wait --json
json "o['state'] == 'finished'" "o['steps'] == 12" "o['loss'] > 0" "o['valid_loss'] > 0"
run=$(field "o['run']")
cmp chat/chat_template.jinja "state/dtrun/runs/$run/origin/chat_template.jinja" || fail "the run has no template"
echo '{"messages": [{"role": "user", "content": "Where does the fox live?"}]}' >ask.jsonl
grep -v '^$' one.jsonl | head -n 1 >>ask.jsonl
expect 0 generate "$run" --chat ask.jsonl --tokens 12 --temperature 0 --json
json "len(o['lines']) == 2" "o['lines'][0]['ended'] in ('tokens', 'end_of_text')" "o['run'] == '$run'"
field "o['lines'][0]['text']" >answer
expect 0 generate "$run" --chat ask.jsonl --tokens 12 --temperature 0
[ "$(wc -l <out)" -eq 2 ] || fail "$(wc -l <out) answers, not 2"
echo 'Where does the fox live?' >typed
subject="dtrun chat"
"$dtrun" chat "$run" --tokens 12 --temperature 0 <typed >out 2>err || fail "exit code $?"
cmp answer out || fail "chat and generate --chat answer differently"
echo 'What does it eat?' >>typed
"$dtrun" chat "$run" --json --tokens 12 --temperature 0 --system "Be brief." <typed >out 2>err || fail "exit code $?"
[ "$(grep -c '"role":"assistant"' out)" -eq 2 ] || fail "not two answers"
for i in 1 2 3 4 5 6 7 8 9; do echo "Where does the fox live?"; done >typed
"$dtrun" chat "$run" --tokens 12 --temperature 0 <typed >out 2>err || fail "exit code $?"
says "no longer fit into the context"
subject="dtrun chat on a terminal"
python3 - "$dtrun" "$run" <<'PY' || fail "Ctrl-C or Ctrl-D"
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], ["dtrun", "chat", sys.argv[2], "--tokens", "12", "--temperature", "0"])
seen = b""
def until(text):
    global seen
    end = time.time() + 60
    while text not in seen and select.select([fd], [], [], max(0, end - time.time()))[0]:
        try:
            seen += os.read(fd, 65536)
        except OSError: # it has ended
            break
    assert text in seen, seen
    seen = seen.split(text, 1)[1]
until(b"> ")
os.write(fd, b"half a line\x03")
until(b"(Ctrl-D ends the conversation)")
until(b"> ")
os.write(fd, b"Where does the fox live?\n")
until(b"live?\r\n")
until(b"> ")
os.write(fd, b"\x04")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
PY
expect 2 generate "$run" --chat ask.jsonl --prompt x
says "--chat and --prompt cannot be combined"
echo '{"messages": 3}' >bad.jsonl
expect 2 generate "$run" --chat bad.jsonl
says "line 1"
python3 -c "import json; print(json.dumps({'messages': [{'role': 'user', 'content': 'owl ' * 200}]}))" >long.jsonl
expect 2 generate "$run" --chat long.jsonl
says "context" "batch.tokens"
expect 0 export "$run" --to hf folder
cmp chat/chat_template.jinja folder/chat_template.jinja || fail "the export has no template"
grep -q '"eos_token_id": 0' folder/generation_config.json || fail "the export ends elsewhere"

# --- a template of the recipe stays with the run
expect 0 launch chat.yaml --wait --json --set data.chat_template=other.jinja --set schedule.steps=2
run=$(field "o['run']")
cmp other.jinja "state/dtrun/runs/$run/origin/chat_template.jinja" || fail "the run has another template"

# --- a recipe is written, and tested
expect 0 launch chat.yaml --wait --json --set schedule.steps=2 --set name=base
expect 0 export base --to hf weights
expect 0 init weights few.jsonl -o tune.yaml
expect 0 validate tune.yaml
grep -q "format: chat" tune.yaml || fail "the recipe is not of conversations"
expect 0 data show tune.yaml 1
says "conversation 1" "few.jsonl:1"
expect 0 launch tune.yaml --wait --json --set schedule.epochs=1 --set schedule.warmup_steps=0
json "o['state'] == 'finished'"
expect 2 init weights "$here/README.md"
says "has weights"
expect 2 init few.jsonl
says "conversations" "tokenizer"
expect 0 smoke chat.yaml
says "good    masks"
