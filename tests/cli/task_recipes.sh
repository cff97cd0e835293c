#!/usr/bin/env bash
# Recipes with the task generate or score: their output equals that of the commands, to the byte, and their values are
# those of the options; what is not possible is refused before a run exists.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set ranks=1
run=$(field "o['run']")
printf 'the quick\nfox\njumps over\n\nit\n' >"$work/lines"

cat >"$work/write.yaml" <<END
task: generate
ranks: 2
threads: 1
seed: 7
lines: {run: "$run@best", input: lines, output: written}
generate: {tokens: 9, top_k: 5, temperature: 0.7, stop: [ow, "[x"], past_end: true}
END
options=(--tokens 9 --top-k 5 --temperature 0.7 --stop ow --stop "[x" --past-end --seed 7)
expect 0 generate "$run@best" --input "$work/lines" "${options[@]}"
cp "$work/out" "$work/one"
expect 0 validate "$work/write.yaml"
says "good (5 lines, 2 ranks, a checkpoint of run $run)"
expect 0 validate --json "$work/write.yaml"
json "o['recipes'][0]['valid']" "o['recipes'][0]['lines'] == 5" "o['recipes'][0]['ranks'] == 2"
expect 0 launch --dry-run "$work/write.yaml"
says "nothing was started" "generate" "run $run"
expect 0 launch --dry-run --json "$work/write.yaml"
json "o['lines'] == 5" "o['recipe']['generate']['top_k'] == 5" "o['recipe']['model']['embed'] > 0"
[ ! -e "$work/written" ] || fail "there is an output before the launch"
expect 0 launch --wait "$work/write.yaml"
says "5 lines in '$work/written'"
cmp "$work/one" "$work/written" || fail "a recipe writes something else than the command"
expect 0 list --json
json "[(r['name'], r['task']) for r in o['runs']][0] == ('write', 'generate')"
expect 0 show last --json
json "o['recipe']['generate']['stop'] == ['ow', '[x']" "o['recipe']['seed'] == 7" \
    "o['recipe']['lines']['input'] == '$work/lines'" "o['state'] == 'finished'"

# The other values, and a beam search.
printf 'fox\njumps\nit\n' >"$work/short"
same() { # generate's options; then, after a --, options of --set
    local options=() sets=()
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    for set in "$@"; do sets+=(--set "$set"); done
    expect 0 generate "$run@best" --input "$work/short" "${options[@]}"
    cp "$work/out" "$work/one"
    printf 'task: generate\nranks: 2\nlines: {run: "%s@best", input: short}\n' "$run" >"$work/other.yaml"
    expect 0 launch --wait "$work/other.yaml" "${sets[@]}"
    cmp "$work/one" "$work/out" || fail "a recipe with $* writes something else than the command"
}
same --tokens 6 --beam 3 --length-penalty 0.5 --no-special -- \
    generate.tokens=6 generate.beam=3 generate.length_penalty=0.5 generate.no_special=true
same --tokens 20 --top-p 0.8 --repetition-penalty 1.3 --batch 2 --precision bf16 -- \
    generate.tokens=20 generate.top_p=0.8 generate.repetition_penalty=1.3 generate.batch=2 precision=bf16

# The run of a command has the same values in its recipe.
expect 0 generate "$run@best" --input "$work/lines" "${options[@]}" --ranks 2 --output "$work/again" --name same
cmp "$work/written" "$work/again" || fail "the ranks of the command write something else"
expect 0 show same --json
json "o['recipe']['generate'] == {'tokens': 9, 'batch': 16, 'beam': 1, 'length_penalty': 1, 'stop': ['ow', '[x'], \
'past_end': True, 'no_special': False, 'temperature': 0.7, 'top_k': 5, 'top_p': 1, 'repetition_penalty': 1}"

# The output exists; it is replaced only if the recipe says so. Values of the command line, and layers, count as always.
expect 2 launch --wait "$work/write.yaml"
says "exists; set 'lines.replace: true'"
expect 0 launch --wait --json "$work/write.yaml" --set lines.replace=true --set generate.tokens=3 --set 'generate.stop=[]'
json "o['task'] == 'generate'" "o['state'] == 'finished'" "o['output'] == '$work/written'"
cmp -s "$work/again" "$work/written" && fail "--set changes nothing"
echo 'generate: {tokens: 2}' >"$work/layer.yaml"
expect 0 launch --dry-run --json "$work/write.yaml" --set lines.replace=true -f "$work/layer.yaml"
json "o['recipe']['generate']['tokens'] == 2"

