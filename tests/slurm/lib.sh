# What the scripts of this folder share: a Slurm cluster, dtrun's state, the end of all of it.
#
#   cluster 2                   two nodes (slurm.sh), $nodes of them; skips the test where they cannot be had
#   recipe <<END ... END        $net/launch/r.yaml: these lines, and the usual ones where they say nothing
#   wants CODE TEXT COMMAND...  the command ends so, and its output has the text ("": any)
#   value RUN EXPRESSION        over the object o of `dtrun status --json`
#   await SECONDS COMMAND...    until it is true
#   job_of RUN, state_of JOB    the number of its job; Slurm's word for how that is ("" forgotten)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dtrun=$DTRUN_BIN/dtrun
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
        failed=1 # a detached process complained
    fi
    if [ $failed -ne 0 ]; then
        tail -n 25 "$net"/launch/state/dtrun/runs/*/supervisor.log 2>/dev/null
        tests/slurm/slurm.sh log "$slurm"
    fi
    tests/slurm/slurm.sh down "$slurm"
    [ $status -eq 0 ] && [ $failed -eq 0 ] && echo good
    [ $status -eq 0 ] && status=$failed
    exit $status
}

cluster() { # how many
    slurm=$(tests/slurm/slurm.sh up "$1") || exit $?
    . "$slurm/env"
    trap at_exit EXIT
    export OMP_NUM_THREADS=1
    unset SLURM_JOB_ID SLURM_JOB_NODELIST
    seq 1 2000 | sed 's/.*/line & of a text that can be learned/' >"$net/launch/corpus.txt"
}

recipe() {
    cat >"$net/launch/r.yaml"
    local line key
    while read -r line; do
        key=${line%%:*}
        grep -q "^$key:" "$net/launch/r.yaml" || echo "$line" >>"$net/launch/r.yaml"
    done <<END
name: slurm-test
nodes: slurm:$nodes
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

await() { # seconds command...
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $until ] || { fail "never: $*"; return 1; }
        sleep 0.2
    done
}

is() { [ "$(value "$1" "o.get('state')")" = "$2" ]; }        # run state
past() { [ "$(value "$1" "o.get('step', -1)" 2>/dev/null || echo -1)" -gt "$2" ]; }     # run step
state_of() { squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null; }
has_ended() { case $(state_of "$1") in PENDING | RUNNING | CONFIGURING | COMPLETING) false ;; esac; }
job_of() { # RUN: of its file, or of a node's name once the job has been given back
    python3 - "$XDG_STATE_HOME/dtrun/runs/$1" <<'END'
import glob, json, os, sys
path = sys.argv[1] + "/slurm.json"
if os.path.exists(path):
    print(json.load(open(path))["job"])
else:
    places = sorted(glob.glob(sys.argv[1] + "/attempt-*/node-0/place.json"))
    print(json.load(open(places[-1]))["node"].split(":")[1].split("/")[0])
END
}
