#!/usr/bin/env bash
# The confusion of a classifier's classes at each evaluation: what the weights of the checkpoint predict, equal on any number of
# ranks and with every strategy; on the command line, in SQL, after a rebuild; none of many classes, and the log says so.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN { srand(1); for (i = 0; i < 330; i++) { c = i % 3
    printf "%g,%g,%g,%g,%d\n", c + rand(), rand(), rand() - c, rand(), c } }' >"$work/points.csv"
tail -n 61 "$work/points.csv" >"$work/valid.csv"
cat >"$work/classes.yaml" <<'YAML'
model: {kind: mlp, layers: 2, embed: 32, inputs: 4, outputs: 3, activation: relu}
data: {train: points.csv, validation: valid.csv}
batch: 12
optimizer: {lr: 3e-3}
schedule: {steps: 20, warmup_steps: 2}
evaluate: {every: 10, sequences: 0}
checkpoint: {every: 10}
threads: 1
YAML
recipe=(launch "$work/classes.yaml" --wait --json)
counts() { # run: a line for each step
    "$dtrun" show "$1" --confusion --json | python3 -c '
import json, sys
for one in json.load(sys.stdin)["confusion"]: print(one["step"], one["counts"])'; }

expect 0 "${recipe[@]}" --name one --set ranks=1
folder=$(field "o['checkpoint']")
counts one >"$work/one"
[ "$(cut -d' ' -f1 "$work/one" | xargs)" = "10 20" ] || fail "$(cat "$work/one")"
python3 - "$folder" "$work/valid.csv" "$(tail -n 1 "$work/one")" <<'PY' || fail "the weights predict something else"
import glob, json, struct, sys
params = {}
for path in glob.glob(sys.argv[1] + "/model*.safetensors"):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    for name, of in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, end = of["data_offsets"]
            params[name.split("[")[0]] = (of["shape"], struct.unpack(f"<{(end - first) // 4}f", data[8 + size + first:8 + size + end]))
names = sorted(n[:-len("weight")] for n in params if n.endswith("weight"))
names.sort(key=lambda name: name.startswith("head"))  # the last one
wrong = [[0] * 3 for _ in range(3)]
for line in open(sys.argv[2]):
    *x, target = map(float, line.split(","))
    for at, name in enumerate(names):
        bias = params[name + "bias"][1]
        weight = params[name + "weight"][1]
        x = [sum(w * v for w, v in zip(weight[i * len(x):], x)) + b for i, b in enumerate(bias)]
        x = x if at == len(names) - 1 else [max(0, v) for v in x]
    wrong[int(target)][x.index(max(x))] += 1
step, counts = sys.argv[3].split(" ", 1)
assert json.loads(counts) == wrong, (counts, wrong, names)
PY
expect 0 "${recipe[@]}" --name three --set ranks=3 --set batch.sequences=4 --set strategy=ddp
expect 0 "${recipe[@]}" --name shards --set ranks=2 --set batch.sequences=6 --set strategy=fsdp
expect 0 "${recipe[@]}" --name threads --set ranks=2 --set batch.sequences=6 --set strategy=dp
for run in three shards threads; do
    counts $run | cmp - "$work/one" || fail "$run: $(counts $run | tail -n 1), alone $(tail -n 1 "$work/one")"
done

expect 0 show one --confusion
says "step 20  61 rows" "class" "right"
expect 0 show one --confusion --step 10
says "step 10  61 rows"
expect 2 show one --confusion --step 11
says "has no counts of classes of step 11 (newest: 20)"
expect 0 sql "SELECT sum(rows) AS n, count(*) AS cells FROM confusions c JOIN runs r ON r.run = c.run WHERE r.name = 'one' AND c.step = 20" --json
json "o['rows'][0] == {'n': 61, 'cells': 9} or o['rows'][0] == [61, 9]"
mv "$db" "$work/lost.db"
rm -f "$db"-wal "$db"-shm
expect 0 store repair
counts one | cmp - "$work/one" || fail "the rebuilt history has other counts"

# many classes, and a model that is no classifier
expect 0 "${recipe[@]}" --name many --set ranks=1 --set model.outputs=101
expect 2 show many --confusion
says "has no counts of classes" "at most 100 classes"
expect 0 logs many
says "the confusion of 101 classes is not counted: the limit is 100"
expect 0 "${recipe[@]}" --name numbers --set ranks=1 --set model.outputs=1 --set model.loss=squared_error
expect 2 show numbers --confusion
