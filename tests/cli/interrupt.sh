#!/usr/bin/env bash
# Ctrl-C during a followed launch: exit code 130, the command to follow it again, and the run continues.
. "$(dirname "$0")/lib.sh"
make_tiny

# Sends SIGINT to the whole process group of the command, as a terminal does.
launch_and_interrupt() { # name, extra arguments
    local name=$1
    shift
    set -m
    "$dtrun" launch "$work/tiny.yaml" --set schedule.steps=1000000000 --set "name=$name" "$@" \
        >"$work/out" 2>"$work/err" </dev/null &
    local pid=$!
    set +m
    within 60 step_reached "$name" 5
    subject="Ctrl-C in dtrun launch $*"
    kill -INT -- "-$pid"
    wait "$pid"
    [ $? -eq 130 ] || fail "the exit code is not 130"
}

launch_and_interrupt followed
says "detached" "dtrun status --watch" "dtrun logs -f" "dtrun stop"
expect 0 status followed --json
json "o['state'] == 'running'"
step=$(field "o['step']")
within 60 step_reached followed $((step + 5))

# Another process can follow the run, and detach again.
set -m
"$dtrun" status --watch followed >"$work/out" 2>"$work/err" </dev/null &
pid=$!
set +m
within 60 grep -q "loss" "$work/err"
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "leaving status --watch did not give 130"
set -m
"$dtrun" logs -f followed >"$work/lines" 2>"$work/err" </dev/null &
pid=$!
set +m
within 60 test -s "$work/lines"
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "leaving logs -f did not give 130"
expect 0 stop --now followed

launch_and_interrupt awaited --wait --json
json "o['state'] == 'running'" "o['steps'] >= 1"
expect 0 stop --now awaited
