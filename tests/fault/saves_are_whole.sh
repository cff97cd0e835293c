#!/usr/bin/env bash
# Kills at random points of a save, and a full disk: a complete checkpoint always loads, partial ones are skipped, and
# the losses equal those of an undisturbed run. FAULT_FULL=1: 100 kills of a rank that nearly always saves, else 6.
. "$(dirname "$0")/lib.sh"
real_engine
kills=6
[ -z "${FAULT_FULL:-}" ] || kills=100
repo=$(cd "$(dirname "$0")/../.." && pwd)
cat >"$XDG_STATE_HOME/saves.yaml" <<'YAML'
ranks: 2
threads: 1
strategy: fsdp
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: constant, warmup_steps: 5, steps: 1000000}
checkpoint: {every: 2, keep: 3}
log: {every: 1}
failure: {max_restarts: 1000}
YAML
newest() { # step of the newest checkpoint
    local name
    name=$(cd "$runs/$id/checkpoints" 2>/dev/null && ls -d step-*/complete 2>/dev/null | tail -n 1) || true
    name=${name%/complete}
    echo $((10#0${name#step-}))
}
saves_again() { [ "$(newest)" -ge $((saved + 10)) ]; } # unlike the ranks that a kill leaves

# The run does not end by itself, and saves between two kills, so that all kills are tried on fast and on slow machines.
id=$("$dtrun" launch --detach "$XDG_STATE_HOME/saves.yaml" --set name=killed) saved=0
done=0
while [ $done -lt $kills ]; do
    await 60 saves_again
    sleep "0.$(printf %03d $((RANDOM % 100)))"
    pids=($(processes 'dtrun-engine train'))
    [ ${#pids[@]} -gt 0 ] || continue
    kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && done=$((done + 1))
    saved=$(newest)
done
await 60 saves_again
"$dtrun" stop killed >/dev/null
is "state ($(value killed "o['reason']"))" "$(value killed "o['state']")" stopped
steps=$(value killed "o['step']")
is "steps" "$(losses killed | cut -d, -f1 | tr '\n' ' ')" "$(seq "$steps" | tr '\n' ' ')"
"$dtrun" launch --wait "$XDG_STATE_HOME/saves.yaml" --set name=golden --set "schedule.steps=$steps" >/dev/null 2>&1 ||
    fail "the run that nothing happens to: exit $?"
different=$(comm -13 <(losses golden | sort) <(losses killed | sort) | wc -l)
figure 9 "ranks killed $done times while they save every second step: losses that differ" 0 "$different"
is "losses that differ" "$different" 0
await 10 nothing_left

# Separate tests, which the table of ten.sh names.
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
passes "a disk that fills up while a run saves: the older one stays, training continues" \
    bash tests/dist/full_disk.sh
