#!/usr/bin/env bash
# Builds before and after this one meet its runs (tests/museum/meet.sh does it with really old programs).
# What is of a newer build is left alone, said, and continued once that build's supervisor is there: its
# agent, its journal, its history. A supervisor of an older one that is stuck is replaced.
. "$(dirname "$0")/lib.sh"
export FAKE_STEPS=100000 FAULT_RESTARTS=3
database=$XDG_STATE_HOME/dtrun/store.db

# A newer agent, which has forgotten our protocol, while the file `newer` is there.
cat >"$XDG_STATE_HOME/agent" <<SH
#!/bin/sh
if [ "\$1" = connect ] && [ -e "$XDG_STATE_HOME/newer" ]; then
    read -r line
    echo '{"event": "error", "message": "this agent speaks protocol 2 to 3, and not 1: use a newer dtrun", "refused": true, "oldest_protocol": 2}'
    sleep 1
    exit 0
fi
exec "$DTRUN_BIN/dtrun-agent" "\$@"
SH
chmod 755 "$XDG_STATE_HOME/agent"

no_supervisor() { [ -z "$(processes "supervise $1")" ]; }
kill_supervisor() { # run
    kill -9 $(processes "supervise $1")
    await 10 no_supervisor "$1"
}
ranks() { processes fake_engine | sort; }
no_ranks() { [ -z "$(ranks)" ]; }
set_version() { # of the history
    python3 -c "import sqlite3, sys
with sqlite3.connect('$database', timeout=30) as store: store.execute('PRAGMA user_version = $1')"
}
says() { # run text: its supervisor's log
    grep -q -- "$2" "$runs/$1/supervisor.log"
}

# An agent that speaks no protocol of ours.
DTRUN_AGENT=$XDG_STATE_HOME/agent "$driver" launch agent 2
await 20 has_step agent 3
kill_supervisor agent
before=$(ranks)
touch "$XDG_STATE_HOME/newer"
"$driver" ensure agent || true
await 20 says agent "what runs on localhost is of a newer dtrun"
await 20 no_supervisor agent
is state "$(get agent state)" running
is ranks "$(ranks)" "$before"
rm "$XDG_STATE_HOME/newer"
step=$(get agent step)
"$driver" ensure agent
await 20 has_step agent $((step + 3))
is attempt "$(get agent attempt)" 1
"$driver" stop agent
end_is agent stopped 4

# A journal of a newer version: its ranks have died with their agent, and nothing is added to it.
"$driver" launch journal 1
await 20 has_step journal 3
kill_supervisor journal
kill -9 "$(cut -d' ' -f1 "$runs/journal/attempt-1/node-0/agent.lock")"
await 20 no_ranks
journal=$runs/journal/attempt-1/node-0/journal.jsonl
cp "$journal" "$XDG_STATE_HOME/journal"
sed -i '1s/"journal":1\(.*\),"sum":"[0-9a-f]*"}$/"journal":2\1}/' "$journal"
cp "$journal" "$XDG_STATE_HOME/newer_journal"
"$driver" ensure journal || true
await 20 says journal "the journal is of version 2"
await 20 no_supervisor journal
is state "$(get journal state)" running
cmp -s "$journal" "$XDG_STATE_HOME/newer_journal" || fail "the newer journal was changed"
cp "$XDG_STATE_HOME/journal" "$journal"
"$driver" ensure journal
await 30 eval '[ "$(get journal attempt)" = 2 ]'
"$driver" stop journal
end_is journal stopped 4

# A history that a newer build migrates under a supervisor: at its next session that one becomes the program
# that has replaced it, which is none that can read it either here, and leaves.
cp "$driver" "$XDG_STATE_HOME/dtrun-here"
"$XDG_STATE_HOME/dtrun-here" launch history 1
await 20 has_step history 3
old=$(processes "supervise history")
cp "$driver" "$XDG_STATE_HOME/dtrun-newer"
mv "$XDG_STATE_HOME/dtrun-newer" "$XDG_STATE_HOME/dtrun-here"
set_version 99
kill -9 $(processes fake_engine)
await 30 says history "dtrun was updated: '$XDG_STATE_HOME/dtrun-here' continues"
await 20 no_supervisor history
says history "a newer dtrun wrote it (version 99"
set_version "$(ls "$(dirname "$0")/../../store/schema" | wc -l)"
"$driver" ensure history
await 30 eval '[ "$(get history attempt)" = 2 ]'
[ "$(processes "supervise history")" != "$old" ] || fail "the supervisor did not leave"
kill_supervisor history

# One of 0.1.0 would not have left: it has the lock, and listens to nobody.
python3 - "$runs/history/supervisor.lock" >"$XDG_STATE_HOME/stuck" <<'PY' &
import os, sys
code = "import fcntl, sys, time; f = open(sys.argv[3], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"
os.execvp("python3", ["dtrun", "-c", code, "supervise", "history", sys.argv[1]])
PY
stuck=$!
await 20 grep -q held "$XDG_STATE_HOME/stuck"
step=$(get history step)
"$driver" ensure history
await 20 is_dead $stuck
await 20 has_step history $((step + 3))
"$driver" stop history
end_is history stopped 4
await 20 nothing_left
