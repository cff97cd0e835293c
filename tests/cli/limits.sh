#!/usr/bin/env bash
# Limits of a process (ulimit): a command that cannot work is refused, naming the limit; a supervisor that exits at once
# is not started for ever, and every command reports why; a stopped run never continues.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.1 # interval of checks of a supervisor
make_tiny
supervisor() { pgrep -f "dtrun supervise $1\$"; }
under() { # limit, exit code, arguments...: as expect, under `ulimit LIMIT`
    local limit=$1 wanted=$2 got=0
    shift 2
    subject="ulimit $limit; dtrun $*"
    (ulimit $limit && exec timeout 100 "$dtrun" "$@") >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ $got -eq "$wanted" ] || fail "exit code $got, wanted $wanted"
}
long_run() { # name
    expect 0 launch --detach "$work/tiny.yaml" --set "name=$1" --set schedule.steps=1000000000 \
        --set checkpoint.every=0 --set evaluate.every=0
    run=$(cat "$work/out")
    within 20 step_reached "$run" 3
}

# A file size limit.
under '-f 100' 3 launch "$work/tiny.yaml" --wait
says "the file size limit is 100 KiB" "ulimit -f unlimited"
nothing_half_made
under '-s 64' 3 list
says "ulimit -s"

# Commands under such a limit start no supervisor that cannot work, and do not kill the run.
long_run sized
kill -9 "$(supervisor "$run")"
under '-f 100' 0 status "$run"
says "run '$run' has no supervisor right now" "ulimit -f"
[ -z "$(supervisor "$run")" ] || fail "a supervisor was started"
# A stop under the limit is recorded before it is reported: no supervisor continues the run afterwards.
under '-f 100' 0 stop --now "$run"
says "nothing of run $run is left running"
grep -q '^asked-now 1 ' "$work/state/dtrun/runs/$run/supervisor.lock" ||
    grep -q '^stopped 1 ' "$work/state/dtrun/runs/$run/supervisor.lock" || fail "the stop is not written down"
expect 0 status "$run"
within 30 state_is "$run" stopped
expect 0 show "$run" --json
json "len(o['attempts']) == 1"

# Supervisors that exit at once, here for lack of memory.
long_run broken
kill -9 "$(supervisor "$run")"
under '-v 60000' 3 wait "$run"
says "the supervisor of run '$run' ended 10 times in a row" "supervisor.log"
expect 0 list
says "broken"
[ -z "$(supervisor "$run")" ] || fail "one more supervisor was started"
expect 0 status "$run" --json
json "'10 times in a row' in o['trouble']"
expect 0 stop "$run"
within 30 state_is "$run" stopped
expect 0 resume --detach "$run" --set schedule.steps=10000000
within 20 step_reached "$run" 20
expect 0 stop --now "$run"
