#!/usr/bin/env bash
# plan.json and place.json are damaged or gone, and the supervisor is started again: the copy in the store is used, and
# the run continues. Without a copy, the run is ended on its nodes, and only then fails; `dtrun stop` is correct in
# every case. A plan of another version of dtrun is not damaged: its run is left alone.
. "$(dirname "$0")/lib.sh"
export FAKE_STEPS=100000

store() { # SQL
    python3 -c "import sqlite3, sys
with sqlite3.connect('$XDG_STATE_HOME/dtrun/store.db', timeout=30) as store:
    for row in store.execute(sys.argv[1]): print(*row)" "$1"
}
kill_supervisor() { # run
    kill -9 $(processes "supervise $1")
    await 10 no_supervisor "$1"
}
ranks() { processes fake_engine | sort; }

# One byte, the end of the file, or all of it is damaged; the copy counts.
"$driver" launch good 2 2
await 20 has_step good 3
before=$(ranks)
for damage in flip cut empty gone place; do
    kill_supervisor good
    plan=$runs/good/attempt-1/plan.json place=$runs/good/attempt-1/node-1/place.json
    cp "$plan" "$XDG_STATE_HOME/plan"
    cp "$place" "$XDG_STATE_HOME/place"
    case $damage in
    flip) sed -i 's/"grace_seconds":\( *\)1/"grace_seconds":\17/' "$plan" ;;
    cut) truncate -s 100 "$plan" ;;
    empty) : >"$plan" ;;
    gone) rm "$plan" ;;
    place) echo '{"node": "local' >"$place" ;;
    esac
    step=$(get good step)
    "$driver" ensure good
    await 20 has_step good $((step + 3))
    cmp -s "$plan" "$XDG_STATE_HOME/plan" || fail "$damage: the plan was not written anew"
    cmp -s "$place" "$XDG_STATE_HOME/place" || fail "$damage: the place was not written anew"
done
is "ranks" "$(ranks)" "$before"
is attempt "$(get good attempt)" 1
is "events that say so" "$(store "SELECT count(*) FROM events WHERE kind = 'restored'")" 5
"$driver" stop good
end_is good stopped 4
is "left running" "$(ranks)" ""

# No copy: the rows and folders have enough to end the run.
for how in alone stopped unplaced; do
    "$driver" launch "$how" 2 2
    await 20 has_step "$how" 3
    kill_supervisor "$how"
    echo '{' >"$runs/$how/attempt-1/plan.json"
    store "UPDATE attempts SET plan_json = ''"
    if [ "$how" = unplaced ]; then
        echo '{' >"$runs/$how/attempt-1/node-1/place.json"
        store "UPDATE nodes SET place_json = ''"
    fi
    if [ "$how" = stopped ]; then
        "$DTRUN_BIN/dtrun" stop "$how" >"$XDG_STATE_HOME/out" 2>&1 || true
        is "left running after stop" "$(ranks)" ""
    else
        "$driver" ensure "$how"
    fi
    end_is "$how" failed 3
    like reason "$(get "$how" reason)" "*plan.json*"
    is "left running" "$(ranks)" ""
done

# A plan of another version: the supervisor reports it and exits, the ranks keep training, and nothing is written.
# `dtrun stop` ends them without a supervisor.
other() { # run: a version that does not exist yet
    sed -i 's/"plan": *1,/"plan": 2,/' "$runs/$1/attempt-1/plan.json"
    store "UPDATE attempts SET plan_json = replace(replace(plan_json, '\"plan\":1,', '\"plan\":2,'), '\"plan\": 1,', '\"plan\": 2,')"
}
"$driver" launch other 2 2
await 20 has_step other 3
kill_supervisor other
before=$(ranks)
other other
cp "$runs/other/attempt-1/plan.json" "$XDG_STATE_HOME/plan"
for command in list status; do
    "$DTRUN_BIN/dtrun" "$command" $([ "$command" = list ] || echo other) >"$XDG_STATE_HOME/out" 2>&1 || true
    like "$command" "$(cat "$XDG_STATE_HOME/out")" "*another dtrun wrote it (version 2*"
done
is supervisors "$(processes 'supervise other')" ""
is ranks "$(ranks)" "$before"
is state "$(get other state)" running
cmp -s "$runs/other/attempt-1/plan.json" "$XDG_STATE_HOME/plan" || fail "the other plan was changed"
"$DTRUN_BIN/dtrun" stop other >"$XDG_STATE_HOME/out" 2>&1 || true
is "left running after stop" "$(ranks)" ""
await 20 nothing_left
