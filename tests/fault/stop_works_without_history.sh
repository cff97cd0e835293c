#!/usr/bin/env bash
# `dtrun stop` with only the folder of the run, or the name of a node: the history is deleted, is not a database, its
# disk is full, the whole state folder cannot be written, or the supervisor is paused. Every rank is gone, and the exit
# code shows it.
. "$(dirname "$0")/lib.sh"
export FAKE_STEPS=100000
database=$XDG_STATE_HOME/dtrun/store.db
disk=$XDG_STATE_HOME/dtrun

ranks_of() { # run: its ranks, and no others
    local file
    for file in $(grep -lzsxF "DTRUN_RUN_ID=$1" /proc/[0-9]*/environ); do
        file=${file//[!0-9]/}
        is_dead "$file" || echo "$file"
    done
}
processes_of() { { processes "supervise $1 "; processes "runs/$1/"; } | sort -u; } # ranks, agents and supervisor
no_ranks() { [ -z "$(ranks_of "$1")" ]; }
kill_supervisor() { # run
    kill -9 $(processes "supervise $1")
    await 10 no_supervisor "$1"
}
stop_is_good() { # run options...
    local status=0
    "$dtrun" stop "$@" >"$TMPDIR_OUT/out" 2>&1 || status=$?
    [ $status -eq 0 ] || fail "dtrun stop $*: exit $status: $(cat "$TMPDIR_OUT/out")"
    no_ranks "$1" || fail "dtrun stop $* said 0, and ranks are left: $(cat "$TMPDIR_OUT/out")"
}
TMPDIR_OUT=$(mktemp -d)
mounted=
clean_more() {
    [ -z "$mounted" ] || umount -l "$disk" || true
    rm -rf "$TMPDIR_OUT"
}

# Deleted, with and without a supervisor; not a database; by id, prefix and `last`.
for how in deleted orphaned garbage; do
    "$driver" launch "run-$how" 2 2
    await 20 has_step "run-$how" 3
    [ $how = deleted ] || kill_supervisor "run-$how"
    rm -f "$database" "$database"-*
    [ $how != garbage ] || echo "this is no database, and it is long enough to be seen as none" >"$database"
    case $how in
    deleted) stop_is_good "run-$how" ;;
    orphaned) "$dtrun" stop run-o >"$TMPDIR_OUT/out" 2>&1 || fail "$(cat "$TMPDIR_OUT/out")" ;;
    garbage) "$dtrun" stop last >"$TMPDIR_OUT/out" 2>&1 || fail "$(cat "$TMPDIR_OUT/out")" ;;
    esac
    await 10 no_ranks "run-$how"
    for pid in $(processes "supervise"); do kill -9 "$pid"; done
    rm -f "$database" "$database"-*
done
! "$dtrun" stop nobody >"$TMPDIR_OUT/out" 2>&1 || fail "a run that nobody knows is stopped"

# On one node only: lists what runs there, and ends one run. (The names are unique to this test, because all runs of
# this machine are found.)
pair=pair-$$-$RANDOM
one=$pair-1 two=$pair-2
"$driver" launch "$one" 2
"$driver" launch "$two" 2
await 20 has_step "$one" 3
await 20 has_step "$two" 3
"$dtrun" stop --node localhost >"$TMPDIR_OUT/out"
for run in "$one" "$two"; do
    grep -q "^$run attempt 1: is running" "$TMPDIR_OUT/out" || fail "$run is not listed: $(cat "$TMPDIR_OUT/out")"
done
for ref in "$pair" ""; do # an ambiguous prefix, and one that matches nothing
    status=0
    "$dtrun" stop --node localhost "$ref" >"$TMPDIR_OUT/out" 2>&1 || status=$?
    is "exit code of stop --node '$ref'" $status 2
done
"$dtrun" stop --node localhost "$pair" >"$TMPDIR_OUT/out" 2>&1 || true
for run in "$one" "$two"; do
    grep -q "several.*$run" "$TMPDIR_OUT/out" || fail "$run is no candidate: $(cat "$TMPDIR_OUT/out")"
    [ -n "$(ranks_of "$run")" ] || fail "$run was ended by the beginning of two names"
done
"$dtrun" stop --node localhost "$one" >"$TMPDIR_OUT/out" || fail "stop --node: $?"
no_ranks "$one" || fail "ranks of the first are left"
[ -n "$(ranks_of "$two")" ] || fail "the second was ended with the first"
end_is "$one" stopped 4 # its supervisor knows that a person stopped it
kill_supervisor "$two"
"$dtrun" stop --node localhost "$two" --now >"$TMPDIR_OUT/out" || fail "stop --node: $?"
no_ranks "$two" || fail "ranks of the second are left"
"$driver" ensure "$two"
await 30 has_ended "$two"

# From here on a stop waits for the store, the supervisor and the agents.
export DTRUN_TEST_TIMES=0.2

