#!/usr/bin/env bash
# A Llama is trained with tensor 2 x fsdp 2 on two hosts, a rank is killed, and the run is resumed with tensor 4 on one
# host and exported: transformers loads the files and writes the same greedy text.
#
#   DTRUN_BIN=build/test/bin PEER=/path/to/venv bash tests/peers/tensor_to_transformers.sh
#
# PEER has PyTorch and transformers.
. "$(dirname "$0")/../net/lib.sh"
: "${DTRUN_BIN:?the folder of the programs}" "${PEER:?the folder of a virtual environment with torch and transformers}"
hosts 2 apart
cat README.md docs/*.md >"$net/launch/text.txt"
cat >"$net/launch/llama.yaml" <<END
nodes: [host1, host2]
gpus: none
ranks: 2
threads: 1
tensor: 2
strategy: {kind: fsdp, shard: full}
model: {kind: llama, layers: 2, heads: 4, kv_heads: 2, embed: 64, ffn: 160}
data: {train: text.txt, tokens: byte, split: 0.1}
batch: {sequences: 8, tokens: 64}
optimizer: {lr: 3e-3}
schedule: {steps: 300}
checkpoint: {every: 50}
failure: {max_restarts: 1}
END
wants 0 "" "$dtrun" launch --detach "$net/launch/llama.yaml" --set name=llama
await 60 past llama 120
"$net_sh" pids "$net" host2 | xargs -r ps -o pid=,args= -p | awk '/dtrun-engine/ { print $1; exit }' | xargs kill -KILL
await 60 in_attempt llama 2
"$dtrun" stop llama >"$net/out" 2>&1
echo "killed: $("$dtrun" logs llama 2>/dev/null | grep -o 'attempt 1 failed: .*' | head -n 1)"
wants 0 "" "$dtrun" resume --wait llama --set 'nodes=[host1]' --set ranks=4 --set tensor=4
is "steps" "$(value llama "o['step']")" 300
wants 0 "" "$dtrun" export llama --to hf "$net/hf"
wants 0 "" "$dtrun" generate llama --temperature 0 --prompt "The recipe " --tokens 40
cp "$net/out" "$net/ours"
"$PEER/bin/python3" - "$net/hf" >"$net/theirs" <<'PY'
import sys, torch, transformers
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
ids = torch.tensor([list(b'The recipe ')])
with torch.no_grad():
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False,
                         eos_token_id=None, pad_token_id=0)
print(bytes(out[0].tolist()).decode('utf-8', 'replace'))
PY
echo "dtrun:        $(tail -n 2 "$net/ours" | head -c 300)"
echo "transformers: $(head -c 300 "$net/theirs")"
grep -qF -- "$(head -n 1 "$net/theirs")" "$net/ours" || fail "not the same text"
