# Shared code of the scripts of this folder: a Slurm cluster, and runs on it (../net/runs.sh).
#
#   cluster 2                   two nodes (slurm.sh), $nodes of them; skips the test if they cannot be made
#   job_of RUN, state_of JOB    the number of its job; Slurm's state of it ("": Slurm has no record)
. "$(dirname "${BASH_SOURCE[0]}")/../net/runs.sh"

undo() {
    [ $failed -eq 0 ] || tests/slurm/slurm.sh log "$slurm"
    tests/slurm/slurm.sh down "$slurm"
}

cluster() { # how many
    slurm=$(tests/slurm/slurm.sh up "$1") || exit $?
    . "$slurm/env"
    begin
    unset SLURM_JOB_ID SLURM_JOB_NODELIST
    usual="name: slurm-test
nodes: slurm:$nodes"
}

is() { [ "$(value "$1" "o.get('state')")" = "$2" ]; }        # run state
past() { [ "$(value "$1" "o.get('step', -1)" 2>/dev/null || echo -1)" -gt "$2" ]; }     # run step
state_of() { squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null; }
has_ended() { case $(state_of "$1") in PENDING | RUNNING | CONFIGURING | COMPLETING) false ;; esac; }
job_of() { # RUN: the job's number, from its file, or from the name of a node once the job was given back
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
