#!/usr/bin/env bash
# dtrun smoke: each check with its figure, in all output formats; a fault of a recipe fails the check for it; no files
# remain, except of a failed check.
. "$(dirname "$0")/lib.sh"
make_tiny
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
verdict() { printf "next(c['verdict'] for r in o['recipes'] for c in r['checks'] if c['check'] == '%s')" "$1"; }
figure() { printf "next(c['figure'] for r in o['recipes'] for c in r['checks'] if c['check'] == '%s')" "$1"; }
nothing_left() { [ -z "$(ls -A "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"; }

# A recipe for a cluster, without the cluster: nodes and cards that are not present, fp16, epochs, a webhook that would
# fail, and a name like a path. All of it is scaled down.
cat >"$work/cluster.yaml" <<'YAML'
nodes: "nowhere[01-02]"
gpus: 8
strategy: {kind: fsdp, shard: gradients, reduce_dtype: bf16}
model: {preset: gpt2-xl, dropout: 0.1}
precision: {kind: fp16, loss_scale: 1024}
data: {train: corpus.txt, split: 0.2}
batch: {sequences: 16, tokens: 1024, accumulate: 4}
schedule: {kind: warmup_stable_decay, epochs: 3, warmup_steps: 700}
notify: "https://hooks.invalid/dtrun"
checkpoint: {every: 1000, keep_best: 3}
time_limit: 5d
slurm: [--partition=gpu]
YAML
expect 0 smoke --json "$work/cluster.yaml" --junit "$work/junit.xml"
json "o['recipes'][0]['good']" "o['recipes'][0]['folder'] is None" \
    "[c['check'] for c in o['recipes'][0]['checks']] == ['trains', 'evaluates', 'generates', 'memory', 'learns', 'agrees', 'resumes', 'stops']" \
    "all(c['verdict'] == 'good' and c['figure'] and c['promise'] for c in o['recipes'][0]['checks'])" \
    "'12 steps on 2 ranks' in $(figure trains)" "'killed after step 7' in $(figure resumes)"
nothing_left
[ ! -e "$work/state/dtrun/runs" ] || fail "it wrote into the user's own history"
python3 - "$work/junit.xml" <<'PY' || fail "no JUnit XML"
import sys, xml.etree.ElementTree as tree
suite, = tree.parse(sys.argv[1]).getroot()
assert suite.get("tests") == "8" and suite.get("failures") == "0" and len(suite) == 8, suite.attrib
PY

# Text with a tokenizer: the number of tokens is known only after a training on it.
mkdir "$work/tokenizer"
cp tests/golden/tokens/gpt2.json "$work/tokenizer/tokenizer.json"
expect 0 smoke --steps 8 --set data.tokenizer="$work/tokenizer" "$work/tiny.yaml"
nothing_left

# A learning rate that is far too high does not learn. An unreadable recipe fails alone, and exit code 2 takes
# precedence.
expect 1 smoke --set optimizer.kind=sgd --set optimizer.lr=100 --set clip=0 --tap "$work/tiny.yaml"
grep -qx 'TAP version 14' "$work/out" || fail "it does not begin as TAP"
grep -q '^not ok [0-9]* - .*tiny.yaml: ' "$work/out" || fail "nothing is not ok"
[ "$(grep -cE '^(not )?ok ' "$work/out")" = "$(sed -n 's/^1\.\.//p' "$work/out")" ] || fail "the plan is another"
says "kept the files in '$TMPDIR/dtrun-smoke."
XDG_STATE_HOME=$(echo "$TMPDIR"/dtrun-smoke.*) expect 0 list --json
json "len(o['runs']) > 0" "all(r['state'] in ('finished', 'failed', 'stopped') for r in o['runs'])"
rm -rf "${work:?}"/tmp/*

echo 'schedule: {steps: many}' >"$work/broken.yaml"
expect 2 smoke "$work/broken.yaml" --json
json "not o['recipes'][0]['good']" "$(verdict recipe) == 'failed'"
expect 2 smoke "$work/tiny.yaml" --set data.train="$work/absent.txt"
says "recipe" "absent.txt"
expect 2 smoke --kill rank=one "$work/tiny.yaml"
one_line
nothing_left

# Ctrl-C in the middle: the active run is ended, and nothing remains.
"$dtrun" smoke "$work/tiny.yaml" --steps 1000000 --limit 1000 >"$work/out" 2>"$work/err" &
smoke=$!
running() { pgrep -f -- "$TMPDIR/.*dtrun-smoke" >/dev/null || ls "$TMPDIR"/dtrun-smoke.*/dtrun/runs/*/attempt-1/plan.json >/dev/null 2>&1; }
subject="Ctrl-C"
within 20 running
kill -INT $smoke
wait $smoke
[ $? -eq 130 ] || fail "exit code after Ctrl-C is not 130"
nothing_left
