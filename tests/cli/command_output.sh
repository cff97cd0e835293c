#!/usr/bin/env bash
# Recipes with a `command`: unusual output, programs that cannot be executed, and errors in the recipe.
. "$(dirname "$0")/lib.sh"
cp tests/cli/trainer.sh "$work/trainer.sh"
recipe() { # name and lines of a recipe
    printf '%s\n' "${@:2}" >"$work/$1.yaml"
}

# Unusual output.
recipe wild 'command: ./trainer.sh wild' 'metrics: json'
expect 0 launch --wait --json "$work/wild.yaml"
json "o['state'] == 'finished'" "o['loss'] == 0.0625"
expect 0 show --json last
json "len(o['metrics']) == 256" "'huge' in o['metrics'] and 'text' not in o['metrics']"
expect 0 logs last
says "more than 256 names of metrics" "[cut]" "points beyond 256 names" "point"
expect 0 metrics last --name loss --format csv
[ "$(cut -d, -f2,4 "$work/out" | tail -n +2 | tr '\n' ' ')" = "1,nan 4,0.125 5,0.0625 " ] || fail "not the metrics"
recipe lines 'command: ./trainer.sh lines' "metrics: {pattern: 'step (?P<step>\\d+) .*loss (?P<loss>[\\d.]+) \\(lr (?P<lr>[^)]+)'}"
expect 0 launch --wait --json "$work/lines.yaml"
json "o['loss'] == 0.3" "o['steps'] == 3"
expect 0 metrics last --name lr --format csv
says "0.001"

# --wait shows the output of rank 0, with its last incomplete line, and no values that the program does not report.
printf 'for i in 1 2 3; do echo "line $i of rank $RANK"; done; printf "10%%%%\\r20%%%%\\r30%%%%\\n"; printf "no newline"' >"$work/talk.sh"
expect 0 run --wait --processes 2 -- sh "$work/talk.sh"
says "line 1 of rank 0" "line 3 of rank 0" "30%" "no newline" "logs " "talk "
lacks "rank 1" "step 0" "of ?" "loss" "20%"
for words in "status last" "show last" "list --columns run,step"; do
    expect 0 $words
    lacks "of ?" "0/?" "loss  " "loss -"
done

# Programs that do not exist or cannot be executed.
recipe bad 'command: ./trainer.sh code 3'
refused() { # COMMAND, message
    expect 1 launch --wait "$work/bad.yaml" --set processes=1 --set failure.max_restarts=2 --set "command=$1"
    says "rank 0 on localhost exited with code 1: $2"
}
printf 'no program\n' >"$work/text" && chmod +x "$work/text"
printf '#!/no/such/python\n' >"$work/script" && chmod +x "$work/script"
printf 'exit 0\n' >"$work/plain"
refused no-such-program-at-all "'no-such-program-at-all' was not found on this node"
refused ./missing "cannot run './missing' on this node: No such file or directory"
refused ./plain "cannot run './plain' on this node: Permission denied"
refused ./text "cannot run './text': it is neither a program nor a script"
refused ./script "cannot run './script': the interpreter that its first line names does not exist"
refused "$work" "cannot run '$work' on this node: Permission denied"
expect 1 launch --wait "$work/bad.yaml" --set workdir=/no/such/folder
says "cannot run in the folder '/no/such/folder' of this node"

# A sweep over commands, and a program without a recipe file.
recipe sweep 'metrics: json' 'sweep: {command: ["./trainer.sh good x", [./trainer.sh, good, "y z"]]}'
expect 0 launch --wait "$work/sweep.yaml"
expect 0 list --group sweep --json
json "[(r['state'], r['loss']) for r in o['runs']] == 2 * [('finished', 0.25)]"
expect 0 logs sweep-2
says "words=2 last="
expect 0 run --dry-run --nodes localhost --processes 2 -- "$work/trainer.sh" good 'a b'
says 'name: "trainer"' "command: [\"$work/trainer.sh\",\"good\",\"a b\"]" 'processes: "2"' "nothing was started"
expect 0 run --wait --json --name other --processes 2 --set env='{KEY: xyz}' -- "$work/trainer.sh" good 'a b'
json "o['name'] == 'other'" "o['state'] == 'finished'" "o['loss'] == 0.25"
expect 1 run --wait -- sh -c "exit 9"
says "exited with code 9"
expect 2 run
says "PROGRAM... is missing"
expect 2 run --processes many -- true
says "expected 'gpu', 'node' or a number"

