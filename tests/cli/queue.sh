#!/usr/bin/env bash
# The queue on one machine: what waits and why, preemption without a lost step, and an arbiter that is killed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/queue_lib.sh"

# --- nothing waits
expect 0 queue
says "nothing waits"
expect 0 queue --json
[ "$(cat out)" = "[]" ] || fail "the empty list is $(cat out)"
expect 2 launch own.yaml --priority 3
says "--priority needs --queue"
expect 2 launch own.yaml --queue --after nobody
says "nobody"
expect 2 launch own.yaml --queue --not-before soon
says "'soon' is not a time"
expect 2 queue wait x
says "expected move RUN POSITION"
nothing_half_made

# --- alone, for the comparison
expect 0 launch own.yaml --wait --name alone
alone=$(loss_of alone)

# --- a run starts, another waits and says why
expect 0 queue guarantee 1d
first=$(queue first $endless)
within 60 state_is "$first" running
second=$(queue second)
lists "r['second']['state'] == 'waiting' and r['second']['position'] == 1 and 'first' in r['second']['reason']"
expect 0 queue
says "$first" "$second" "$cores processor" "0 processors free on localhost"
expect 0 list
says "waiting"
expect 0 list --state waiting --json
json "[run['run'] for run in o['runs']] == ['$second']"
expect 0 status "$second"
says "waiting" "it waits: needs $cores processor" "first"
expect 2 resume "$second"
says "waiting"

# --- guaranteed time, then preemption: it waits again, and ends as alone
urgent=$(queue urgent --priority 7)
lists "order == ['urgent', 'second'] and 'may be preempted in' in r['urgent']['reason']"
expect 0 queue guarantee 0s
within 60 state_is "$urgent" finished
lists "r['first']['state'] != 'waiting' and r['first']['preemptions'] == 1"
expect 0 show "$first"
says "preempted by run $urgent (urgent), which has priority 7" "from step"
# What the run did until and just after the preemption, as "step loss" lines; nothing as long as it has not gone on.
history_of() { # run name, steps after the preemption
    python3 - "$work" "$1" "$2" <<'PY'
import sqlite3, sys
store = sqlite3.connect(sys.argv[1] + "/state/dtrun/store.db")
run, attempts = store.execute("SELECT run, attempt FROM runs WHERE name = ?", (sys.argv[2],)).fetchone()
points = store.execute("SELECT step, value FROM metrics JOIN series USING (series) WHERE run = ? AND name = 'loss'"
                       " ORDER BY step, attempt", (run,)).fetchall()
(last,) = store.execute("SELECT max(start_step) FROM attempts WHERE run = ?", (run,)).fetchone()
if points and (attempts == 1 or points[-1][0] >= last + int(sys.argv[3])):
    for step, value in points:
        if step % 10 == 0 and (attempts == 1 or step <= last + int(sys.argv[3])): # the end of an attempt has one more
            print(step, value.hex())
PY
}
went_on() { history_of first 20 >preempted; [ -s preempted ]; }
within 60 went_on
expect 0 stop "$first"
says "none of its processes are left"
within 60 state_is "$second" finished
[ "$(loss_of second)" = "$alone" ] || { subject=second; fail "loss $(loss_of second), alone $alone"; }

# --- the preempted run has done each step once, with the losses that it has undisturbed
steps=$(tail -n 1 preempted | cut -d " " -f 1)
expect 0 launch own.yaml --wait --name undisturbed --set schedule.steps="$steps"
history_of undisturbed 0 >undisturbed
cmp preempted undisturbed || fail "other losses after a preemption: $(diff preempted undisturbed | head -n 4)"

# --- the arbiter is killed: the next command starts another one, and nothing starts twice
expect 0 queue guarantee 1d
blocker=$(queue blocker $endless)
within 60 state_is "$blocker" running
d=$(queue d) e=$(queue e)
lists "'blocker' in r['d']['reason'] and r['e']['position'] == 2"

# --- top and the page say why they wait
expect 0 top
says "#1: 0 processors free on localhost; $blocker (blocker)"
expect 0 queue --json
cp out listed
"$dtrun" serve --listen 127.0.0.1:0 --json >served 2>err &
server=$!
within 60 test -s served
subject="the queue of the page"
python3 - served listed <<'PY' || fail "it is not what 'queue' lists"
import json, sys, urllib.request
served, listed = (json.load(open(name)) for name in sys.argv[1:])
request = urllib.request.Request(served["url"].rstrip("/") + "/api/v1/queue",
                                 headers={"Authorization": "Bearer " + served["link"].rpartition("=")[2]})
answer = json.load(urllib.request.urlopen(request))["runs"]
names = ("run", "name", "position", "state", "priority", "needs")
assert [[row[name] for name in names] for row in answer] == [[row[name] for name in names] for row in listed], answer
PY
kill -TERM $server
wait $server

arbiter_of() {
    for process in $(pgrep -f "dtrun arbiter"); do
        grep -qzF "XDG_STATE_HOME=$work/state" "/proc/$process/environ" 2>/dev/null && echo "$process"
    done
}
kill -9 $(arbiter_of)
expect 0 stop "$blocker"
within 60 state_is "$d" finished
within 60 state_is "$e" finished
expect 0 show "$e" --json
json "o['attempt'] == 1" "o['loss'] == $alone"
no_arbiter() { [ -z "$(arbiter_of)" ]; }
within 60 no_arbiter

# CSV has the keys of --json, also of an empty queue
expect 0 queue --csv
[ "$(head -1 "$work/out")" = run,name,position,state,priority,needs,reason,expected,preemptions ] || fail "not these keys"
expect 2 queue --csv --json
expect 2 queue --csv nodes
