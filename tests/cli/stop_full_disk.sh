#!/usr/bin/env bash
# The disk of the history is full: a run, a run without supervisor, and a sweep can be stopped nevertheless. What stop
# reports is true, and once there is space the history has their ends.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25 # on a full disk a stop waits for the store, the supervisor and the agents
make_tiny
mkdir "$work/small"
if ! mount -t tmpfs -o size=80m none "$work/small" 2>/dev/null; then
    echo "skipped: a file system of its own needs root"
    exit 77
fi
trap 'free_space; at_exit' EXIT
export XDG_STATE_HOME=$work/small
fill_space() {
    dd if=/dev/zero of="$work/small/filler" bs=64k 2>/dev/null
    dd if=/dev/zero of="$work/small/filler2" bs=512 2>/dev/null
}
# SQLite's log may have free space inside its file: the disk is full for the history once it stores no more steps.
takes_no_step() { # run
    local before
    before=$(step_of "$1")
    sleep 1
    [ "$(step_of "$1")" = "$before" ]
}
step_of() { "$dtrun" status "$1" --json | python3 -c "import json, sys; print(json.load(sys.stdin)['step'])"; }
free_space() { rm -f "$work"/small/filler*; }
processes() { pgrep -f "^([^ ]*/)?$1.*$2"; } # program run
# No checkpoint may be saved meanwhile: one that does not fit is removed, and then there is space again.
long=(--set schedule.steps=100000000 --set evaluate.every=100000000 --set checkpoint.every=100000000)
launch() { # arguments...
    expect 0 launch --detach "$@" "${long[@]}"
    run=$(cat "$work/out")
    within 60 step_reached "$run" 10
}
gone() { # run: neither ranks nor processes that wait to record its end
    [ -z "$(processes dtrun "$1")" ]
}
is_stopped() { # run
    within 30 state_is "$1" stopped
    within 30 gone "$1"
    expect 0 stop "$1"
    says "has already ended: stopped"
}

launch "$work/tiny.yaml"
fill_space
within 30 takes_no_step "$run"
expect 5 stop "$run"
[ -z "$(processes dtrun-engine "$run")" ] || fail "ranks are left"
says "no rank of run $run is left running" "its supervisor waits" "No space left"
[ -n "$(processes 'dtrun supervise' "$run")" ] || fail "no supervisor waits"
free_space
is_stopped "$run"

launch "$work/tiny.yaml"
fill_space
within 30 takes_no_step "$run"
expect 0 stop --now "$run"
says "nothing of run $run is left running" "No space left"
[ -z "$(processes dtrun "$run")" ] || fail "stop --now said that nothing is left"
expect 0 status "$run" # the history still has its old state
says "run '$run' was stopped; the history will show it once it can be written"
free_space
is_stopped "$run"

launch "$work/tiny.yaml"
fill_space
within 30 takes_no_step "$run"
kill -9 "$(processes 'dtrun supervise' "$run")"
expect 0 stop --now "$run" --json
json "o['run'] == '$run'" "o['left'] == ''" "o['directly']" "o['nodes_asked'] == 1"
[ -z "$(processes dtrun-engine "$run")" ] || fail "ranks are left"
free_space
is_stopped "$run"

# A sweep: its driver must notice the stop, and no other point starts.
cat >"$work/sweep.yaml" <<'YAML'
extends: tiny.yaml
sweep: {seed: [1, 2, 3]}
search: {at_once: 2}
YAML
expect 0 launch --detach "$work/sweep.yaml" "${long[@]}" --group many
all_run() {
    expect 0 status many --json
    [ "$(field "[p['state'] for p in o['points']]")" = "['running', 'running', 'waiting']" ]
}
within 60 all_run
expect 0 status many --json
runs=$(field "' '.join(p['run'] for p in o['points'][:2])")
fill_space
expect 0 stop many --now --json
json "sorted(r['run'] for r in o['runs']) == sorted('$runs'.split())" "all(r['left'] == '' for r in o['runs'])"
for run in $runs; do
    [ -z "$(processes dtrun-engine "$run")" ] || fail "ranks of $run are left"
done
free_space
ended() { "$dtrun" status many --json >"$work/out"; [ "$(field "o['ended']")" = True ]; }
within 30 ended
for run in $runs; do is_stopped "$run"; done
expect 0 list --group many --json
json "len(o['runs']) == 2"
umount "$work/small"
