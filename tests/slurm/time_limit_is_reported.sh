#!/usr/bin/env bash
# A job that reaches its time limit ends the run, which reports this and continues in another job. (Slurm checks limits
# about once a minute, so that this test waits as long.)
. "$(dirname "$0")/lib.sh"
cluster 1
recipe <<END
nodes: slurm:1
schedule: {kind: cosine, steps: 1000000}
checkpoint: {every: 500, keep: 2}
END
wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set name=limited
await 60 sh -c '"$1" checkpoints limited --json | grep -q "\"step\""' sh "$dtrun"
job=$(job_of "$(value limited "o['run']")")
scontrol update JobId="$job" TimeLimit=0:01
await 180 is limited failed
grep -q "Slurm job $job reached its time limit" <<<"$(value limited "o['reason']")" || fail "it says: $(value limited "o['reason']")"
step=$("$dtrun" checkpoints limited --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][0]["step"])')
wants 0 "" "$dtrun" resume --wait limited --set schedule.steps=$((step + 5))
[ "$(value limited "(o['state'], o['step'])")" = "('finished', $((step + 5)))" ] || fail "resumed: $(value limited o)"
