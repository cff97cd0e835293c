#!/usr/bin/env bash
# A launch reports in advance what a run needs: data, messages, arithmetic, a range of time, and whether it fits on
# cards that are not present.
. "$(dirname "$0")/lib.sh"
make_tiny

# No run has finished here yet: the time is derived from the processor, and the question creates no history.
expect 0 validate "$work/tiny.yaml"
says "tiny.yaml: good" "1 file of" "tokens to train on" "characters" "epochs" "sent per step" "rough estimate, better after a first run"
[ ! -e "$work/state/dtrun/store.db" ] || fail "a look made a store"
expect 0 launch --dry-run "$work/tiny.yaml" --json
json "o['data']['files'] == 1" "o['data']['bytes'] > 0" "o['data']['kind'] == 'char'" "o['card'] is None" \
    "0 < o['time']['low_seconds'] < o['time']['high_seconds']" "o['flops_per_step'] > 0" "0 < o['epochs'] < 1"
sent=$(field "o['sent_bytes_per_step']")

# The forecast equals what is sent; the next forecast of the time is based on this run.
expect 0 launch --wait "$work/tiny.yaml"
says "per rank; the steps take"
expect 0 metrics last --name sent_bytes
[ "$(tail -n 1 "$work/out" | cut -d, -f4 | cut -d. -f1)" = "${sent%.*}" ] || fail "not $sent bytes a step"
expect 0 validate --json "$work/tiny.yaml" --set schedule.steps=6000
json "'1 finished run here of about this size' == o['recipes'][0]['time']['basis']"
# Another precision has another speed.
expect 0 validate --json "$work/tiny.yaml" --set precision=bf16
json "'rough estimate' in o['recipes'][0]['time']['basis']"

# Cards by their data sheet, without having any: ranks, memory, time.
large=("$work/tiny.yaml" --set model=gpt2-xl --set model.heads=25 --set model.layers=48
    --set model.embed=1600 --set precision=bf16 --set strategy=fsdp)
expect 0 launch -n --gpus-as h100:4 "${large[@]}"
says "cuda:3" "memory of one rank (h100 has 80.0 GB)" "divided among 4" "h100: 989.4 TFLOP/s"
expect 0 launch -n --gpus-as a100 --json "${large[@]}"
json "o['card'] == 'a100'" "o['plan']['world_size'] == 8" "o['memory']['available_bytes'] == 80e9" \
    "o['time']['low_seconds'] < o['time']['high_seconds']" "o['sent_bytes_per_step'] > 1e9"
for nodes in "--set nodes=[a,b]"; do # nodes that are not asked anything
    # shellcheck disable=SC2086
    expect 0 launch -n --gpus-as h200:2 --json "${large[@]}" $nodes
    json "o['plan']['world_size'] == 4" "o['plan']['nodes'][1]['name'] == 'b'"
done
expect 2 launch -n --gpus-as rtx4090:1 "${large[@]}"
says "does not fit into the memory of 'rtx4090': 1 rank needs"
expect 0 validate --gpus-as rtx4090:1 "${large[@]}"
says "warning: a launch there would be refused"
expect 2 launch -n --gpus-as h100 "$work/tiny.yaml" --set gpus=0
says "'gpus' is 0 in the recipe, so no GPU is used"
for wrong in h1 h100: h100:0 h100:17 h100:x "" :4; do
    expect 2 launch -n --gpus-as "$wrong" "$work/tiny.yaml"
    says "--gpus-as is '$wrong'"
done
expect 2 launch --gpus-as h100 "$work/tiny.yaml"
says "--gpus-as needs --dry-run"
