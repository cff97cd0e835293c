#!/usr/bin/env bash
# A model on rows of a .csv: dp, ddp and fsdp train like one process with the same global batch, for classes and for
# numbers. A stopped and resumed run has the bits of an uninterrupted one. Neither recomputation nor reading the same
# rows from a .npy changes a bit.
. "$(dirname "$0")/lib.sh"
awk 'BEGIN { srand(1); print "a,b,c,class"; for (i = 0; i < 500; i++) { c = i % 3
    printf "%g,%g,%g,%d\n", c + rand(), rand() - c, rand(), c } }' >"$work/classes.csv"
awk 'BEGIN { srand(2); for (i = 0; i < 500; i++) { a = rand(); b = rand()
    printf "%g,%g,%g,%g,%g\n", a, b, rand(), a * b, a - b } }' >"$work/numbers.csv"
classes=(model.kind=mlp model.layers=3 model.embed=19 model.inputs=3 model.outputs=3 batch.tokens=1
         model.activation=relu "data.train=[\"$work/classes.csv\"]" data.split=0.2)
numbers=(model.kind=mlp model.layers=2 model.embed=24 model.inputs=3 model.outputs=2 batch.tokens=1
         model.activation=tanh model.loss=squared_error "data.train=[\"$work/numbers.csv\"]")
common=(schedule.steps=40 evaluate.every=20 evaluate.sequences=33 batch.accumulate=2)

train 1 one "${classes[@]}" "${common[@]}" batch.sequences=12
train 1 one-numbers "${numbers[@]}" "${common[@]}" batch.sequences=12
for name in dp ddp fsdp; do
    train 2 $name "${classes[@]}" "${common[@]}" batch.sequences=6 strategy.kind=$name
    train 3 $name-numbers "${numbers[@]}" "${common[@]}" batch.sequences=4 strategy.kind=$name
    for metric in loss gradient_norm valid_loss; do
        same_metric $metric one $name 1e-5
        same_metric $metric one-numbers $name-numbers 1e-5
    done
done
train 2 half "${classes[@]}" "${common[@]}" batch.sequences=6 precision.kind=bf16
same_metric valid_loss one half 5e-2
train 1 again "${classes[@]}" "${common[@]}" batch.sequences=12 activation_checkpointing=full
same_metric loss one again 0

train 2 cut "${classes[@]}" "${common[@]}" batch.sequences=6 strategy.kind=fsdp checkpoint.every=20
train 2 rest "${classes[@]}" "${common[@]}" batch.sequences=6 strategy.kind=fsdp \
    "resume=$work/cut.ck/step-00000020"
same_bits cut rest 40

python3 - "$work/numbers.csv" "$work/numbers.npy" <<'PY'
import struct, sys
rows = [[float(x) for x in line.split(",")] for line in open(sys.argv[1])]
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
with open(sys.argv[2], "wb") as file:
    file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode())
    for row in rows:
        file.write(struct.pack("<%dd" % len(row), *row))
PY
train 1 text "${numbers[@]}" "${common[@]}" batch.sequences=12 checkpoint.every=20
train 1 binary "${numbers[@]}" "${common[@]}" batch.sequences=12 checkpoint.every=20 \
    "data.train=[\"$work/numbers.npy\"]"
for metric in loss valid_loss; do
    same_metric $metric text binary 0
done
same_bits text binary 40
