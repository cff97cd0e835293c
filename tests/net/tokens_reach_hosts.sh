#!/usr/bin/env bash
# Hosts that share no folder and have neither text nor tokenizer get the tokens and the tokenizer, and the downloaded
# checkpoint has the tokenizer. So do conversations, whose template stays with the run.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
seq 1 900 | sed 's/.*/{"text": "line & of a text"}/' >"$net/launch/lines.jsonl"
cp tests/golden/tokens/llama3.json "$net/launch/own.json"
recipe <<'END'
data: {train: lines.jsonl, tokenizer: own.json}
END
launch own
checkpoint=$net/launch/state/dtrun/runs/$(value own "o['run']")/checkpoints/step-00000040
cmp "$checkpoint/tokenizer.json" tests/golden/tokens/llama3.json || fail "the checkpoint has no tokenizer"
rm "$net/launch/own.json" "$net/launch/lines.jsonl"
wants 0 '"tokens":6' "$dtrun" generate own --prompt "line 5" --tokens 6 --json

python3 examples/chat_corpus.py "$net/launch"
"$dtrun" data train-tokenizer "$net/launch/chat/words.txt" --vocab 400 --special '<|end|>' --special '<|turn|>' \
    -o "$net/launch/chat/tokenizer.json" >/dev/null
recipe <<'END'
data: {format: chat, train: chats.jsonl, tokenizer: chat, pack: true, too_long: cut}
END
launch talk
rm -r "$net/launch/chat" "$net/launch/chats.jsonl"
echo '{"messages": [{"role": "user", "content": "Where does the owl live?"}]}' >"$net/launch/ask.jsonl"
wants 0 '"lines":' "$dtrun" generate talk --chat "$net/launch/ask.jsonl" --tokens 6 --json
