#!/usr/bin/env bash
# BLEU at evaluation equals the result of `generate` and sacreBLEU's arithmetic with the checkpoint of this step. dp,
# ddp and fsdp with every shard and with divided layers give the result of one process. It selects the best checkpoint.
# A stop and a resume change nothing.
. "$(dirname "$0")/lib.sh"
make_pairs
common=("${pairs[@]}" schedule.steps=600 optimizer.lr=5e-3 model.embed=64 evaluate.every=200 evaluate.sequences=0 evaluate.bleu=true
    checkpoint.every=200 checkpoint.keep=0)

# bleu NAME STEP: the reported BLEU
bleu() {
    sed -n "s/.*\"step\":$2,.*\"valid_bleu\":\([0-9.e-]*\).*/\1/p" "$work/$1.0"
}

# The validation pairs as lines, with the dictionaries of make_pairs.
python3 - "$work" <<'EOF'
import struct, sys
data = open(sys.argv[1] + '/valid.pairs', 'rb').read()
count, s, t = struct.unpack_from('<3Q', data, 8)
from_, to = (struct.unpack_from(f'<{count + 1}Q', data, 64 + i * 8 * (count + 1)) for i in range(2))
at = 64 + 16 * (count + 1)
ids = struct.unpack_from(f'<{s + t}H', data, at)
for name, start, places, letter in (('s', 0, from_, 's'), ('t', s, to, 't')):
    with open(f'{sys.argv[1]}/lines.{name}', 'w') as out:
        for a, b in zip(places, places[1:]):
            out.write(' '.join(f'{letter}{i - 4}' for i in ids[start + a:start + b - 1]) + '\n')
EOF

train 1 one "${common[@]}" batch.accumulate=6
for step in 200 400 600; do
    [ -x "$bin/dtrun" ] || continue # with sanitizers only the engine is built
    "$bin/dtrun-engine" generate --checkpoint "$(printf '%s/one.ck/step-%08d' "$work" $step)" --threads 1 \
        --input "$work/lines.s" > "$work/made.$step"
    "$bin/dtrun" score --hypothesis "$work/made.$step" --reference "$work/lines.t" --json > "$work/score"
    python3 - "$(bleu one $step)" "$work/score" <<'EOF' || fail "step $step: valid_bleu is not that of its checkpoint"
import json, sys
told, made = float(sys.argv[1]), json.load(open(sys.argv[2]))['bleu']
made = made['score'] if isinstance(made, dict) else made
print(told, made)
sys.exit(abs(told - made) > 1e-9 * max(made, 1))
EOF
done
python3 -c "import sys; sys.exit(float(sys.argv[1]) < 10)" "$(bleu one 600)" || fail "nothing was learned: $(bleu one 600)"

train 1 beam "${common[@]}" batch.accumulate=6 evaluate.beam=3
same_metric loss one beam 0
[ "$(bleu one 200)" != "$(bleu beam 200)" ] || fail "the beam changes no translation"

# The runs start from the same weights, and their steps differ only by rounding.
check() { # world name FIELD=VALUE...
    local world=$1 name=$2-$1
    shift 2
    train "$world" "$name" "${common[@]}" batch.accumulate=$((6 / world)) "resume=$work/one.ck/step-00000400" \
        schedule.steps=402 evaluate.every=1 "$@"
    same_metric valid_bleu again-1 "$name" 1e-9
}
check 1 again
fsdp=strategy.kind=fsdp
check 2 dp strategy.kind=dp
check 3 ddp strategy.kind=ddp
check 2 full $fsdp strategy.shard=full
check 3 full $fsdp strategy.shard=full
check 2 kept $fsdp strategy.shard=full strategy.reshard_after_forward=false
check 2 gradients $fsdp strategy.shard=gradients
check 2 optimizer $fsdp strategy.shard=optimizer
check 2 tensor tensor=2 batch.accumulate=6
check 4 tensor-full $fsdp tensor=2 batch.accumulate=3
check 4 tensor-4 tensor=4 batch.accumulate=6 # two ranks have no part of the vocabulary

# The best checkpoint by BLEU is not the one by loss: with more smoothing than in training, the loss grows.
best=("${common[@]}" batch.accumulate=3 checkpoint.every=0 checkpoint.keep_best=1 checkpoint.best_by=valid_bleu evaluate.every=50)
train 2 best "${best[@]}" $fsdp
python3 - "$work" <<'EOF' || fail "another checkpoint than the best by BLEU was kept"
import glob, json, sys
bleus = {}
for line in open(sys.argv[1] + '/best.0'):
    values = json.loads(line).get('values', {})
    if 'valid_bleu' in values:
        bleus[json.loads(line)['step']] = values['valid_bleu']
best = max(bleus, key=lambda step: (bleus[step], step))
kept = {}
for path in glob.glob(sys.argv[1] + '/best.ck/step-*/index.json'):
    index = json.load(open(path))
    kept[index['step']] = index
last = kept.pop(600)
print(bleus, sorted(kept), last['best_bleu'])
sys.exit(last['best_bleu'] != bleus[best] or (best != 600 and sorted(kept) != [best]))
EOF

# A stop in the middle of an evaluation reports no result; the resumed run repeats the evaluation.
long=("${common[@]}" batch.accumulate=3 $fsdp schedule.steps=12 evaluate.every=1 evaluate.beam=16 checkpoint.every=0)
train 2 whole "${long[@]}"
plan cut ranks=2 "${long[@]}"
ranks 2 cut --signal 1:15:5 || fail "a stop in an evaluation: exit $?"
grep -q '"event":"finished".*"reason":"stopped"' "$work/cut.0" || fail "it was not stopped"
saved=("$work"/cut.ck/step-*)
train 2 rest "${long[@]}" "resume=${saved[-1]}"
same_metric valid_bleu whole rest 0
same_bits whole rest 12
