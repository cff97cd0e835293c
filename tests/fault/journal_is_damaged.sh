#!/usr/bin/env bash
# The agent's journal and the history do not match: the journal is missing or damaged, the history is
# older than what the agent still keeps, or the agent refuses `attach`. In each case the run ends
# correctly, losses are reported, and `stop` ends everything.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25

# Refuses `attach` while the file `refuse` exists; an error without `protocol` counts as one of the
# same protocol version. Answers as an agent of protocol version 0 while the file `other` exists.
cat >"$XDG_STATE_HOME/agent" <<SH
#!/bin/sh
if [ "\$1" = connect ] && [ -e "$XDG_STATE_HOME/refuse" ]; then
    read -r line
    echo '{"event": "error", "message": "attach: not today", "refused": true}'
    sleep 1
    exit 0
fi
if [ "\$1" = connect ] && [ -e "$XDG_STATE_HOME/other" ]; then
    read -r line
    echo '{"event": "error", "message": "this agent speaks protocol 0", "refused": true, "protocol": 0}'
    sleep 1
    exit 0
fi
exec "$DTRUN_BIN/dtrun-agent" "\$@"
SH
chmod 755 "$XDG_STATE_HOME/agent"

database=$XDG_STATE_HOME/dtrun/store.db
store() { # SQL
    python3 -c "import sqlite3, sys
with sqlite3.connect('$database', timeout=30) as store:
    for row in store.execute(sys.argv[1]): print(*row)" "$1"
}
copy_store() { # from to: a consistent copy, even while the store is in use
    python3 -c "import sqlite3, sys
old, new = sqlite3.connect(sys.argv[1], timeout=30), sqlite3.connect(sys.argv[2])
old.backup(new)" "$1" "$2"
}
kill_supervisor() { # run
    kill -9 $(processes "supervise $1")
    await 10 no_supervisor "$1"
}
kill_agent() { # run node
    kill -9 "$(cut -d' ' -f1 "$runs/$1/attempt-1/node-$2/agent.lock")"
}
lines_in() { wc -l <"$runs/$1/attempt-1/node-0/journal.jsonl"; }
has_lines() { [ "$(lines_in "$1")" -ge "$2" ]; }
flip() { # file offset
    python3 -c "import sys
with open(sys.argv[1], 'r+b') as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))" "$1" "$2"
}
gaps() { store "SELECT count(*) FROM events e JOIN runs r USING (run) WHERE r.id = '$1' AND e.kind = 'gap'"; }
ranks() { processes fake_engine; }
nobody() { [ -z "$(ranks)" ]; }

