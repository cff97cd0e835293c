#!/usr/bin/env bash
# evaluate.every_epoch: evaluates after the step that ends an epoch, for every way to set the length of the run, in
# addition to evaluate.every, and once if a run was stopped or killed near there.
. "$(dirname "$0")/lib.sh"
make_text 8
head -c 3000 "$work/text.txt" > "$work/valid.txt"
common=(ranks=2 evaluate.sequences=8 "data.validation=[\"$work/valid.txt\"]" evaluate.every_epoch=1)
evaluated() { # NAME: the steps, in one line
    grep -o '"step":[0-9]*,"values":{"valid_loss"' "$work/$1.0" | tr -dc '0-9\n' | xargs
}
is() { # NAME STEPS
    [ "$(evaluated "$1")" = "$2" ] || fail "$1 evaluated after the steps '$(evaluated "$1")', not '$2'"
}

# 8 samples a step: an epoch ends at the step that reaches its number of sequences (engine/data/sampler.c), and the last
# step is evaluated in any case.
train 2 epochs "${common[@]}" schedule.steps=0 schedule.epochs=3 checkpoint.every=1 checkpoint.keep=0
read -r first second third rest <<< "$(evaluated epochs)"
[ -z "$rest" ] && [ "$third" = "$(grep -o '"event":"finished","step":[0-9]*' "$work/epochs.0" | grep -o '[0-9]*$')" ] ||
    fail "not one evaluation for each of 3 epochs: $(evaluated epochs)"
[ $((second - first)) -le $((first + 1)) ] && [ $((second - first)) -ge $((first - 1)) ] ||
    fail "epochs of $first and $((second - first)) steps"
index() { cat "$work/epochs.ck/$(printf 'step-%08d' "$1")/index.json"; }
[[ $(index "$first") == *'"epoch":1,'* && $(index $((first - 1))) == *'"epoch":0,'* ]] ||
    fail "epoch 0 does not end with step $first"
[[ $(index "$first") == *'"valid_loss":'[0-9]* ]] || fail "step $first was saved without its loss"
grep -l '"kept_for":\[[^]]*"best"' "$work/epochs.ck"/*/index.json > /dev/null || fail "none is the best"

train 2 steps "${common[@]}" schedule.steps=$((second + 2)) schedule.epochs=0
is steps "$first $second $((second + 2))"
train 2 both "${common[@]}" schedule.steps=$((second + 1)) evaluate.every=$((first - 2))
is both "$(printf '%s\n' $((first - 2)) "$first" $((2 * (first - 2))) "$second" $((second + 1)) | sort -n | uniq | xargs)"
train 2 seconds "${common[@]}" schedule.steps=$((second + 2)) evaluate.every_epoch=2
is seconds "$second $((second + 2))"

# Resumed from before an epoch's end, at the end, and after it.
for at in $((first - 1)) "$first" $((first + 1)); do
    plan "from-$at" "${common[@]}" schedule.steps=0 schedule.epochs=3 \
        "resume=$work/epochs.ck/$(printf 'step-%08d' "$at")"
    ranks 2 "from-$at" || fail "from step $at: exit $?"
done
is "from-$((first - 1))" "$first $second $third"
is "from-$first" "$second $third"
is "from-$((first + 1))" "$second $third"
same_metric valid_loss epochs "from-$((first - 1))" 0

# Stopped during the evaluation at the end of an epoch, which would take twelve seconds: it is made after the resume.
for _ in $(seq 300); do cat "$work/text.txt"; done > "$work/part.txt"
for _ in $(seq 3); do cat "$work/part.txt"; done > "$work/long.txt"
plan stopped "${common[@]}" schedule.steps=0 schedule.epochs=3 evaluate.sequences=0 \
    "data.validation=[\"$work/long.txt\"]"
ranks 2 stopped --signal "-1:15:$first" || fail "exit $?"
is stopped ""
[ -e "$work/stopped.ck/$(printf 'step-%08d' "$first")/complete" ] || fail "no checkpoint of step $first"
cp -r "$work/stopped.ck" "$work/made-up.ck"
plan made-up "${common[@]}" schedule.steps=0 schedule.epochs=3 \
    "resume=$work/made-up.ck/$(printf 'step-%08d' "$first")"
ranks 2 made-up || fail "exit $?"
is made-up "$first $second $third"
same_metric valid_loss epochs made-up 0
