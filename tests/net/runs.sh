# Shared code of scripts that launch runs in $net/launch: a small recipe, checks of dtrun's output, and the end of every
# run that was started. The script that sources it sets $net and $usual, and defines a function undo.
#
#   recipe <<END ... END        $net/launch/r.yaml: these lines, and $usual and the usual ones for fields that they lack
#   wants CODE TEXT COMMAND...  the command ends so, and its output has the text ("": any)
#   value RUN EXPRESSION        over the object o of `dtrun status --json`
#   await SECONDS COMMAND...    until it is true
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dtrun=$(realpath "$DTRUN_BIN")/dtrun
failed=0

fail() { echo "FAILED: $*"; failed=1; }

end_runs() {
    "$dtrun" list --json --limit 0 2>/dev/null | python3 -c '
import json, sys
for run in json.load(sys.stdin)["runs"]:
    if run["state"] not in ("finished", "failed", "stopped"):
        print(run["run"])' 2>/dev/null | while read -r run; do
        "$dtrun" stop --now "$run" >/dev/null 2>&1
    done
}

at_exit() {
    local status=$?
    end_runs
    if grep -rlsE 'Sanitizer|runtime error|this is a bug' --include='*.log' "$net/launch/state"; then
        failed=1 # a detached process printed an error
    fi
    if [ $failed -ne 0 ]; then
        tail -n 25 "$net"/launch/state/dtrun/runs/*/supervisor.log 2>/dev/null
    fi
    undo
    [ $status -eq 0 ] && [ $failed -eq 0 ] && echo good
    [ $status -eq 0 ] && status=$failed
    exit $status
}

# Call this once $net exists.
begin() {
    trap at_exit EXIT
    export OMP_NUM_THREADS=1
    seq 1 2000 | sed 's/.*/line & of a text that can be learned/' >"$net/launch/corpus.txt"
}

recipe() {
    cat >"$net/launch/r.yaml"
    local line key
    while read -r line; do
        key=${line%%:*}
        grep -q "^$key:" "$net/launch/r.yaml" || echo "$line" >>"$net/launch/r.yaml"
    done <<END
$usual
ranks: 2
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 2, heads: 2, embed: 32}
data: {train: corpus.txt, tokens: char}
batch: {sequences: 2, tokens: 32}
optimizer: {lr: 1e-3}
schedule: {kind: cosine, warmup_steps: 5, steps: 40}
evaluate: {every: 20, sequences: 32}
checkpoint: {every: 20, keep: 2}
log: {every: 1}
END
}

wants() { # code text command...
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$net/out" 2>&1 </dev/null || got=$?
    [ $got -eq "$code" ] || fail "$*: code $got, wanted $code: $(cat "$net/out")"
    [ -z "$text" ] || grep -qF -- "$text" "$net/out" || fail "$*: does not say '$text': $(cat "$net/out")"
}

value() { "$dtrun" status "$1" --json | python3 -c "import json, sys; o = json.load(sys.stdin); print($2)"; }

await() { # limit command... (in seconds of an idle machine with two cores; a busy one gets three times that)
    local limit=$((3 * $1)) start
    shift
    start=$(date +%s%N)
    until "$@"; do
        [ $(($(date +%s%N) - start)) -lt $((limit * 1000000000)) ] || { fail "not within $limit s: $*"; exit 1; }
        sleep 0.05
    done
}
