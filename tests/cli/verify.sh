#!/usr/bin/env bash
# dtrun verify: replays a run in a folder of its own, leaves the run as it was, and names what differs: a bit that was
# flipped while the run trained, in a checkpoint's copy, or in the record.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verify_lib.sh"
sums() { (cd "$state/runs/$1" && find . -type f ! -name 'supervisor.*' -print0 | sort -z | xargs -0 sha256sum); }

# --- a run without a fault
expect 0 launch "$work/toy.yaml" --wait --json
run=$(field "o['run']")
sums "$run" > "$work/before"
expect 0 verify "$run" --json
json "o['equal'] and o['replay']['from'] == 40 and o['replay']['until'] == 60 and o['replay']['equal'] == 20" \
    "o['replay']['parts'] > 20 and o['replay']['parts_covered'] == 20" "len(o['checkpoints']) == 3" \
    "o['replay']['difference'] is None and o['replay']['checkpoint_difference'] is None"
expect 0 verify "$run" --from 25 --steps 10
says "step 25 has no undamaged checkpoint on disk: the replay starts at that of step 20" \
    "replayed: steps 21 to 35 of attempt 1 on 2 ranks" "equal to the bit: 15 of 15 recorded steps"
sums "$run" > "$work/after"
cmp -s "$work/before" "$work/after" || fail "the run has changed"
expect 0 list --json
json "len(o['runs']) == 1"
[ -z "$(ls "$state/verify")" ] || fail "the replay has left files"
expect 2 verify "$run" --from 60
says "no step after 60 is recorded: the last is step 60"
one_line
expect 2 verify nobody
expect 2 verify "$run" --steps 0

# --- bits that flip while it trains
for kind in gradient; do
    subject=$kind
    DTRUN_TEST_FLIP="$kind 1@33 7" "$dtrun" launch "$work/toy.yaml" --wait --set name=$kind > "$work/out" 2>&1
    grep -q "flipped: $kind of rank 1 in step 33" "$state"/runs/*/logs/rank-1.log || fail "nothing was flipped"
    expect 1 verify $kind --from 20 --json
    json "o['replay']['difference']['step'] == 33 and o['replay']['difference']['rank'] == 1" \
        "o['replay']['difference']['what'] == '$kind'" "not o['equal']"
done

# --- a bit in the copy of a checkpoint, of the newest and of one on the way
flip_file() { # file
    chmod u+w "$1"
    python3 - "$1" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2 + 1] ^= 32
open(sys.argv[1], "wb").write(data)
PY
}
for step in 40; do
    folder=$state/runs/$run/checkpoints/step-000000$step
    cp -a "$folder" "$work/kept"
    flip_file "$folder/model-0.safetensors"
    expect 1 verify "$run"
    says "1 damaged" "DAMAGED step $step: '$folder/model-0.safetensors' is damaged" \
        "from the checkpoint of step $((step - 20))" "DIFFERS: checkpoint of step $step: '" "bit 13 is flipped" \
        "; 1 of "
    rm -rf "$folder" && mv "$work/kept" "$folder"
done
# the record itself
flip_line() { sed -i '35s/[0-9a-f]\{8\}/00000000/' "$1"; }
cp -a "$state/runs/$run/record" "$work/kept"
flip_line "$state/runs/$run/record/attempt-1-rank-1.txt"
expect 1 verify "$run" --from 20
says "DIFFERS: step 34, rank 1: the input"
rm -rf "$state/runs/$run/record" && mv "$work/kept" "$state/runs/$run/record"

# --- steps that a later attempt repeats, and the receipt of a resume
expect 0 resume "$run" --from 40 --wait
says "receipt: after step 40, data at epoch 0, sample 160 (as recorded)" "receipt: random numbers of seed" \
    "step 41: loss" "equal the record to the bit"
expect 0 verify "$run" --from 40 --steps 5
says "repeated: 20 steps that two attempts computed are equal" "replayed: steps 41 to 45 of attempt 2"
