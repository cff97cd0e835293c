#!/usr/bin/env bash
# The order of the queue: runs that are held, moved and stopped while they wait, that come after others or not before a time;
# machines that are drained and shared; programs, and secrets.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/queue_lib.sh"

# --- held, moved, another priority, stopped while it waits
expect 0 queue guarantee 1d
queue done >/dev/null
within 60 state_is done finished
blocker=$(queue blocker $endless)
within 60 state_is "$blocker" running
a=$(queue a) b=$(queue b) c=$(queue c)
lists "order == ['a', 'b', 'c']"
expect 0 queue move "$c" 1
lists "order == ['c', 'a', 'b']"
expect 0 queue priority b -2
lists "order == ['c', 'a', 'b'] and r['b']['priority'] == -2"
expect 0 queue priority b 2
lists "order == ['b', 'c', 'a']"
expect 0 queue move a 1
lists "order == ['a', 'b', 'c'] and r['a']['priority'] == 2"
expect 2 queue move a 9
says "position '9'"
expect 2 queue hold done
says "is not in the queue"
expect 0 queue hold a
lists "r['a']['reason'].startswith('held')"
expect 0 stop "$b"
says "run $b has stopped"
expect 0 stop "$c"
expect 0 show "$c"
says "stopped while it waited"
expect 0 stop "$blocker"
lists "r['a']['state'] == 'waiting'"
expect 0 queue release a
within 60 state_is "$a" finished

# --- after another run; not before a time
early=$(queue early --not-before +1d)
lists "r['early']['reason'].startswith('not before')"
expect 0 stop "$early"
before=$(queue before $endless)
after=$(queue after --after before)
other=$(queue other --after "$before" --after after)
lists "r['after']['reason'] == 'after $before'"
expect 0 stop "$before"
within 60 state_is "$after" stopped
within 60 state_is "$other" stopped
expect 0 show "$after"
says "not started: $before did not finish"
expect 2 launch own.yaml --queue --after "$before"
says "nothing would start after it"
before=$(queue before2)
after=$(queue after2 --after "$before")
within 60 state_is "$after" finished

# --- machines: drained, shared, and what never fits
expect 0 queue drain localhost
drained=$(queue drained)
lists "r['drained']['reason'] == 'localhost is drained'"
expect 0 queue nodes --json
python3 -c 'import json, sys; n = json.load(open("out")); assert n[0]["node"] == "localhost" and n[0]["drained"]' || fail "nodes"
expect 0 queue undrain localhost
within 60 state_is "$drained" finished
expect 2 queue drain nowhere
says "the queue does not know 'nowhere'"
expect 0 queue nodes add localhost
expect 2 launch own.yaml --queue --set threads=1 --set ranks=$((cores + 1))
says "$((cores + 1)) ranks of 1 processor" "never" "localhost has"
expect 0 launch own.yaml --queue --wait --name shared --set threads=1 --set ranks="$cores" --json
json "o['state'] == 'finished'"
expect 2 launch own.yaml --queue --set nodes=slurm:2
says "Slurm has a queue of its own"
expect 0 queue nodes remove localhost
expect 2 queue nodes remove localhost
says "was not added"

# --- programs: preempted only with checkpoints; secrets are not kept
cat >program.yaml <<YAML
name: program
command: ["sh", "-c", "echo begun; sleep 1000"]
threads: $cores
YAML
expect 0 queue guarantee 0s
expect 0 launch program.yaml --queue --detach
program=$(cat out)
within 60 state_is "$program" running
waits=$(queue waits --priority 9)
lists "r['waits']['state'] == 'waiting' and 'program' in r['waits']['reason']"
expect 0 stop "$program"
within 60 state_is "$waits" finished
cat >secret.yaml <<'YAML'
name: secret
command: ["true"]
env: {TOKEN: "${env:MY_TOKEN}"}
YAML
MY_TOKEN=x expect 2 launch secret.yaml --queue
says "MY_TOKEN" "DTRUN_KEEP_ENV=MY_TOKEN"

# --- programs without a recipe, and sweeps
expect 0 run --queue --detach --name echo --set threads="$cores" -- echo done
within 60 state_is echo finished
cat >sweep.yaml <<YAML
$(cat own.yaml)
sweep: {optimizer.lr: [1e-3, 2e-3, 3e-3]}
YAML
expect 0 queue guarantee 1d
blocker=$(queue blocker3 $endless)
within 60 state_is "$blocker" running
expect 2 launch sweep.yaml --queue --not-before +1h
says "do not apply to a sweep"
expect 0 launch sweep.yaml --queue --detach --priority 2 --name lr --set search.at_once=0
lists "order == ['lr-1', 'lr-2', 'lr-3'] and r['lr-3']['priority'] == 2"
expect 0 stop "$blocker"
for i in 1 2 3; do within 60 state_is "lr-$i" finished; done

# --- a run that was stopped is resumed in the queue: it waits, and ends as if it had never been stopped
stopped=$(queue stopped --set schedule.steps=100000000)
within 60 step_reached "$stopped" 20
expect 0 stop "$stopped"
blocker=$(queue blocker4 $endless)
within 60 state_is "$blocker" running
expect 0 resume "$stopped" --queue --detach --priority -1 --set schedule.steps=400000
lists "r['stopped']['state'] == 'waiting' and r['stopped']['priority'] == -1"
expect 0 show "$stopped" --json
json "o['attempt'] == 2" "o['step'] >= 20"
expect 2 resume "$stopped" --queue
says "is waiting"
expect 0 stop "$blocker"
within 60 state_is "$stopped" running
expect 0 stop "$stopped"
expect 2 resume lr --queue
says "--queue does not apply to 'lr', which is a sweep"
expect 2 resume "$stopped" --priority 3
says "--priority needs --queue"
blocker=$(queue blocker5 $endless)
within 60 state_is "$blocker" running
expect 0 resume program --queue --detach --set command='["true"]'
lists "r['program']['state'] == 'waiting'"
expect 0 stop "$blocker"
within 60 state_is program finished
