#!/usr/bin/env bash
# The history is deleted while no process has it open, or set back to a copy older than the newest attempt: the next
# command rebuilds the run's rows from its folder, and no attempt starts twice.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25
database=$XDG_STATE_HOME/dtrun/store.db
field() { # run key, as in `status --json`
    "$dtrun" status "$1" --json | python3 -c "import json, sys; print(json.load(sys.stdin)['$2'])"
}
store() { # SQL
    python3 -c "import sqlite3, sys
with sqlite3.connect('$database', timeout=30) as store:
    for row in store.execute(sys.argv[1]): print(*row)" "$1"
}
gaps() { store "SELECT count(*) FROM events e JOIN runs r USING (run) WHERE r.id = '$1' AND e.kind = 'gap'"; }
kill_supervisor() { # run
    kill -9 $(processes "supervise $1")
    await 10 no_supervisor "$1"
}
copy_store() { python3 -c "import sqlite3
old, new = sqlite3.connect('$database', timeout=30), sqlite3.connect('$1')
old.backup(new)"; }
set_back() { rm "$database"*; cp "$1" "$database"; }

# No supervisor has the history open: the run continues, and all its points are restored from the agents' journals. A
# process that follows the run sees its end; it is paused meanwhile, because it would start a supervisor.
FAKE_UNTIL=$XDG_STATE_HOME/lost FAKE_STEPS=300 FAKE_STEP_MS=10 "$driver" launch lost 2 2
await 20 has_step lost 5
"$dtrun" status --watch lost >"$XDG_STATE_HOME/watched" 2>&1 &
watching=$!
kill -STOP $watching
kill_supervisor lost
rm "$database"*
kill -CONT $watching
is attempt "$(field lost attempt)" 1
grep -q '"name": "localhost#2"' "$runs/lost/attempt-1/history.json" || fail "its nodes are not kept"
touch "$XDG_STATE_HOME/lost"
end_is lost finished 0
wait $watching || fail "status --watch: $? $(cat "$XDG_STATE_HOME/watched")"
is points "$(get lost points)" 300
is attempt "$(get lost attempt)" 1
is "events that say so" "$(gaps lost)" 1

# The run has ended: it stays ended, whatever command is used.
rm "$database"*
"$dtrun" list >"$XDG_STATE_HOME/list"
grep -q 'lost.*finished' "$XDG_STATE_HOME/list" || fail "list: $(cat "$XDG_STATE_HOME/list")"
is "exit code" "$(field lost exit_code)" 0
is step "$(field lost step)" 300
no_supervisor lost || fail "a run that has ended is supervised"

# The run was last seen starting, and one of its two nodes has lost its folder. Ranks of the other node made steps, so
# this node had started its ranks too. They are not started twice in one attempt.
FAKE_UNTIL=$XDG_STATE_HOME/early FAULT_RESTARTS=1 FAKE_STEPS=100 FAKE_STEP_MS=10 "$driver" launch early 2 2
await 20 has_step early 3
kill_supervisor early
touch "$XDG_STATE_HOME/early"
no_engine() { [ -z "$(processes fake_engine)" ]; }
await 20 no_engine
rm "$database"*
rm -rf "$runs"/early/attempt-1/node-0/*
sed -i 's/"state": "running"/"state": "starting"/' "$runs/early/attempt-1/history.json"
is attempt "$(field early attempt)" 1
end_is early finished 0
is attempt "$(field early attempt)" 2
[[ $(store "SELECT a.reason FROM attempts a JOIN runs r USING (run) WHERE r.id = 'early' AND a.attempt = 1") == \
    *'lost its journal'* ]] || fail "attempt 1 does not say why it ended"

# The first command after the deletion is a stop.
FAKE_STEPS=100000 "$driver" launch stopped 2
await 20 has_step stopped 3
kill_supervisor stopped
rm "$database"*
"$dtrun" stop stopped >"$XDG_STATE_HOME/out" 2>&1 || fail "stop: $? $(cat "$XDG_STATE_HOME/out")"
end_is stopped stopped 4
[ -z "$(processes fake_engine)" ] || fail "ranks are left"

# A copy from before the second attempt began: the second attempt continues.
FAKE_UNTIL=$XDG_STATE_HOME/older FAULT_RESTARTS=1 FAKE_STEPS=300 FAKE_STEP_MS=10 "$driver" launch older 2
await 20 has_step older 3
copy_store "$XDG_STATE_HOME/first.db"
kill -9 "$(processes fake_engine | head -n 1)"
second() { [ "$(get older attempt)" = 2 ] && [ "$(get older state)" = running ]; }
await 30 second
kill_supervisor older
set_back "$XDG_STATE_HOME/first.db"
is attempt "$(field older attempt)" 2
touch "$XDG_STATE_HOME/older"
end_is older finished 0
is points "$(get older points)" 300
is attempts "$(store "SELECT group_concat(a.attempt || ' ' || a.state) FROM attempts a JOIN runs r USING (run) WHERE r.id = 'older'")" \
    "1 failed,2 finished"

# ... and a copy from before its end.
set_back "$XDG_STATE_HOME/first.db"
is state "$(field older state)" finished
is attempt "$(field older attempt)" 2
await 10 nothing_left
