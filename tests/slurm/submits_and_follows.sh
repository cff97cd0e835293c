#!/usr/bin/env bash
# Outside a job: `nodes: slurm:N` submits one, waits for it, trains on its nodes, and gives them back. A refusal by
# Slurm is reported before a run exists.
. "$(dirname "$0")/lib.sh"
cluster 2

recipe </dev/null
wants 0 "" "$dtrun" launch --wait "$net/launch/r.yaml"
run=$("$dtrun" list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
[ "$(value "$run" "(o['state'], o['step'], len(o['nodes']))")" = "('finished', 40, $nodes)" ] ||
    fail "it ends as $(value "$run" o)"
job=$(job_of "$run")
grep -q "slurm:$job/" <<<"$(value "$run" "[n['host'] for n in o['nodes']]")" || fail "hosts: $(value "$run" "o['nodes']")"
await 60 has_ended "$job"
[ "$(state_of "$job")" = COMPLETED ] || fail "its job counts as $(state_of "$job")"
[ "$("$dtrun" checkpoints "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][0]["step"])')" = 40 ] ||
    fail "the last checkpoint is not here"
[ "$("$dtrun" logs "$run" | grep -c .)" -gt 0 ] || fail "no logs are here"

# Continues in another job.
wants 0 "" "$dtrun" resume --wait "$run" --set schedule.steps=60
[ "$(value "$run" "(o['state'], o['step'], o['attempt'])")" = "('finished', 60, 2)" ] || fail "resumed: $(value "$run" o)"
[ "$(job_of "$run")" -gt "$job" ] || fail "a resumed run does not submit anew"

# The same losses as on this machine, except for the order of the sums: in pairs on the nodes, four in sequence here.
recipe <<END
nodes: localhost
ranks: $((2 * nodes))
END
wants 0 "" "$dtrun" launch --wait "$net/launch/r.yaml" --set name=here
losses() { "$dtrun" metrics "$1" --name loss --format csv | awk -F, '$2 <= 40 {print $2, $4}'; }
paste <(losses here) <(losses "$run") |
    awk '$1 != $3 || ($2 - $4) ^ 2 > (1e-5 * $2) ^ 2 {print; bad = 1} END {exit bad || NR < 40}' ||
    fail "losses differ from this machine's"

# Refused: by Slurm, by the recipe, for a missing sbatch; no run remains.
recipe </dev/null
count() { "$dtrun" list --json --limit 0 | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"]))'; }
before=$(count)
wants 3 "Slurm rejected the job" "$dtrun" launch --wait "$net/launch/r.yaml" --set 'slurm.options=[--partition=nowhere]'
wants 2 "itself, from nodes, ranks and threads" "$dtrun" launch --wait "$net/launch/r.yaml" --set 'slurm.options=[--array=1-3]'
wants 2 "long form" "$dtrun" launch --wait "$net/launch/r.yaml" --set 'slurm.options=[-p main]'
wants 2 "does not run in one" "$dtrun" launch --wait "$net/launch/r.yaml" --set nodes=slurm
wants 2 "number from 1 to 1024" "$dtrun" launch --wait "$net/launch/r.yaml" --set nodes=slurm:many
mkdir "$net/nothing"
for tool in env sh bash setsid; do ln -s "$(command -v $tool)" "$net/nothing/$tool"; done
wants 3 "cannot find 'sbatch'" env PATH="$net/nothing" "$dtrun" launch --wait "$net/launch/r.yaml"
wants 3 "salloc" "$dtrun" doctor "$net/launch/r.yaml"
[ "$(count)" = "$before" ] || fail "a refused launch leaves a run"
