#!/usr/bin/env bash
# Inside a job: nodes, ranks and CPUs are those of the job, which is not changed.
. "$(dirname "$0")/lib.sh"
cluster 2

salloc_run() { salloc --quiet --nodes="$nodes" --ntasks-per-node=2 --cpus-per-task=1 "$@"; }

recipe <<END
nodes: slurm
ranks: 1
threads: 0
END
wants 0 "" salloc_run "$dtrun" launch --wait "$net/launch/r.yaml"
run=$("$dtrun" list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
[ "$(value "$run" "(o['state'], o['step'], [len(n['ranks']) for n in o['nodes']])")" = "('finished', 40, $(python3 -c "print([2] * $nodes)"))" ] ||
    fail "it ends as $(value "$run" o)"

# As a batch script, the way jobs are written on clusters.
cat >"$net/launch/job.sh" <<END
#!/bin/sh
exec "$dtrun" launch --wait "$net/launch/r.yaml" --set name=batch
END
if [ "$net_kind" != namespace ]; then # hosts with their own namespaces do not see this machine's programs
    job=$(sbatch --parsable --nodes="$nodes" --ntasks-per-node=2 --output="$net/launch/job.log" "$net/launch/job.sh")
    await 60 has_ended "$job"
    [ "$(state_of "$job")" = COMPLETED ] || fail "the batch job: $(cat "$net/launch/job.log")"
fi

# doctor sees them; a job that is smaller than the recipe is reported.
wants 0 "slurm:" salloc_run "$dtrun" doctor "$net/launch/r.yaml"
wants 2 "use 'nodes: slurm' to take all nodes of the job" salloc_run "$dtrun" launch --wait "$net/launch/r.yaml" --set nodes=slurm:7

# The end of the job ends the run, and is reported.
recipe <<END
nodes: slurm
schedule: {kind: cosine, steps: 1000000}
END
salloc_run sh -c 'echo $SLURM_JOB_ID >"$1"; "$2" launch --wait "$3" --set name=long' sh "$net/job" "$dtrun" "$net/launch/r.yaml" >"$net/long" 2>&1 &
await 60 test -s "$net/job"
await 60 past long 5
scancel "$(cat "$net/job")"
await 60 is long failed
grep -q "Slurm job $(cat "$net/job") was cancelled" <<<"$(value long "o['reason']")" || fail "it says: $(value long "o['reason']")"
