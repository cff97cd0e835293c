#!/usr/bin/env bash
# A run whose length is in epochs: its number of steps equals the engine's count before, during and after the run. A
# killed run is not finished, a stopped one is resumed, and a resume of a finished one is refused.
. "$(dirname "$0")/lib.sh"
make_tiny
sed -i 300q "$work/corpus.txt"
epochs=(--set schedule.steps=0 --set schedule.epochs=3 --set checkpoint.every=20)

# 90 % of the text in sequences of 16, four a step: the engine reports the same number.
expect 0 launch --dry-run "$work/tiny.yaml" "${epochs[@]}" --json
json "o['steps'] > 100"
steps=$(field "o['steps']")
expect 0 launch --dry-run "$work/tiny.yaml" "${epochs[@]}"
grep -q "steps  *$(sed 's/\([0-9]\)\([0-9]\{3\}\)$/\1,\2/' <<<"$steps")\$" "$work/out" || fail "the steps are not in it"
# A run that is shortened for a try: a warm-up longer than the run is a warning.
expect 0 validate "$work/tiny.yaml" "${epochs[@]}" --set schedule.warmup_steps=$((steps + 1)) --json
json "'is above the $steps steps of' in o['recipes'][0]['warnings'][0]"
expect 0 launch --dry-run "$work/tiny.yaml" "${epochs[@]}" --set schedule.warmup_steps=$((steps + 1))
grep -q "^ *warning .* is above the $steps steps of 'schedule.epochs' 3" "$work/out" || fail "no warning of the warm-up"
expect 2 launch "$work/tiny.yaml" "${epochs[@]}" --set data.tail=drop --set batch.accumulate=10000
one_line
says "'data.tail: drop' would drop the whole epoch"
nothing_half_made
expect 0 launch --wait --json "$work/tiny.yaml" "${epochs[@]}" --set log.every=100
json "o['state'] == 'finished'" "o['steps'] == o['steps_total'] == $steps"
whole=$(field "o['run']") loss=$(field "o['loss']")
expect 2 resume "$whole"
one_line
says "has completed all its $steps steps" "--set schedule.epochs=6"
expect 0 resume "$whole" --wait --json --set schedule.epochs=4
json "o['state'] == 'finished'" "o['steps'] == o['steps_total'] > $steps"

# A rank is killed after the first checkpoint (tests/fields/moment.c): the run is not finished, and continues from
# there.
cat >"$work/engine" <<SH
#!/bin/sh
ASAN_OPTIONS="verify_asan_link_order=0:\$ASAN_OPTIONS" LD_PRELOAD=${dtrun%/*}/moment.so MOMENT=kill \
    exec ${dtrun%/*}/dtrun-engine "\$@"
SH
chmod +x "$work/engine"
DTRUN_ENGINE=$work/engine expect 0 launch --wait --json "$work/tiny.yaml" "${epochs[@]}"
run=$(field "o['run']")
json "o['state'] == 'finished'" "o['attempt'] == 2" "o['steps'] == o['steps_total'] == $steps" \
    "o['loss'] == $loss"
expect 0 metrics "$run" --name loss
cut -d, -f2 "$work/out" | sed 1d | cmp -s - <(seq "$steps") || fail "the points are not one a step"
expect 0 list --json
json "all(r['steps_total'] > 0 and r['step'] == r['steps_total'] for r in o['runs'])"

# Stopped in the middle, and resumed to the end.
expect 0 launch --detach "$work/tiny.yaml" "${epochs[@]}" --set schedule.epochs=10000
run=$(cat "$work/out")
within 60 step_reached "$run" 5
expect 0 status "$run"
lacks " of 0"
expect 0 stop "$run"
says "continue with 'dtrun resume $run'"
expect 0 status "$run" --json
at=$(field "o['step']")
expect 0 resume "$run" --wait --json --set schedule.epochs=0 --set "schedule.steps=$((at + 10))"
json "o['state'] == 'finished'" "o['steps'] == o['steps_total'] == $at + 10"
