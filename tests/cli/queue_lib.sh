# For the tests of the queue, after lib.sh: a recipe of a run that takes all processors of the machine, and checks of the list.
cd "$work" || exit
cores=$(env -u OMP_NUM_THREADS nproc)
seq 1 3000 >text.txt
cat >own.yaml <<YAML
name: own
model: {kind: gpt2, layers: 1, heads: 1, embed: 16}
data: {train: text.txt}
batch: {sequences: 1, tokens: 16}
schedule: {kind: constant, steps: 400}
checkpoint: {every: 0}
evaluate: {every: 0}
threads: $cores
YAML
endless="--set schedule.steps=100000000"
queue() { # name options...: prints the id of a run that was added
    local name=$1
    shift
    expect 0 launch own.yaml --queue --detach --name "$name" "$@"
    cat out
}
listed() { # condition on q, the list; and on r, its runs by name
    "$dtrun" queue --json >out 2>err || return 1
    python3 - out "$1" <<'PY'
import collections, json, sys
q = json.load(open(sys.argv[1]))
r = collections.defaultdict(lambda: collections.defaultdict(str), {run["name"]: run for run in q})
order = [run["name"] for run in q if run["position"]]
assert isinstance(q, list)
sys.exit(0 if eval(sys.argv[2]) else 1)
PY
}
lists() {
    within 60 listed "$1" || { subject="queue"; fail "not: $1"; cat out; }
}
loss_of() {
    "$dtrun" status "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["loss"])'
}
