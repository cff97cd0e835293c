#!/usr/bin/env bash
# Killed at random points of a save, and a full disk: a whole checkpoint always loads, what is partial
# is passed over, and the losses are those of the run that nothing happened to.
# FAULT_FULL=1: 100 kills of a rank that nearly always saves, else 6.
. "$(dirname "$0")/lib.sh"
unset DTRUN_ENGINE
export OMP_NUM_THREADS=1
kills=6 steps=400
[ -z "${FAULT_FULL:-}" ] || { kills=100 steps=2000; }
repo=$(cd "$(dirname "$0")/../.." && pwd)
dtrun=$DTRUN_BIN/dtrun
seq 1 4000 | sed 's/.*/line & of a text that can be learned/' >"$XDG_STATE_HOME/corpus.txt"
cat >"$XDG_STATE_HOME/saves.yaml" <<YAML
ranks: 2
threads: 1
strategy: fsdp
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, warmup_steps: 5, steps: $steps}
checkpoint: {every: 2, keep: 3}
log: {every: 1}
failure: {max_restarts: 1000}
YAML
launch() { "$dtrun" launch --detach "$XDG_STATE_HOME/saves.yaml" --set "name=$1" >/dev/null; }
value() { # run expression over the object o
    "$dtrun" status "$1" --json | python3 -c "import json, sys; o = json.load(sys.stdin); print($2)"
}
is_over() { [[ $(value "$1" "o['state']") =~ ^(finished|failed|stopped)$ ]]; }
losses() { "$dtrun" metrics "$1" --name loss | tail -n +2 | cut -d, -f2,4; }

launch golden
await 120 is_over golden
launch killed
done=0
while [ $done -lt $kills ]; do # nothing slow between two: a fast machine is soon through its steps
    sleep "0.$(printf %03d $((RANDOM % 400)))"
    pids=($(processes 'dtrun-engine train'))
    if [ ${#pids[@]} -eq 0 ]; then
        is_over killed && break
        continue
    fi
    kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && done=$((done + 1))
done
await 240 is_over killed
is "state ($(value killed "o['reason']"))" "$(value killed "o['state']")" finished
[ $done -ge 3 ] || fail "only $done kills: the run was over before"
is "steps" "$(losses killed | cut -d, -f1 | tr '\n' ' ')" "$(seq $steps | tr '\n' ' ')"
different=$(comm -13 <(losses golden | sort) <(losses killed | sort) | wc -l)
figure 9 "ranks killed $done times while they save every second step: losses that differ" 0 "$different"
is "losses that differ" "$different" 0
await 10 nothing_left

# Tests of their own, which the table of ten.sh wants to name.
[ -n "${FAULT_FULL:-}" ] || exit 0
passes() { # what command...
    local code=0
    (cd "$repo" && "${@:2}") >"$XDG_STATE_HOME/out" 2>&1 || code=$?
    case $code in
    0) figure 9 "$1" - passed ;;
    77) figure 9 "$1" - skipped ;;
    *) fail "$1: $(<"$XDG_STATE_HOME/out")" ;;
    esac
}
passes "the writer killed at ${DTRUN_KILLS:-some} random points of a save: what it told of loads" \
    "$DTRUN_BIN/test_checkpoint_writer"
passes "killed, and the disk full, at every call of a save: an older whole one loads" \
    "$DTRUN_BIN/test_checkpoint_faults"
passes "a disk that fills up while a run saves: the older one stays, training goes on" \
    bash tests/dist/full_disk.sh