# The node's folder is wiped while agent and ranks live: both are found and ended, and the run restarts.
FAULT_RESTARTS=1 FAKE_STEPS=100 FAKE_STEP_MS=50 "$driver" launch wiped 2
await 20 has_step wiped 3
old=$(ranks)
kill_supervisor wiped
rm -rf "$runs"/wiped/attempt-1/node-0/*
"$driver" ensure wiped
end_is wiped finished 0
is attempt "$(get wiped attempt)" 2
for pid in $old; do is_dead "$pid" || fail "rank $pid of the first attempt lives"; done
like reason "$(store "SELECT a.reason FROM attempts a JOIN runs r USING (run) WHERE r.id = 'wiped' AND a.attempt = 1")" \
    "*lost its journal*"
# The same, but the run is stopped: it is not restarted.
FAKE_STEPS=100000 "$driver" launch gone 2
await 20 has_step gone 3
kill_supervisor gone
rm -rf "$runs"/gone/attempt-1/node-0/*
# (The supervisor that `stop` starts may see the loss before it hears of the stop.)
"$DTRUN_BIN/dtrun" stop gone >"$XDG_STATE_HOME/out" 2>&1 || grep -q 'lost its journal' "$XDG_STATE_HOME/out" ||
    fail "stop: $(cat "$XDG_STATE_HOME/out")"
has_ended gone || fail "stop came back, and 'gone' is $(get gone state)"
await 10 nobody

# A damaged byte in a line that is not stored yet: only this line is lost, and the loss is reported.
FAKE_STEPS=200 FAKE_STEP_MS=20 "$driver" launch flipped 1
await 20 has_step flipped 3
kill_supervisor flipped
count=$(lines_in flipped)
await 20 has_lines flipped $((count + 20))
journal=$runs/flipped/attempt-1/node-0/journal.jsonl
line=$(grep -n '"event":"metrics"' "$journal" | cut -d: -f1 | awk -v after=$((count + 5)) '$1 > after' | head -n 1)
flip "$journal" $(($(head -n $((line - 1)) "$journal" | wc -c) + 30))
"$driver" ensure flipped
end_is flipped finished 0
is attempt "$(get flipped attempt)" 1
is "gap events" "$(gaps flipped)" 1
is points "$(get flipped points)" 199
grep -q 'lines of the journal are damaged' "$runs/flipped/supervisor.log" || fail "the agent does not say why"
[ -s "$journal.damaged" ] || fail "the damaged line was not kept"

# The same, and the agent is killed: the next one ends the ranks even if their lines are damaged.
for place in head tail; do
    FAKE_STEPS=100000 "$driver" launch killed-$place 2
    await 20 has_step killed-$place 3
    kill_supervisor killed-$place
    count=$(lines_in killed-$place)
    await 20 has_lines killed-$place $((count + 20))
    kill_agent killed-$place 0
    await 10 nobody
    journal=$runs/killed-$place/attempt-1/node-0/journal.jsonl
    case $place in
    head) grep -n '"event":"started"' "$journal" | cut -d: -f1 >"$XDG_STATE_HOME/lines"
        for line in $(cat "$XDG_STATE_HOME/lines"); do
            flip "$journal" $(($(head -n $((line - 1)) "$journal" | wc -c) + 20))
        done ;;
    tail) flip "$journal" $(($(stat -c %s "$journal") - 1)) ;;
    esac
    "$driver" ensure killed-$place
    end_is killed-$place failed 3
done

# The history is replaced by an older copy, as after a power loss or from a backup: events that the agent
# has discarded since are lost, and reported; the run continues without a restart.
FAKE_MODE=flood FAKE_STEPS=100000 FAKE_STEP_MS=20 "$driver" launch older 1
await 20 has_step older 3
copy_store "$database" "$XDG_STATE_HOME/older.db"
stored=$(store "SELECT acknowledged FROM nodes n JOIN runs r USING (run) WHERE r.id = 'older'")
has_trimmed() { # later than the copy
    [ "$(cut -d' ' -f3 "$runs/older/attempt-1/node-0/journal.jsonl.trim")" -gt "$stored" ] 2>/dev/null
}
await 150 has_trimmed
has_gap() { [ "$(gaps older)" -ge 1 ]; }
kill_supervisor older
before=$(ranks)
rm "$database" "$database"-*
cp "$XDG_STATE_HOME/older.db" "$database"
"$driver" ensure older
is ranks "$(ranks)" "$before"
await 60 has_step older $(($(get older step) + 3))
await 60 has_gap
"$driver" stop older
end_is older stopped 4
is attempt "$(get older attempt)" 1

# An agent of this version that refuses `attach`: after some tries `dtrun-agent end` of the bundle ends the ranks.
for how in alone stopped; do
    DTRUN_AGENT=$XDG_STATE_HOME/agent FAKE_STEPS=100000 "$driver" launch "refuse-$how" 2
    await 20 has_step "refuse-$how" 3
    kill_supervisor "refuse-$how"
    touch "$XDG_STATE_HOME/refuse"
    if [ $how = stopped ]; then
        "$DTRUN_BIN/dtrun" stop "refuse-$how" >"$XDG_STATE_HOME/out" 2>&1 ||
            fail "stop: $? $(cat "$XDG_STATE_HOME/out")"
        end_is "refuse-$how" stopped 4
    else
        "$driver" ensure "refuse-$how"
        end_is "refuse-$how" failed 3
        like reason "$(get "refuse-$how" reason)" "*attach: not today*"
    fi
    rm "$XDG_STATE_HOME/refuse"
    nobody || fail "ranks are left"
done

# An agent of another protocol version: the supervisor exits, and leaves the ranks alone.
DTRUN_AGENT=$XDG_STATE_HOME/agent FAKE_STEPS=100000 "$driver" launch other 2
await 20 has_step other 3
kill_supervisor other
before=$(ranks)
touch "$XDG_STATE_HOME/other"
"$driver" ensure other
reports_version() { grep -q 'belong to another version of dtrun' "$runs/other/supervisor.log"; }
await 20 reports_version
await 20 no_supervisor other
is ranks "$(ranks)" "$before"
rm "$XDG_STATE_HOME/other"
"$driver" ensure other
await 20 has_step other $(($(get other step) + 3))
is ranks "$(ranks)" "$before"
"$driver" stop other
end_is other stopped 4
await 20 nothing_left
