#!/usr/bin/env bash
# dtrun verify of a run that still trains, without checkpoints, with changed data, on another processor, on a node that
# does not answer, and without a record.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verify_lib.sh"

# --- a run that still trains
"$dtrun" launch "$work/toy.yaml" --detach --json --set schedule.steps=100000000 --set checkpoint.every=0 > "$work/out" 2> "$work/err"
run=$(field "o['run']")
within 60 grep -qs '^30 ' "$state/runs/$run/record/attempt-1-rank-0.txt"
expect 0 verify "$run" --from 0 --steps 20
says "is running: what it has recorded so far is verified" "replayed: steps 1 to 20"
expect 0 stop --now "$run"

expect 0 launch "$work/toy.yaml" --wait --json
run=$(field "o['run']")
# --- missing checkpoints: the beginning is left
rm -rf "$state/runs/$run/checkpoints/step-00000020" "$state/runs/$run/checkpoints/step-00000040"
expect 0 verify "$run" --from 30 --steps 3
says "the replay starts at step 0" "replayed: steps 1 to 33 of attempt 1 on 2 ranks, from the beginning"

# --- a node that does not answer, another processor, changed data
DTRUN_TEST_TIMES=0.1 expect 3 verify "$run" --from 0 --steps 3 --on nobody.invalid
says "the replay failed:" "nobody.invalid"
processor=$(sed -n '1s/.*"processor": *"\([^"]*\)".*/\1/p' "$state/runs/$run/record/attempt-1-rank-0.txt")
sed -i '1s/"processor": *"[^"]*"/"processor": "Z80"/' "$state/runs/$run/record/attempt-1-rank-0.txt"
expect 3 verify "$run" --from 0 --steps 3
says 'bits cannot be compared with those of the record: processor was "Z80", is "'
sed -i '1s/"processor": *"Z80"/"processor": "'"$processor"'"/' "$state/runs/$run/record/attempt-1-rank-0.txt"
sed -i '1s/line 0: the/line 0: The/' "$work/text.txt"
expect 1 verify "$run" --from 0 --steps 3
says "DIFFERS: step 1, rank 0: the input"

# --- without a record
rm -rf "$state/runs/$run/record"
expect 0 verify "$run"
says "checkpoints: 1 on disk, 0 damaged" "has no record of its steps"
