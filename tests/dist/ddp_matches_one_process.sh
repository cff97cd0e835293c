#!/usr/bin/env bash
# Two ranks train like one process with the same global batch: fp32, 50 steps, losses within 1e-5. The validation loss
# is the same mean although each rank evaluates a part of the text.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(schedule.steps=50 evaluate.every=10 evaluate.sequences=33)
train 1 one "${common[@]}" batch.sequences=8
train 2 two "${common[@]}" batch.sequences=4
train 3 three "${common[@]}" schedule.steps=10 batch.sequences=4
train 1 one_of_three "${common[@]}" schedule.steps=10 batch.sequences=12
for metric in loss gradient_norm valid_loss; do
    same_metric $metric one two 1e-5
    same_metric $metric one_of_three three 1e-5
done
