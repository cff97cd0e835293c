#!/usr/bin/env bash
# A run that evaluates tasks is preempted by the queue, then stopped by a person and resumed: each step's evaluation is there
# once, with the results of an undisturbed run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/queue_lib.sh"
for i in $(seq 400); do
    echo "{\"prompt\": \"$i\", \"choices\": [\"$((i + 1))\", \"1234\", \"7\"], \"answer\": $((i % 3)), \"delimiter\": \"\"}"
done >numbers.jsonl
tasks="--set evaluate.tasks=[\"$work/numbers.jsonl\"] --set evaluate.tasks_every=10"
evaluations() { # run: a line for each evaluation, oldest step first
    "$dtrun" show "$1" --json | python3 -c '
import json, sys
for e in json.load(sys.stdin)["evaluations"]:
    print(e["step"], json.dumps(e["tasks"], sort_keys=True))'
}
await() { within 60 "$@" || exit; }
evaluated() { [ "$(evaluations "$1" | wc -l)" -ge "$2" ]; }

expect 0 queue guarantee 0s
first=$(queue first $endless $tasks)
await evaluated "$first" 1
urgent=$(queue urgent --priority 7)
await state_is "$urgent" finished
before=$(evaluations "$first" | wc -l)
await evaluated "$first" $((before + 2))
expect 0 show "$first"
says "preempted by run $urgent"
expect 0 stop "$first"
before=$(evaluations "$first" | wc -l)
expect 0 resume "$first" --detach
await evaluated "$first" $((before + 2))
expect 0 stop "$first"

evaluations "$first" >disturbed
last=$(tail -n 1 disturbed | cut -d " " -f 1)
seq -s " " 10 10 "$last" >wanted
cut -d " " -f 1 disturbed | xargs >got
cmp got wanted || fail "evaluated at the steps $(cat got)"
expect 0 sql "SELECT step, count(*) FROM evaluations WHERE run = '$first' AND metric = 'acc' GROUP BY step HAVING count(*) <> 1" --json
json "o['rows'] == []"
expect 0 launch own.yaml --wait --name undisturbed $tasks --set schedule.steps="$last"
evaluations undisturbed | cmp - disturbed || fail "other results: $(evaluations undisturbed | diff - disturbed | head -n 4)"
