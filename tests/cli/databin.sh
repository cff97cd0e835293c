#!/usr/bin/env bash
# A folder that fairseq-preprocess wrote trains unchanged: its index has the type of the ids, its dictionary their
# number.
. "$(dirname "$0")/lib.sh"

python3 - "$work" <<'PY'
import random, struct, sys
draw = random.Random(3)
for name, count in (("train", 300), ("valid", 40)):
    sentences = [[draw.randrange(4, 54) for _ in range(draw.randrange(3, 20))] + [2] for _ in range(count)]
    begins, at = [], 0
    with open(f"{sys.argv[1]}/{name}.bin", "wb") as file:
        for sentence in sentences:
            begins.append(at)
            at += file.write(struct.pack(f"<{len(sentence)}i", *sentence))
    with open(f"{sys.argv[1]}/{name}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQ", 1, 4, count))
        file.write(struct.pack(f"<{count}i", *map(len, sentences)) + struct.pack(f"<{count}q", *begins))
with open(f"{sys.argv[1]}/dict.txt", "w") as file:
    file.writelines(f"word{i} {1000 - i}\n" for i in range(52))
PY
cat >"$work/lm.yaml" <<'YAML'
model: {layers: 1, heads: 2, embed: 16}
data: {train: train.bin, validation: valid.bin}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 3}
evaluate: {every: 3}
YAML

expect 0 validate "$work/lm.yaml" --origins
says "int32" "56" "data.train"
expect 0 launch "$work/lm.yaml" --wait --json
json "o['state'] == 'finished'"
run=$(field "o['run']")
expect 0 show "$run" --json
json "o['recipe']['data']['tokens'] == 'int32'" "o['recipe']['model']['vocab'] == 56"
expect 0 generate "$run" --prompt "5 6 7" --tokens 2 # ids, which have no text
[ "$(wc -w <"$work/out")" = 5 ] || fail "writes $(cat "$work/out")"

# the value of the recipe counts, even if it is wrong
expect 0 validate "$work/lm.yaml" --set data.tokens=int32 --set model.vocab=64
expect 2 validate "$work/lm.yaml" --set model.vocab=40
says "model.vocab"
rm "$work"/*.idx # the run records the type of the ids
expect 0 resume "$run" --set schedule.steps=5 --wait
truncate -s 70 "$work/train.bin"
expect 2 validate "$work/lm.yaml" --set data.tokens=int32
says "tokens of 4 bytes"
