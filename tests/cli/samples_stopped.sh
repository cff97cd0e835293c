#!/usr/bin/env bash
# A run is stopped while it generates samples, more than once, and resumed: each step's samples are there once, all of them,
# with the texts of an undisturbed run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/samples_lib.sh"
prompts=$(python3 -c 'print([w * (1 + i % 3) for i in range(40) for w in ["the quick "]])')
run=(launch "$work/samples.yaml" --set "evaluate.samples=$prompts" --set evaluate.samples_tokens=100 --set schedule.steps=50
    --set evaluate.every=10)
expect 0 "${run[@]}" --wait --name undisturbed
expect 0 "${run[@]}" --detach --json --name disturbed
id=$(field "o['run']")
for stop in 1 2 3; do
    within 60 step_reached "$id" $((10 * stop)) || exit
    expect 0 stop "$id"
    state_is "$id" finished && break
    expect 0 resume "$id" --detach
done
within 120 state_is "$id" finished || exit
texts undisturbed >"$work/want"
texts disturbed | cmp - "$work/want" || fail "$(texts disturbed | diff - "$work/want" | head -n 5)"
[ "$(wc -l <"$work/want")" -eq 200 ] || fail "$(wc -l <"$work/want") samples"
