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
says "waiting"
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
python3 - "$work" "$first" <<'PY' || fail "steps were lost"
import sqlite3, sys
store = sqlite3.connect(sys.argv[1] + "/state/dtrun/store.db")
(run,) = store.execute("SELECT run FROM runs WHERE id = ?", (sys.argv[2],)).fetchone()
((first, second),) = [store.execute("SELECT max(step) FROM metrics JOIN series USING (series) WHERE run = ? AND name = 'loss'"
    " AND attempt = 1", (run,)).fetchone() + store.execute(
    "SELECT start_step FROM attempts WHERE run = ? AND attempt = 2", (run,)).fetchone()]
assert first == second > 0, (first, second)
PY
expect 0 stop "$first"
says "none of its processes are left"
within 60 state_is "$second" finished
[ "$(loss_of second)" = "$alone" ] || { subject=second; fail "loss $(loss_of second), alone $alone"; }

# --- a run that is preempted again and again ends as alone
steps="--set schedule.steps=30000"
long=$(queue long $steps)
runs_or_ended() { state_is "$1" running || state_is "$1" finished; }
for i in 1 2 3; do
    within 60 runs_or_ended "$long"
    queue "short$i" --priority 1 >/dev/null
    within 60 state_is "short$i" finished
done
within 120 state_is "$long" finished
expect 0 launch own.yaml --wait --name long-alone $steps
[ "$(loss_of long)" = "$(loss_of long-alone)" ] || fail "preempted: $(loss_of long), alone: $(loss_of long-alone)"
expect 0 show long
says "preempted by run"

# --- the arbiter is killed: the next command starts another one, and nothing starts twice
expect 0 queue guarantee 1d
blocker=$(queue blocker $endless)
within 60 state_is "$blocker" running
d=$(queue d) e=$(queue e)
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
within 30 no_arbiter
