#!/usr/bin/env bash
# dtrun plan: its table, its JSON, its messages for bad input; docs/scaling.md shows its current output.
. "$(dirname "$0")/lib.sh"

cat >"$work/gpt.yaml" <<'YAML'
model: {preset: gpt2-small, vocab: 50257}
data: {train: not-here.bin}
precision: bf16
batch: {sequences: 32, tokens: 1024}
strategy: ddp
schedule: {steps: 10}
YAML

expect 0 plan "$work/gpt.yaml" --nodes 1,2,128
says "a prediction, not a measurement" "124M parameters" "0.854 GFLOP a token" "all-reduce" \
    "50 % efficiency (assumed)" "fits 80 GB" "Overlap ends at"
expect 0 plan "$work/gpt.yaml" --nodes 1,2,128 --json
json "[s['gpus'] for s in o['sizes']] == [8, 16, 1024]" "o['model']['parameters'] == 124475904" \
    "o['machine']['card'] == 'h100'" "o['machine']['network_gbs'] == 376" \
    "all(0 < s['efficiency'] <= 1.0 and s['fits'] for s in o['sizes'])" \
    "o['sizes'][0]['messages'][0]['kind'] == 'all-reduce'" \
    "abs(o['sizes'][0]['messages'][0]['bytes'] - 4 * 124475904) < 1" \
    "o['sizes'][0]['step_seconds'] >= o['sizes'][0]['pass_seconds']"

# Given values replace those of the tables.
expect 0 plan "$work/gpt.yaml" -g 4 --card a100 --peak 200 --efficiency 40 --node-gbs 100 \
    --network eth25 --json
json "o['sizes'][0]['gpus'] == 4" "o['machine']['tflops'] == 200" \
    "o['machine']['efficiency'] == 0.4" "o['machine']['node_gbs'] == 100" \
    "o['machine']['network_gbs'] == 2.75" "o['overlap_end_gpus'] == 8"

# Every strategy; sharding needs less memory, and a model that does not fit is reported.
for shard in full gradients optimizer; do
    expect 0 plan "$work/gpt.yaml" --set strategy=fsdp --set strategy.shard=$shard --json
    json "{m['kind'] for m in o['sizes'][0]['messages']} == {'all-gather', 'reduce-scatter'}" \
        "o['sizes'][0]['memory']['optimizer_bytes'] == 124475904"
done
expect 0 plan "$work/gpt.yaml" --set model.preset=gpt2-xl --set batch.sequences=64
says "does not fit 80 GB"

# Nodes of the recipe, with equal and with different cards.
expect 0 plan "$work/gpt.yaml" --set 'nodes=[a gpus=4, b gpus=4, c gpus=4]' --json
json "o['sizes'][0]['gpus'] == 12" "o['sizes'][0]['nodes'] == 3"
expect 2 plan "$work/gpt.yaml" --set 'nodes=[a gpus=4, b gpus=8]'
says "4 and 8 GPUs" "--gpus-per-node"
expect 0 plan "$work/gpt.yaml" --set 'nodes=[a gpus=4, b gpus=8]' -g 2 --json
json "o['sizes'][0]['gpus'] == 4"

expect 2 plan "$work/gpt.yaml" --nodes 1,x
says "--nodes is '1,x'" "for example 1,2,128"
expect 2 plan "$work/gpt.yaml" --nodes 0
expect 2 plan "$work/gpt.yaml" --nodes 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
says "more than 16 numbers"
expect 2 plan "$work/gpt.yaml" --card h1000
says "h100"
expect 2 plan "$work/gpt.yaml" --efficiency 200
expect 2 plan "$work/gpt.yaml" --gpus-per-node 0
expect 2 plan "$work/gpt.yaml" --set strategy=dp
says "use 'ddp' or 'fsdp'"
expect 2 plan
sed -i 's/, vocab: 50257//' "$work/gpt.yaml"
expect 2 plan "$work/gpt.yaml"
says "not-here.bin" "model.vocab=50257"

subject="docs/scaling.md"
python3 tests/cli/plan_page.py "$dtrun" docs/scaling.md >"$work/out" 2>"$work/err" ||
    fail "shows other output: tests/cli/plan_page.py BUILD/bin/dtrun docs/scaling.md --write"
