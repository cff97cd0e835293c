#!/usr/bin/env bash
# Hosts that share no folder: every checkpoint is complete on the launch machine. A run continues from it after a killed
# rank, and on other hosts, with the losses of an undisturbed run.
. "$(dirname "$0")/lib.sh"
hosts 3 apart
home() { echo "$net/launch/state/dtrun/runs/$(value "$1" "o['run']")/checkpoints"; }
steps() { # RUN: the complete checkpoints here
    (cd "$(home "$1")" && for one in step-*; do [ ! -e "$one/complete" ] || echo -n "${one#step-00000} "; done)
}
# halted RUN STEP: launches the run, whose rank 2 (on the second node) halts itself after that step of the first
# attempt, so that a fast run does not end before the test acts on it. A stop wakes the rank.
halted() {
    DTRUN_FAULT="hang 2@$2" "$dtrun" launch --detach "$net/launch/r.yaml" --set name="$1" >/dev/null
}
has_ended() { [[ $(value "$1" "o['state']") =~ ^(finished|failed|stopped)$ ]]; }
start_of() { # RUN ATTEMPT
    "$dtrun" show "$1" --json | python3 -c "
import json, sys
print([a['start_step'] for a in json.load(sys.stdin)['attempts'] if a['attempt'] == $2][0])"
}

recipe <<'END'
strategy: fsdp
schedule: {kind: cosine, warmup_steps: 5, steps: 600}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 200, keep: 2, keep_best: 0}
log: {every: 10}
END
every=10 # a stopped run reports its last step too
launch golden --set 'nodes=[localhost, localhost#2]'
points=$(curve golden | wc -l)

# Checkpoints that the nodes no longer keep are not kept here either.
launch hosts
same_curve hosts golden "$points"
is "names here" "$(ls "$(home hosts)" | xargs)" "step-00000400 step-00000600"
is "checkpoints here" "$(steps hosts)" "400 600 "
[ -e "$(home hosts)/step-00000600/model-3.safetensors" ] || fail "the parameters of rank 3 are not here"
is "checkpoints of the store" "$("$dtrun" checkpoints hosts --json |
    python3 -c 'import json, sys; print([c["step"] for c in json.load(sys.stdin)["checkpoints"]])')" "[600, 400]"
"$dtrun" generate hosts --tokens 5 >"$net/out" 2>&1 || fail "no text from what came home: $(cat "$net/out")"

# Stopped, and resumed on this machine and a host that never had the run.
halted moves 25
await 60 past moves 20
"$dtrun" stop moves >"$net/out" 2>&1 || fail "stop: $(cat "$net/out")"
at=$(value moves "o['step']")
[ "$at" -lt 600 ] || fail "it was over before it was stopped"
wants 0 "" "$dtrun" resume moves --wait --set 'nodes=[host3, localhost]'
is "step that it continued from" "$(start_of moves 2)" "$at"
same_curve moves golden "$points"
[[ $(steps moves) == *"600 " ]] || fail "the last checkpoint is not here: $(steps moves)"

# A rank is killed on a host: the next attempt starts from the checkpoint that is here.
halted falls 250
has_checkpoint() { [ -n "$(steps falls)" ]; }
await 60 has_checkpoint
read -r node there <<<"$(value falls "o['nodes'][1]['host'], o['nodes'][1]['ranks'][0]['pid']")"
kill -9 "$("$net_sh" pid "$net" "$node" "$there")"
await 30 in_attempt falls 2
await 60 has_ended falls
is "how it ended" "$(value falls "o['state'], o['attempt']")" "finished 2"
[ "$(start_of falls 2)" -ge 200 ] || fail "the second attempt starts at step $(start_of falls 2)"
same_curve falls golden "$points"
