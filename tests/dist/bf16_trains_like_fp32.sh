#!/usr/bin/env bash
# bf16 compute with fp32 master weights follows fp32: over 100 steps each loss is within 0.5 % (the largest difference
# is printed), and the model learns. So does fp32 with moments in bf16.
. "$(dirname "$0")/lib.sh"
make_text 40
for precision in fp32 bf16; do
    train 1 $precision precision.kind=$precision schedule.steps=100 evaluate.every=100
done
same_metric loss fp32 bf16 0.005
same_metric valid_loss fp32 bf16 0.005
train 1 moments optimizer.moments=bf16 schedule.steps=100 evaluate.every=100
same_metric loss fp32 moments 0.005
same_metric valid_loss fp32 moments 0.005
grep -o '"valid_loss":[0-9.]*' "$work/bf16.0" | tail -n 1 |
    awk -F: '{ exit !($2 < 2.2) }' || fail "it has not learnt: $(tail -n 1 "$work/bf16.0")"