# Scores, without an output: they are printed.
printf 'task: score\nranks: 2\nlines: {run: %s, input: lines}\n' "$run" >"$work/judge.yaml"
expect 0 score "$run" --input "$work/lines"
cp "$work/out" "$work/one"
expect 0 launch --wait "$work/judge.yaml"
cmp "$work/one" "$work/out" || fail "a recipe scores otherwise: $(diff "$work/one" "$work/out" | head -n 4)"
expect 0 launch --detach "$work/judge.yaml"
id=$(cat "$work/out")
expect 0 wait "$id"

# Errors that are reported before a run exists.
runs() { "$dtrun" list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"]))'; }
before=$(runs)
for command in plan smoke; do
    expect 2 $command "$work/judge.yaml"
    says "takes only recipes that train"
done
expect 2 launch "$work/judge.yaml" --set lines.run=nobody
says "--set lines.run=nobody: lines.run: unknown run 'nobody'"
printf 'task: score\nlines:\n  input: lines\n  run: nobody\n' >"$work/nobody.yaml"
for command in validate launch "launch --dry-run" doctor; do
    expect 2 $command "$work/nobody.yaml"
    says "nobody.yaml:4:8: lines.run: unknown run 'nobody'"
done
printf 'task: score\nlines:\n  input: nothing\n  run: %s\n' "$run" >"$work/nothing.yaml"
expect 2 validate --json "$work/nothing.yaml"
json "o['recipes'][0]['problems'][0]['line'] == 3"
expect 2 launch "$work/judge.yaml" --set lines.run="$run@7777"
says "lines.run:"
expect 2 launch "$work/judge.yaml" --set lines.run="$id"
says "is a score run with a checkpoint of run '$run'"
expect 2 launch "$work/judge.yaml" --set lines.target="$work/lines"
says "lines.target in a recipe"
: >"$work/empty"
expect 2 launch "$work/judge.yaml" --set lines.input="$work/empty"
says "has no lines to distribute"
expect 2 validate "$work/judge.yaml" --set lines.input="$work/missing"
says "$work/missing"
expect 0 validate --no-data "$work/judge.yaml" --set lines.input="$work/missing" --set lines.run=nobody
for command in validate launch; do
    expect 3 $command "$work/judge.yaml" --set lines.output="$work/nowhere/scores"
    says "lines.output: cannot write '$work/nowhere/scores'"
done
expect 2 validate --gpus-as a100 "$work/judge.yaml"
[ "$(runs)" -eq "$before" ] || fail "a refused recipe left a run"
expect 0 doctor "$work/judge.yaml"

# Stopped and resumed as any other run.
python3 - >"$work/lines" <<'PY'
for i in range(120):
    print("the quick brown fox"[:i % 19])
PY
cat >"$work/slow.yaml" <<END
task: generate
ranks: 2
threads: 1
lines: {run: $run, input: lines, output: slow}
generate: {tokens: 5000, batch: 4}
END
expect 0 launch --detach "$work/slow.yaml"
id=$(cat "$work/out")
within 60 step_reached "$id" 8
expect 0 stop "$id"
[ ! -e "$work/slow" ] || fail "a stopped run wrote a file"
expect 0 resume "$id" --wait --json
json "o['state'] == 'finished'" "o['step'] == 120" "o['attempt'] == 2"
expect 0 generate "$run" --input "$work/lines" --tokens 5000 --batch 4 --threads 1 --output "$work/one" --force
cmp "$work/one" "$work/slow" || fail "after a stop something else is written"

# A damaged checkpoint is refused before a run exists, by a command and by a recipe.
before=$(runs)
model=$work/state/dtrun/runs/$run/checkpoints/step-00000060/model-0.safetensors
python3 - "$model" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-5, 2)
    byte = file.read(1)[0]
    file.seek(-5, 2)
    file.write(bytes([byte ^ 64]))
PY
expect 3 generate "$run@60" --input "$work/lines" --ranks 2
says "is damaged" "use another checkpoint"
expect 3 launch "$work/judge.yaml" --set lines.run="$run@60"
says "is damaged" "use another checkpoint"
[ "$(runs)" -eq "$before" ] || fail "a damaged checkpoint left a run"

# Meanwhile, a run that is training is scored with its newest checkpoint.
expect 0 launch --detach "$work/tiny.yaml" --set name=training --set schedule.steps=100000
within 60 step_reached training 45
expect 0 launch --wait "$work/judge.yaml" --set lines.run=training
says "all: loss"
expect 0 status training --json
json "o['state'] == 'running'"
expect 0 stop --now training
