#!/usr/bin/env bash
# The history is deleted, or replaced by an empty one, while a run is supervised: the supervisor notices, the run's rows
# are in the new store, no point is missing, and the run continues.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25 # a supervisor whose session failed tries again after 1.25 s
database=$XDG_STATE_HOME/dtrun/store.db
events() { # run
    python3 -c "import sqlite3
with sqlite3.connect('$database', timeout=30) as store:
    print(store.execute('SELECT count(*) FROM events e JOIN runs r USING (run) WHERE kind = \'restored\' AND r.id = \'$1\'').fetchone()[0])"
}
for how in deleted replaced; do
    FAKE_UNTIL=$XDG_STATE_HOME/$how FAKE_STEPS=200 FAKE_STEP_MS=10 "$driver" launch $how 2
    await 20 has_step $how 5
    rm "$database" "$database"-*
    [ $how = deleted ] || "$DTRUN_BIN/dtrun" list >/dev/null # this command makes a new store
    is_known() { "$driver" get $how state >/dev/null 2>&1; }
    await 40 is_known
    touch "$XDG_STATE_HOME/$how"
    await 60 has_ended $how
    end_is $how finished 0
    is points "$(get $how points)" 200
    is attempt "$(get $how attempt)" 1
    is "events that say so" "$(events $how)" 1
done
await 10 nothing_left
