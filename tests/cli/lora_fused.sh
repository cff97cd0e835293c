#!/usr/bin/env bash
# An adapter of PEFT on fused matrices of a Phi-3 (qkv_proj, gate_up_proj) is trained further: its parts get A each and their rows
# of B, so that the merged model is the base plus scale B A. A module that the family has not is refused.
. "$(dirname "$0")/lib.sh"
cp -r tests/golden/families/phi3 "$work/phi3"
python3 tests/cli/lora_fused.py make "$work/phi3" "$work/adapter"
python3 -c 'import array, random; array.array("H", [random.randrange(61) for _ in range(400)]).tofile(open("'"$work"'/ids.bin", "wb"))'
cat >"$work/more.yaml" <<YAML
name: more
model: {from: phi3}
lora: {from: adapter}
data: {train: ids.bin, tokens: nanogpt, split: 0}
batch: {sequences: 2, tokens: 16}
optimizer: {lr: 1.0e-30, weight_decay: 0}
schedule: {steps: 1}
evaluate: {every: 0}
YAML
expect 0 validate "$work/more.yaml"
expect 0 launch --wait "$work/more.yaml"
expect 0 export more --to hf --merge "$work/merged"
python3 tests/cli/lora_fused.py check "$work/phi3" "$work/adapter" "$work/merged" || fail "merged"

# a shape that differs; a module of another family
cp -r "$work/adapter" "$work/other"
sed -i 's/qkv_proj/q_proj/' "$work/other/adapter_config.json"
expect 2 validate "$work/more.yaml" --set lora.from="$work/other"
says "'target_modules' has 'q_proj', which is not a matrix of a block of a model of type 'phi3'"
