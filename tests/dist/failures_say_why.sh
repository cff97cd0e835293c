#!/usr/bin/env bash
# The engine reports every failure: on its channel as an event, on stderr in words, with exit code 1. A checkpoint that
# cannot be written does not end the run, except the last one.
. "$(dirname "$0")/lib.sh"
make_text 40
failing() { # name status message field=value...
    local name=$1 status=$2 message=$3 code=0
    shift 3
    plan "$name" "$@"
    ranks 1 "$name" || code=$?
    [ $code = 1 ] || fail "$name: exit $code"
    grep -q "\"event\":\"failed\",\"status\":\"$status\"" "$work/$name.0" ||
        fail "$name: no event of status $status: $(tail -n 1 "$work/$name.0")"
    grep -q -- "$message" "$work/$name.0.err" || fail "$name: does not say '$message'"
}
failing no-data recipe "$work/none.txt" "data.train=[\"$work/none.txt\"]"
head -c 20 "$work/text.txt" > "$work/short.txt"
failing short-data recipe "$work/short.txt" "data.train=[\"$work/short.txt\"]"
failing small-vocab recipe "model.vocab is 3" model.vocab=3
failing no-memory recipe "activations" batch.sequences=60000 batch.tokens=4096 model.layers=64 # 32 TB
failing diverged recipe "training has diverged" optimizer.lr=100 clip=0 schedule.steps=300 \
    schedule.warmup_steps=0
failing no-checkpoint not-found "$work/nowhere" "resume=$work/nowhere"
train 1 whole schedule.steps=1 # its marker is not text any more: the message that quotes it is printed nevertheless
{ printf '\377%.0s' {1..32}; echo; } > "$work/whole.ck/step-00000001/complete"
failing damaged corrupt "is damaged" "resume=$work/whole.ck/step-00000001"

# A file with other content on the second node, here the same name in another folder.
mkdir "$work/0" "$work/1"
cp "$work/text.txt" "$work/0/text.txt"
plan differ ranks=2 'data.train=["text.txt"]'
differ() { # additional text of rank 1
    local code=0
    "$bin/dist_spawn" --ranks 2 --events "$work/differ" --timeout 100 -- /bin/bash -c \
        'cd "$0/$RANK" && exec "$1" train --plan "$0/differ.json"' "$work" "$bin/dtrun-engine" || code=$?
    [ $code = 1 ] || fail "other data on one rank: exit $code"
    for rank in 0 1; do
        grep -q '"event":"failed","status":"recipe","message":"the ranks read different data' \
            "$work/differ.$rank" ||
            fail "rank $rank of two with other data: $(tail -n 1 "$work/differ.$rank")"
    done
    grep -q "$1" "$work/differ.1" || fail "rank 1 does not say '$1': $(tail -n 1 "$work/differ.1")"
}
head -c 9000 "$work/text.txt" > "$work/1/text.txt"
differ "training and"
# Same length and same alphabet, but other content.
rev "$work/text.txt" > "$work/1/text.txt"
differ "file 1 has other content"

# The folder of the checkpoints is a file: each save fails, training continues to the last one.
plan no-room schedule.steps=20 checkpoint.every=5
: > "$work/no-room.ck"
code=0
ranks 1 no-room || code=$?
[ $code = 1 ] || fail "a run without its last checkpoint exits $code"
[ "$(grep -c '"event":"checkpoint_failed"' "$work/no-room.0")" = 3 ] || fail "not three failed saves"
[ "$(grep -c '"learning_rate"' "$work/no-room.0")" = 20 ] || fail "training did not continue"

# A bit flips in the parameters of one rank: all ranks report it before the next save, which is not made.
plan flipped ranks=2 checkpoint.every=5
code=0
DTRUN_FAULT="flip 1@7" ranks 2 flipped || code=$?
[ $code = 1 ] || fail "ranks with other parameters exit $code"
for rank in 0 1; do
    grep -q '"status":"corrupt","message":"step 10: the parameters of rank 0 differ from those of 1 rank' \
        "$work/flipped.$rank" || fail "rank $rank: $(tail -n 1 "$work/flipped.$rank")"
done
[ -e "$work/flipped.ck/step-00000005/complete" ] && [ ! -e "$work/flipped.ck/step-00000010" ] ||
    fail "after a flip there are $(ls "$work/flipped.ck")"

refused() { # message, environment and arguments follow
    local code=0 message=$1
    shift
    env "$@" > "$work/out" 2> "$work/refused.err" || code=$?
    [ $code = 2 ] || fail "'$*' exits $code, not 2"
    grep -q -- "$message" "$work/refused.err" || fail "'$*' does not say '$message'"
}
plan two ranks=2
refused "RANK is '2'" RANK=2 "$bin/dtrun-engine" train --plan "$work/two.json"
refused "RANK is 'x'" RANK=x "$bin/dtrun-engine" train --plan "$work/two.json"
refused "DTRUN_CHANNEL is not set" RANK=0 "$bin/dtrun-engine" train --plan "$work/two.json"
refused "DTRUN_CHANNEL is '77'" DTRUN_CHANNEL=77 "$bin/dtrun-engine" train --plan "$work/two.json"
refused "--plan is missing" "$bin/dtrun-engine" train
echo '{"plan": 1}' > "$work/bad.json"
"$bin/dtrun-engine" train --plan "$work/bad.json" 2> "$work/refused.err" && fail "a bad plan is taken"
grep -q "bad.json" "$work/refused.err" || fail "the bad plan is not named"
