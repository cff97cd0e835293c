#!/usr/bin/env bash
# A run that is killed at 100 random points while checkpoints are written (DTRUN_KILLS: another number) always finds a
# complete one, not older than the last one that it reported. It continues from it to the losses of the uninterrupted
# run, bit for bit. There are two ranks with fsdp, each with a part of every save. Both are killed at once, or one only,
# which the other must notice.
. "$(dirname "$0")/lib.sh"
make_text 12
kills=${DTRUN_KILLS:-100}
per_start=4 # steps before the moment of the kill is drawn
RANDOM=7

# Every step saves, so that a save is almost always in progress.
common=(ranks=2 strategy.kind=fsdp model.layers=1 model.heads=2 model.embed=16 model.dropout=0.1
    batch.sequences=1 batch.tokens=16 schedule.period_steps=1000 checkpoint.every=1 checkpoint.keep=2)
newest() { # the checkpoint that a restart would take
    local found
    found=$(ls -d "$work"/killed.ck/step-*/complete 2> /dev/null | tail -n 1)
    echo "${found%/complete}"
}
told=0 at=
for kill in $(seq "$kills"); do
    plan killed "${common[@]}" schedule.steps=1000000 ${at:+"resume=$at"}
    who=-1
    [ $((kill % 5)) != 0 ] || who=$((kill / 5 % 2))
    code=0
    ranks 2 killed --signal "$who:9:$per_start:$((RANDOM % 30)).$((RANDOM % 1000))" || code=$?
    [ $code = 137 ] || fail "kill $kill: exit $code, which is no kill"
    cat "$work/killed.0" >> "$work/all.0"
    told=$(sed -nE 's/.*"event":"checkpoint","step":([0-9]+).*/\1/p' "$work/killed.0" | tail -n 1 |
        grep . || echo "$told")
    at=$(newest)
    [ -n "$at" ] || { [ "$told" = 0 ] && continue; fail "kill $kill: no whole checkpoint is left"; }
    [ $((10#${at##*step-})) -ge "$told" ] || fail "kill $kill: step $told was told of, ${at##*/} is left"
done
last=$((10#${at##*step-} + 5))
plan killed "${common[@]}" schedule.steps=$last "resume=$at"
ranks 2 killed || fail "the last restart ends with $?"
cat "$work/killed.0" >> "$work/all.0"
plan one "${common[@]}" schedule.steps=$last checkpoint.every=0
ranks 2 one || fail "the uninterrupted run ends with $?"
[ "$(grep -o '"metrics","step":[0-9]*' "$work/all.0" | sort -u | wc -l)" = "$last" ] ||
    fail "a step is missing"
# Also steps that were recomputed after a kill, each time.
python3 - "$work/one.0" "$work/all.0" << 'PY' || fail "a restarted run has other losses"
import json, sys
def losses(path):
    for line in open(path):
        event = json.loads(line)
        if event["event"] == "metrics" and "loss" in event["values"]:
            yield event["step"], event["values"]["loss"], event["values"]["gradient_norm"]
one = {step: values for step, *values in losses(sys.argv[1])}
count = 0
for step, *values in losses(sys.argv[2]):
    assert one[step] == values, (step, one[step], values)
    count += 1
print(f"{len(one)} steps, {count} computed")
PY
same_bits one killed $last
