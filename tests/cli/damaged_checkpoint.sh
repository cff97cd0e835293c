#!/usr/bin/env bash
# A damaged checkpoint is skipped if an older one is undamaged, and reported if it was requested by name.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --wait --json "$work/tiny.yaml"
run=$(field "o['run']")
whole=$(field "o['loss']")
newest=$work/state/dtrun/runs/$run/checkpoints/step-00000060
part=$(ls "$newest"/*.safetensors | head -n 1)
truncate -s -100 "$part"

expect 3 generate "$run" --checkpoint 60
one_line
says "step-00000060"
expect 0 generate "$run" --tokens 5 --json
json "o['step'] == 40"
expect 0 generate "$run@20" --tokens 5 --json # RUN@STEP, in every command that takes a checkpoint
json "o['step'] == 20"
expect 3 generate "$run@60"
expect 2 generate "$run@best" --checkpoint 20
says "both name a checkpoint"
expect 2 generate "$run@7"
says "has no checkpoint of step 7"
printf 'the lazy dog\n' >"$work/line"
expect 0 score "$run@40" --input "$work/line"
expect 0 export --to hf "$run@20" "$work/hf"
expect 3 export --to hf "$run@60" "$work/none"
expect 0 resume "$run" --wait --json
json "o['steps'] == 60" "o['loss'] == $whole"
says "step-00000060"

# No checkpoint is undamaged: this is reported, with a remedy.
for directory in "$work/state/dtrun/runs/$run/checkpoints"/step-*; do
    rm -f "$directory/complete"
done
expect 2 generate "$run"
says "no complete checkpoint"
expect 2 resume "$run" --set schedule.steps=100
says "no complete checkpoint" "launch it again"
