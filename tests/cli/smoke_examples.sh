#!/usr/bin/env bash
# Every example, and every preset, passes validate and smoke: as it stands but for its data, which are made here.
. "$(dirname "$0")/lib.sh"
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
awk 'BEGIN { for (i = 0; i < 4000; i++) print "line " i ": to be, or not to be; that is " i * i }' >"$work/text.txt"
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(50257) for _ in range(400000))).tofile(open("'"$work"'/gpt2.bin", "wb"))'
awk 'BEGIN { srand(1); for (i = 0; i < 3000; i++) { c = i % 3
    printf "%g,%g,%g,%g,%d\n", c + rand(), rand(), rand() - c, rand(), c } }' >"$work/points.csv"

data_of() { # recipe
    case $1 in
    *mlp*) echo "$work/points.csv" ;;
    *gpt2-124m*) echo "$work/gpt2.bin" ;;
    *fine-tune*) echo "$work/small.bin" ;;
    *) echo "$work/text.txt" ;;
    esac
}
weights=$PWD/tests/golden/huggingface/gpt2_parts # of 61 tokens and 16 positions
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(40000))).tofile(open("'"$work"'/small.bin", "wb"))'
for recipe in examples/*.yaml; do
    also=()
    case $recipe in *fine-tune*) also=(--set model.from="$weights" --set batch.tokens=16) ;; esac
    expect 0 validate --no-data "$recipe" "${also[@]}"
    expect 0 smoke "$recipe" "${also[@]}" --set data.train="$(data_of "$recipe")"
    tail -n 1 "$work/out"
done
presets=$(python3 -c '
import json
def first(o):
    for key, value in o.items() if isinstance(o, dict) else enumerate(o) if isinstance(o, list) else ():
        if key == "preset":
            return value["anyOf"][0]["enum"]
        found = first(value)
        if found:
            return found
print(*first(json.load(open("docs/recipe.schema.json"))))')
[ -n "$presets" ] || fail "no preset is known"
for preset in $presets; do
    printf 'model: %s\ndata: text.txt\nschedule: {steps: 2000, warmup_steps: 100}\n' "$preset" >"$work/preset.yaml"
    expect 0 smoke "$work/preset.yaml"
    tail -n 1 "$work/out"
done
