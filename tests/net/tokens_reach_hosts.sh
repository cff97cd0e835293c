#!/usr/bin/env bash
# Hosts that share no folder and have neither text nor tokenizer get the tokens and the tokenizer, and the downloaded
# checkpoint has the tokenizer.
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
