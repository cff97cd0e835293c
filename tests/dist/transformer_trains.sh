#!/usr/bin/env bash
# transformer_trains: resumes an encoder and decoder on sentence pairs in the middle of an epoch. A resumed run has the
# bits of a run that was not stopped, dropout included. A run that resumes on another number of ranks follows it.
# strategies_agree.sh compares the strategies.
. "$(dirname "$0")/lib.sh"
make_pairs
common=("${pairs[@]}" schedule.steps=30 evaluate.every=15 evaluate.sequences=33)
dropped=(model.dropout=0.1 model.attention_dropout=0.1)
fsdp=strategy.kind=fsdp

train 2 cut "${common[@]}" "${dropped[@]}" batch.accumulate=3 $fsdp checkpoint.every=10
train 2 rest "${common[@]}" "${dropped[@]}" batch.accumulate=3 $fsdp "resume=$work/cut.ck/step-00000020"
same_bits cut rest 30
train 2 start "${common[@]}" batch.accumulate=3 $fsdp checkpoint.every=10
train 3 elsewhere "${common[@]}" batch.accumulate=2 strategy.kind=ddp "resume=$work/start.ck/step-00000020"
for metric in loss valid_loss; do
    same_metric $metric start elsewhere 1e-5
done