# A command needs no engine, here either.
DTRUN_ENGINE=$work/none expect 0 run --wait --json -- sh -c 'ps -o args= -p $PPID'
json "o['state'] == 'finished'"
expect 0 logs last
says " serve "

# The GPUs that the plan assigns to a node, with the names of the node. The agent starts programs whether or not they
# use them, as its children, and writes `ready` and `finished` for them.
recipe gpus "command: sh -c 'echo gpus=\$CUDA_VISIBLE_DEVICES threads=\$OMP_NUM_THREADS nproc={nproc}'" 'processes: node'
expect 0 launch --dry-run --json "$work/gpus.yaml"
cp "$work/out" "$work/plan.json"
start_as() { # environment of the node : the program's output and the agent's events
    PYTHONPATH=tests/fault python3 - "$work/plan.json" "$1" >"$work/out" 2>"$work/err" <<'PY' || fail "$1: $(cat "$work/err")"
import json, sys
from agent_talk import Agent, check
plan = json.load(open(sys.argv[1]))['plan']
plan.update(run='talk', attempt=1, directory='/dev/null')
plan['ranks'][0].update(device='cuda:1', replicas=2)
agent = Agent(environment=json.loads(sys.argv[2]))
agent.connect()
agent.send(command='start', engine='', plan=plan, node=0, environment={})
started = agent.wait('started')
check(agent.wait('ready')['pid'] == started['pid'], 'the rank is not the program')
agent.wait('finished')
agent.wait('released')
print(json.dumps(agent.seen))
PY
}
start_as '{"CUDA_VISIBLE_DEVICES": "7,8,9", "OMP_NUM_THREADS": "3"}'
says "gpus=8,9 threads= nproc=2" '"reason": "steps"' '"code": 0'
start_as '{"CUDA_VISIBLE_DEVICES": ""}'
says "gpus=1,2"

# Refused before a run exists, with the field and the reason.
wrong() { # text of a recipe; expected message
    printf '%b\n' "$1" >"$work/wrong.yaml"
    expect 2 launch "$work/wrong.yaml"
    says "${@:2}"
}
wrong 'command: a | b' "only a shell understands: set 'shell: true'"
wrong "command: a 'b" "a quote that is not closed"
wrong 'command: ""' "'command' contains an empty text"
wrong 'command: []' "'command' is missing or empty"
wrong 'task: command' "'command' is missing or empty"
wrong 'command: [a, b]\nshell: true' "takes the command as one text"
wrong 'command: a\nmodel: gpt2-small' "'model.preset' has no effect on a command"
wrong 'command: a\nranks: 2' "use 'processes'"
wrong 'command: a\ntask: generate' "'command' and 'task: generate' cannot be combined"
wrong 'command: a\nprocesses: many' "expected 'gpu', 'node' or a number"
wrong 'command: a\nprocesses: 3\ngpus: 8' "'processes' 3 does not divide 'gpus' 8"
wrong 'command: a\nenv: {RANK: 1}' "'env.RANK' is set by dtrun"
wrong 'command: a\nenv: {A-B: 1}' "'A-B' is not a variable"
wrong 'command: a\nenv: {A: [1]}' "expected a list of text"
wrong 'command: a\nmetrics: {tensorboard: x}' "unknown key 'tensorboard'"
wrong "command: a\nmetrics: {pattern: 'step (?P<step>.*)'}" "needs a group for each metric"
wrong "command: a\nmetrics: {pattern: '(?P<step>.*?)(?P<x>.)'}" "a lazy or possessive repetition"
wrong "command: a\nmetrics: {pattern: '(?P<step>['}" "a '[' is not closed"
wrong 'command: a\nworkdirs: x' "unknown key 'workdirs' (did you mean 'workdir'?)"
wrong 'model: gpt2-small\nenv: {A: 1}' "'env' has no effect without a 'command'"
expect 2 plan "$work/wild.yaml"
says "takes only recipes that train"
