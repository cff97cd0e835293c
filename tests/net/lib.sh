# What the scripts of this folder share: hosts, dtrun's state in $net/launch, and the end of every
# run that was started.
#
#   hosts 2 [apart]             host1, host2 (net.sh); skips the test where they cannot be had, or
#                               where they are one machine
#   wants CODE TEXT COMMAND...  the command ends so, and its output has the text ("": any)
#   value RUN EXPRESSION        over the object o of `dtrun status --json`
#   curve RUN                   step, metric and value of losses and gradient norms, as text; with
#                               $every set of step 1 and its multiples
#   await SECONDS COMMAND...    until it is true
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dtrun=$(realpath "$DTRUN_BIN")/dtrun
net_sh=$PWD/tests/net/net.sh
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
    fi
    "$net_sh" down "$net"
    [ $status -eq 0 ] && [ $failed -eq 0 ] && echo good
    [ $status -eq 0 ] && status=$failed
    exit $status
}

hosts() { # how many [apart]
    net=$("$net_sh" up "$1") || exit $?
    trap at_exit EXIT
    . "$net/env"
    if [ "${2:-}" = apart ] && [ "$net_kind" != namespace ]; then
        echo "skipped: several sshd on 127.0.0.1 are one machine, which a run takes once"
        exit 77
    fi
    export OMP_NUM_THREADS=1
    seq 1 2000 | sed 's/.*/line & of a text that can be learned/' >"$net/launch/corpus.txt"
}

on() { "$net_sh" on "$net" "$@"; }

recipe() { # lines on top of the usual ones; those win
    cat >"$net/launch/r.yaml"
    local line key
    while read -r line; do
        key=${line%%:*}
        grep -q "^$key:" "$net/launch/r.yaml" || echo "$line" >>"$net/launch/r.yaml"
    done <<'END'
nodes: [host1, host2]
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

launch() { # name options...
    local name=$1 got=0
    shift
    "$dtrun" launch --wait "$net/launch/r.yaml" --set "name=$name" "$@" >"$net/out" 2>&1 || got=$?
    [ $got -eq 0 ] || fail "'$name' ends with $got: $(cat "$net/out")"
}

wants() { # code text command...
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$net/out" 2>&1 </dev/null || got=$?
    [ $got -eq "$code" ] || fail "$*: code $got, wanted $code: $(cat "$net/out")"
    [ -z "$text" ] || grep -qF -- "$text" "$net/out" || fail "$*: does not say '$text': $(cat "$net/out")"
}

value() { "$dtrun" status "$1" --json | python3 -c "import json, sys; o = json.load(sys.stdin); print($2)"; }
is() { [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"; }

await() { # seconds command...
    local limit=$1 start
    shift
    start=$(date +%s%N)
    until "$@"; do
        [ $(($(date +%s%N) - start)) -lt $((limit * 1000000000)) ] || { fail "not within $limit s: $*"; exit 1; }
        sleep 0.05
    done
}

curve() {
    "$dtrun" metrics "$1" | awk -F, -v every="${every:-1}" '
        $3 ~ /^(loss|valid_loss|gradient_norm)$/ && ($2 == 1 || $2 % every == 0) {print $2, $3, $4}'
}

# Exact: the same ranks exchange the same pieces in the same order, whatever lies between the nodes.
same_curve() { # a b lines
    curve "$1" >"$net/a"
    curve "$2" >"$net/b"
    [ "$(wc -l <"$net/a")" -eq "$3" ] || fail "'$1' has $(wc -l <"$net/a") points, expected $3"
    cmp -s "$net/a" "$net/b" || fail "'$1' and '$2' differ: $(diff "$net/a" "$net/b" | head -n 4)"
}