# A supervisor that is paused (SIGSTOP): its nodes are asked directly; it records the end once it continues.
"$driver" launch paused 2
await 20 has_step paused 3
pid=$(processes "supervise paused")
kill -STOP $pid
"$dtrun" list 2>&1 | grep -q 'paused  *paused' || fail "the list shows no paused run: $("$dtrun" list 2>&1)"
for command in "status paused" "wait paused --limit 2" "logs -f paused"; do
    timeout 3 "$dtrun" $command >"$TMPDIR_OUT/out" 2>&1 || true
    grep -q "process $pid, is paused by a signal (state T): 'kill -CONT $pid'" "$TMPDIR_OUT/out" ||
        fail "dtrun $command does not name the paused process: $(cat "$TMPDIR_OUT/out")"
done
status=0
"$dtrun" stop paused >"$TMPDIR_OUT/out" 2>&1 || status=$?
is "exit code of stop, with a paused supervisor" $status 5
grep -q "process $pid, is paused: 'kill -CONT $pid'" "$TMPDIR_OUT/out" || fail "$(cat "$TMPDIR_OUT/out")"
no_ranks paused || fail "ranks of a paused supervisor are left"
kill -CONT $pid
end_is paused stopped 4
"$driver" launch paused-now 2
await 20 has_step paused-now 3
kill -STOP $(processes "supervise paused-now")
stop_is_good paused-now --now
[ -z "$(processes_of paused-now)" ] || fail "stop --now said that nothing is left of a paused supervisor"
"$driver" ensure paused-now
end_is paused-now stopped 4

# Everything is paused, as on a frozen machine: supervisor, bridges, agents, ranks. --now ends all of it.
"$driver" launch frozen 2 2
await 20 has_step frozen 3
kill -STOP $(processes_of frozen) $(ranks_of frozen)
stop_is_good frozen --now
left=$(processes_of frozen)
[ -z "$left" ] || fail "stop --now left paused processes: $(ps -o pid=,stat=,args= -p "${left//$'\n'/,}")"
"$driver" ensure frozen
end_is frozen stopped 4

# A full disk, and a disk that cannot be written.
if mkdir -p "$TMPDIR_OUT/keep" && mv "$disk" "$TMPDIR_OUT/keep/" && mkdir "$disk" &&
    mount -t tmpfs -o size=8m none "$disk" 2>/dev/null; then
    mounted=yes
    for also in supervised orphaned; do
        "$driver" launch "full-$also" 2
        await 20 has_step "full-$also" 3
        [ $also = supervised ] || kill_supervisor "full-$also"
        head -c 8M /dev/zero >"$disk/filler" 2>/dev/null || true
        # Without --now, processes with something to write wait for space, and stop reports this.
        status=0
        "$dtrun" stop "full-$also" >"$TMPDIR_OUT/out" 2>&1 || status=$?
        no_ranks "full-$also" || fail "ranks are left: $(cat "$TMPDIR_OUT/out")"
        if [ -n "$(processes_of "full-$also")" ]; then
            is "exit code of stop, with a supervisor that waits" $status 5
            grep -q 'its supervisor waits until' "$TMPDIR_OUT/out" ||
                fail "stop does not name the supervisor: $(cat "$TMPDIR_OUT/out")"
        fi
        stop_is_good "full-$also" --now
        left=$(processes_of "full-$also")
        [ -z "$left" ] || fail "stop --now said that nothing is left of full-$also: $(ps -o args= -p "${left//$'\n'/,}")"
        "$dtrun" status "full-$also" >"$TMPDIR_OUT/out" 2>&1 || true # starts no rank
        no_ranks "full-$also" || fail "a look at the run began it again"
        rm -f "$disk/filler"
        "$driver" ensure "full-$also"
        await 60 has_ended "full-$also"
        is state "$(get "full-$also" state)" stopped
        is attempt "$(get "full-$also" attempt)" 1
    done
    # --now, without a stop that waits before it; and the run can be resumed.
    "$driver" launch full-at-once 2
    await 20 has_step full-at-once 3
    head -c 8M /dev/zero >"$disk/filler" 2>/dev/null || true
    stop_is_good full-at-once --now
    [ -z "$(processes_of full-at-once)" ] || fail "stop --now said that nothing is left of full-at-once"
    rm -f "$disk/filler"
    "$driver" ensure full-at-once
    end_is full-at-once stopped 4
    grep -q '^follow ' "$disk/runs/full-at-once/supervisor.lock" || fail "the mark outlives the run's end"
    # The state folder is read-only for the user who stops.
    "$driver" launch read-only 2
    await 20 has_step read-only 3
    kill_supervisor read-only
    unshare -m sh -c "mount --bind '$disk' '$disk' && mount -o remount,bind,ro '$disk' &&
        exec '$dtrun' stop read-only" >"$TMPDIR_OUT/out" 2>&1 ||
        fail "read-only: exit $?: $(cat "$TMPDIR_OUT/out")"
    await 10 no_ranks read-only
else
    echo "not tried: a file system of its own needs root"
fi
for pid in $(processes "supervise"); do kill -9 "$pid"; done
await 20 nothing_left
