#!/usr/bin/env bash
# Every example and every preset passes validate, and each scaled-down variant passes smoke, unchanged except for its
# data, which are made here.
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
mkdir "$work/pairs"
python3 examples/translation_corpus.py "$work/pairs"
python3 examples/chat_corpus.py "$work"
expect 0 data train-tokenizer "$work/chat/words.txt" --vocab 500 --special '<|end|>' --special '<|turn|>' \
    -o "$work/chat/tokenizer.json"

data_of() { # recipe
    case $1 in
    *translation*) echo "$work/pairs/train" ;;
    */chat.yaml) echo "$work/chats.jsonl" ;;
    *mlp*) echo "$work/points.csv" ;;
    *gpt2-124m*) echo "$work/gpt2.bin" ;;
    *fine-tune* | *fairseq*) echo "$work/small.bin" ;;
    *) echo "$work/text.txt" ;;
    esac
}
weights=$PWD/tests/golden/huggingface/gpt2_parts # with 61 tokens and 16 positions
python3 -c '
import array, random
draw = random.Random(1)
array.array("H", (draw.randrange(61) for _ in range(40000))).tofile(open("'"$work"'/small.bin", "wb"))'
for recipe in examples/*.yaml; do
    also=()
    case $recipe in
    *fine-tune*) also=(--set model.from="$weights" --set batch.tokens=16) ;;
    *translation*) also=(--set data.validation="$work/pairs/valid" --set data.tokenizer="$work/pairs") ;;
    */chat.yaml) also=(--set data.tokenizer="$work/chat") ;;
    *fairseq*) cp "$work/small.bin" "$work/valid.bin" && also=(--set data.validation="$work/valid.bin") ;;
    esac
    expect 0 validate --no-data "$recipe" "${also[@]}"
    if [[ $recipe = */translate.yaml ]]; then
        expect 2 smoke "$recipe"
        says "takes only recipes that train"
        continue
    fi
    if grep -q '^command:' "$recipe"; then
        needs=torch
        [[ $recipe = *huggingface* ]] && needs=torch,transformers,accelerate
        if python3 -c "import $needs" 2>/dev/null && { [[ $recipe != */torchrun.yaml ]] || command -v torchrun >/dev/null; }; then
            expect 0 smoke --limit 300 "$recipe"
            tail -n 1 "$work/out"
        else # only the check that its program starts fails
            expect 1 smoke "$recipe"
            grep -q '^  failed  starts ' "$work/out" || fail "'starts' did not fail"
            echo "$recipe: $needs is not installed"
        fi
        continue
    fi
    case $recipe in */layers*.yaml | */sweep.yaml | */slurm.yaml | */fork.yaml) continue ;; esac # as char-shakespeare.yaml
    expect 0 smoke "$recipe" "${also[@]}" --set data.train="$(data_of "$recipe")"
    tail -n 1 "$work/out"
done
# Every preset is read. Of those that smoke scales down to the same model, one is tried: presets are added until each
# value that is not a size was tried once.
printf 'data: text.txt\nschedule: {steps: 2000, warmup_steps: 100}\n' >"$work/preset.yaml"
cat >"$work/preset_of_pairs.yaml" <<'YAML'
data: {train: pairs/train, validation: pairs/valid, source: words, target: digits}
batch: {max_tokens: 1024}
schedule: {steps: 2000, warmup_steps: 100}
YAML
python3 - >"$work/presets" <<'PY'
import re
sizes = {"model.layers", "model.heads", "model.kv_heads", "model.embed", "model.ffn", "model.head_width", "model.rope_theta"}
table = open("recipes/fields/presets.h").read().split("#define DT_PRESETS(PRESET)")[1].split("#define")[0]
presets = {}
for entry in re.split(r"PRESET\(", table)[1:]:
    kind = re.search(r"DT_PRESET_(\w+)\(", entry)
    values = {pair for pair in re.findall(r'\{"([^"]+)",\s*"([^"]+)"\}', entry) if pair[0] not in sizes}
    presets[re.match(r'"([^"]+)"', entry)[1]] = values | {("kind", kind[1] if kind else "")}
assert len(presets) >= 13, presets
seen = set(presets["gpt2-small"])  # examples/gpt2-124m-cpu.yaml
chosen = set()
for name in sorted(presets, key=lambda name: -len(presets[name])):
    if not presets[name] <= seen:
        chosen.add(name)
    seen |= presets[name]
for name in presets:
    print(name, "smoke" if name in chosen else "validate",
          "preset_of_pairs" if ("kind", "TRANSFORMER") in presets[name] else "preset")
PY
while read -r preset how recipe; do
    expect 0 validate "$work/$recipe.yaml" --set model="$preset"
    [ "$how" = smoke ] || continue
    expect 0 smoke "$work/$recipe.yaml" --set model="$preset"
    echo "$preset: $(tail -n 1 "$work/out")"
done <"$work/presets"
[ "$(grep -c smoke "$work/presets")" -ge 4 ] || fail "too few presets are tried"
