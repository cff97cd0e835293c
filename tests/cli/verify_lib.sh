# For the tests of verify, after lib.sh: the recipe of a small run of two ranks, $work/toy.yaml, and the state folder.
for ((i = 0; i < 400; i++)); do
    echo "line $i: the ship sailed $((i * 7919 % 613)) miles under a bright moon."
done > "$work/text.txt"
cat > "$work/toy.yaml" <<YAML
name: toy
model: {layers: 2, heads: 4, embed: 32}
data: $work/text.txt
batch: {tokens: 32, sequences: 2}
schedule: {steps: 60, warmup_steps: 5}
checkpoint: {every: 20, keep: 0}
ranks: 2
threads: 1
YAML
state=$work/state/dtrun
