#!/usr/bin/env bash
# Detach, status, stop, resume: the resumed run reaches the numbers of one that was never stopped.
. "$(dirname "$0")/lib.sh"
make_tiny
# The run would take days, so it never ends before this script stops it, however slow the machine is.
ever=1000000000
set_steps=(--set schedule.period_steps=8000 --set evaluate.every=4000 --set log.every=1
    --set checkpoint.every=4000)

expect 0 launch --detach "$work/tiny.yaml" "${set_steps[@]}" --set schedule.steps=$ever
run=$(cat "$work/out")
[ ${#run} -eq 6 ] || fail "--detach prints more than the id"
within 20 step_reached "$run" 20
expect 0 status "$run" --json
json "o['state'] == 'running'" "o['steps_total'] == $ever" \
    "all(r['state'] in ('started', 'ready') for r in o['nodes'][0]['ranks'])"
pids=$(field "' '.join(str(r['pid']) for r in o['nodes'][0]['ranks'])")
expect 2 resume "$run"
one_line
says "is running" "dtrun stop $run"
expect 0 list --state running --json
json "o['runs'][0]['run'] == '$run'"

expect 0 stop "$run"
says "has stopped at step" "none of its processes are left" "continue with 'dtrun resume $run'"
for pid in $pids; do
    ! kill -0 "$pid" 2>/dev/null || fail "process $pid is still there"
done
expect 0 status "$run" --json
json "o['state'] == 'stopped'" "o['exit_code'] == 4" "0 < o['step'] < $ever"
stopped_at=$(field "o['step']")
expect 0 checkpoints "$run" --json
json "o['checkpoints'][0]['step'] == $stopped_at"
expect 0 stop "$run"
says "has already ended: stopped"

steps=$((stopped_at + 5000)) # with at least one evaluation in between
LANGUAGE=of_the_resume expect 0 resume "$run" --wait --json --set schedule.steps=$steps
grep -qxF LANGUAGE=of_the_resume <<<"$(tr '\0' '\n' <"$work/state/dtrun/runs/$run/environment")" ||
    fail "later supervisors would not have the environment of the resume"
json "o['state'] == 'finished'" "o['steps'] == $steps" "o['attempt'] == 2"
expect 0 show "$run"
says "changed by --set"
expect 0 show "$run" --json
json "o['changes'][-1]['key'] == 'schedule.steps'" "o['changes'][-1]['new'] == $steps" \
    "o['changes'][-1]['attempt'] == 2" "o['elapsed_seconds'] > o['attempts'][1]['elapsed_seconds'] > 0"
expect 0 status "$run" --json
resumed=$(field "(o['loss'], o['valid_loss'])")
expect 0 show "$run" --json
json "[a['start_step'] for a in o['attempts']] == [0, $stopped_at]"
expect 0 metrics "$run" --name loss
cut -d, -f2- "$work/out" | sed 's/,[^,]*$//' >"$work/resumed.csv"

expect 0 launch --wait --json "$work/tiny.yaml" "${set_steps[@]}" --set schedule.steps=$steps
[ "$(field "(o['loss'], o['valid_loss'])")" = "$resumed" ] ||
    fail "the resumed run ends at $resumed, the uninterrupted one elsewhere"
whole=$(field "o['run']")
expect 0 metrics "$whole" --name loss
cut -d, -f2- "$work/out" | sed 's/,[^,]*$//' | cmp -s - "$work/resumed.csv" ||
    fail "a loss on the way differs"

# The folder is moved: the checkpoints move with it.
expect 0 checkpoints "$whole" --json
saved=$(field "len(o['checkpoints'])")
cp -a "$work/state" "$work/moved"
XDG_STATE_HOME=$work/moved expect 0 checkpoints "$whole" --json
json "len(o['checkpoints']) == $saved > 0" \
    "all(c['path'].startswith('$work/moved/') for c in o['checkpoints'])"
rm -r "$work/moved"

# Resumed while its supervisor still tries to notify the webhook of the end. This reads the store directly, because
# commands of dtrun would start another supervisor.
expect 0 launch --wait --json "$work/tiny.yaml" --set notify.webhook=http://127.0.0.1:1/
run=$(field "o['run']")
expect 0 resume "$run" --detach --set schedule.steps=80
has_finished() { # run attempt
    [ "$(sqlite3 "$work/state/dtrun/store.db" "SELECT a.state FROM attempts a JOIN runs r USING (run)
        WHERE r.id = '$1' AND a.attempt = $2")" = finished ]
}
within 20 has_finished "$run" 2
kill $(pgrep -f "dtrun supervise $run\$")

# --now: no checkpoint; and then there is nothing to resume from.
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=$ever --set checkpoint.every=0 \
    --set checkpoint.keep_best=0 --json
json "o['state'] in ('queued', 'preparing', 'starting', 'running')"
run=$(field "o['run']")
within 20 step_reached "$run" 1
expect 0 stop --now "$run" --json
json "o['state'] == 'stopped'" "o['checkpoint'] is None"
expect 2 resume "$run"
one_line
says "no complete checkpoint"
expect 2 generate "$run"
one_line
says "no complete checkpoint"
