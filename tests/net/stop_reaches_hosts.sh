#!/usr/bin/env bash
# Over ssh: `stop --node HOST` ends a run there without its supervisor and its history. A node whose home was wiped, or
# that refuses logins, does not prevent a stop from ending correctly.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.5
hosts 2 apart
id_of() { value "$1" "o['run']"; }
ranks_of() { # id: its ranks on all hosts, whose processes this machine sees too
    local file stat
    for file in $(grep -lzsxF "DTRUN_RUN_ID=$1" /proc/[0-9]*/environ); do
        file=${file%/environ}
        read -r stat 2>/dev/null <"$file/stat" && [[ ${stat##*) } != Z* ]] && echo "${file#/proc/}"
    done
    true
}
no_ranks() { [ -z "$(ranks_of "$1")" ]; }
start() { # name options...
    "$dtrun" launch --detach "$net/launch/r.yaml" --set "name=$1" "${@:2}" >"$net/out" 2>&1 || fail "launch: $(cat "$net/out")"
    await 60 past "$1" 5
}
recipe <<'YAML'
schedule: {kind: constant, steps: 1000000}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 1000000, keep: 2, keep_best: 0}
failure: {max_restarts: 0}
ranks: 1
YAML

# One node, without history and supervisor: the run is listed from the process table, and ended by its id.
start alone --set 'nodes=[host1]'
id=$(id_of alone)
kill -9 $(pgrep -f "dtrun supervise $id\$")
mv "$net/launch/state" "$net/away"
wants 0 "$id attempt 1: is running" "$dtrun" stop --node host1
wants 2 "is empty" "$dtrun" stop --node host1 ""
no_ranks "$id" && fail "who only asked has ended the run"
wants 0 "$id attempt 1: nothing of it is left" "$dtrun" stop --node host1 "${id:0:10}"
no_ranks "$id" || fail "ranks are left: $(ranks_of "$id")"
wants 0 "nothing of $id runs on host1" "$dtrun" stop --node host1 "$id"
rm -rf "$net/launch/state" && mv "$net/away" "$net/launch/state"
ended() { is_now alone stopped; }
await 60 ended

# Everything is frozen (SIGSTOP): supervisor, dtrun-reach, ssh and its master here; agent, bridge and rank there.
start frozen --set 'nodes=[host1]'
id=$(id_of frozen)
of_run() { pgrep -f "[ /]$id( |/|\$)"; }
kill -STOP $(of_run) $(ranks_of "$id") $(pgrep -f "^ssh: $net/.*\[mux\]")
wants 0 "nothing of run $id is left running" "$dtrun" stop frozen --now
[ -z "$(of_run)" ] || fail "frozen processes are left: $(ps -o pid=,stat=,args= -p "$(of_run | paste -sd,)")"
ended() { is_now frozen stopped; }
await 60 ended

# A home that was wiped during a run: an agent that is installed again finds and ends what ran there.
start wiped
id=$(id_of wiped)
on host2 find /root -mindepth 1 -delete 2>/dev/null
wants 0 "" "$dtrun" stop wiped
no_ranks "$id" || fail "ranks are left: $(ranks_of "$id")"

# A wiped node that never accepts a login again: code 5 until --forgive-node.
start gone
id=$(id_of gone)
mv "$net/host2/authorized_keys" "$net/host2/authorized_keys.away"
kill -9 $("$net_sh" pids "$net" host2 | grep -vx "$(<"$net/host2/sshd.pid")") 2>/dev/null
on host2 find /root -mindepth 1 -delete 2>/dev/null
over() { is_now gone failed || is_now gone stopped; }
wants 5 "host2" "$dtrun" stop gone --now
await 60 over
wants 5 "host2" "$dtrun" stop gone
wants 0 "" "$dtrun" stop gone --forgive-node host2
wants 0 "" "$dtrun" stop gone
no_ranks "$id" || fail "ranks are left: $(ranks_of "$id")"
