#!/usr/bin/env bash
# All output about a model on rows, from its plan to its end, uses rows, features and classes, not tokens, sequences or
# a vocabulary.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { srand(1); for (i = 0; i < 300; i++) { c = i % 3
    printf "%g,%g,%g,%g,%d\n", c + rand(), rand(), rand() - c, rand(), c } }' >"$work/points.csv"
recipe=(examples/mlp.yaml --set "data.train=$work/points.csv" --set schedule.steps=20 --set batch=16
        --set schedule.warmup_steps=2 --set evaluate.every=10)
silent() {
    local word
    for word in token Token "sequences x" " sequence" vocab "more text" "text from"; do
        lacks "$word"
    done
}

expect 0 plan examples/mlp.yaml # a command that needs no data
says "4 inputs, 3 classes" "GFLOP a row" "64 rows x 1 accumulated" "rows/step" "rows/s"
silent
expect 0 plan examples/mlp.yaml --set model.loss=squared_error --json
json "o['model']['vocab'] is None" "o['model']['item'] == 'row'"
expect 0 launch "${recipe[@]}" --dry-run
says "rows per step" "32 = 16 rows x 1 accumulated x 2 ranks" "total rows" "batch 16 rows x 2 layers" \
    "rows, gradients being sent" "FLOP per step"
silent
expect 0 launch "${recipe[@]}" --dry-run --json
json "o['vocab'] is None" "o['item'] == 'row'" "o['tokens_per_step'] == 32"
expect 0 launch "${recipe[@]}" --dry-run --set optimizer=muon
says "for the optimizer"

expect 0 launch "${recipe[@]}" --wait
says "rows/s"
silent
expect 0 show last
says "rows/s"
lacks "tokens/s"
expect 0 status last
says "rows/s"
silent

# Data with errors.
for wrong in "1,2,3,4,9" "1,2,3,4" "a,b,c,d,e"; do
    echo "$wrong" >"$work/wrong.csv"
    expect 2 launch examples/mlp.yaml --set "data.train=$work/wrong.csv" --wait
    silent
done
: >"$work/wrong.csv"
expect 2 validate examples/mlp.yaml --set "data.train=$work/wrong.csv"
says "give a file with rows in it"
silent
expect 2 validate examples/mlp.yaml --set "data.train=$work"
says "/*.csv'"
expect 2 launch "${recipe[@]}" --set data.tail=drop --set batch=200 --wait
says "an epoch has 270 rows, fewer than the 400 of a step"
silent
expect 2 launch "${recipe[@]}" --set batch=65536 --set model.layers=900 --set model.embed=65536
says "lower 'batch.sequences'"
lacks "batch.tokens"
