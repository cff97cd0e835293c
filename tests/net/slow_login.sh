#!/usr/bin/env bash
# A login that takes long (conda on NFS, a module system) makes commands slow but breaks none: no time limit of one side
# includes the login of the other.
. "$(dirname "$0")/lib.sh"
case $(getent passwd "$(id -u)") in
*bash) ;;
*)
    echo "skipped: the login shell is not bash, which reads .bashrc under sshd"
    exit 77 ;;
esac
hosts 2 apart
slow() { # seconds hosts...
    local seconds=$1 host
    shift
    for host; do on "$host" sh -c "echo 'sleep $seconds' >/root/.bashrc"; done
}
recipe <<'END'
nodes: [host1, host2]
schedule: {steps: 30}
checkpoint: {every: 30}
evaluate: 0
END

slow 10 host1 host2
wants 0 good "$dtrun" doctor "$net/launch/r.yaml"
# longer than silent_seconds; with the connection that starts then also longer than no_agent_seconds (runner/times.h)
slow 7 host1 host2
launch slow
is "attempts" "$(value slow 'o["attempt"]')" 1
[ "$(find "$net"/launch/state/dtrun/runs/*/checkpoints -name complete | wc -l)" -eq 1 ] || fail "the checkpoint is not here"


# The next supervisor logs in again while ranks run; so does a stop.
wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set name=long --set schedule.steps=10000000 --set checkpoint.every=0
trains() { [ "$(value long 'o["step"] or 0')" -gt 0 ]; }
await 200 trains
kill -9 "$(pgrep -f "dtrun supervise $("$dtrun" list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')")"
wants 0 "" "$dtrun" stop long
is "attempts of a run whose supervisor was killed" "$(value long 'o["attempt"]')" 1
