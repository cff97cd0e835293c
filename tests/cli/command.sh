#!/usr/bin/env bash
# A recipe with a `command` runs a program of the user: its environment, exits, stops and restarts.
. "$(dirname "$0")/lib.sh"
cp tests/cli/trainer.sh "$work/trainer.sh"
recipe() { # name and lines of a recipe
    printf '%s\n' "${@:2}" >"$work/$1.yaml"
}
processes() { # processes of this test, recognised by the marker of their sleeps
    pgrep -f "sleep $1" | wc -l
}
has_processes() { [ "$(processes "$1")" -ge "$2" ]; }
has_step() { "$dtrun" status "$1" | grep -q "step $2"; }

# Two processes finish; the environment, the arguments and the metrics are there, and the secret appears nowhere.
recipe good "command: ./trainer.sh good \"two words\" '{nproc}-{nnodes}-{node_rank}' {brace}" \
    'processes: 2' 'metrics: json' 'env: {KEY: "${env:DT_TEST_KEY}", OMP_NUM_THREADS: 5}' 'gpus: 0'
expect 2 validate "$work/good.yaml"
says "good.yaml:4:12: the environment lacks 'DT_TEST_KEY'"
export DT_TEST_KEY=hush-hush-hush
expect 0 validate "$work/good.yaml"
says "good (a command, 2 processes)"
expect 0 validate --json "$work/good.yaml"
json "o['recipes'][0]['valid']" "o['recipes'][0]['ranks'] == 2"
expect 0 launch --dry-run "$work/good.yaml"
says "./trainer.sh good 'two words'" "nothing was started" "KEY"
expect 0 launch --dry-run --json "$work/good.yaml"
json "o['command'][2:] == ['two words', '{nproc}-{nnodes}-{node_rank}', '{brace}']" "o['workdir'] == '$work'" \
    "len(o['plan']['ranks']) == 2" "'model' not in o['plan']['recipe']"
expect 0 launch --wait --json "$work/good.yaml"
json "o['state'] == 'finished'" "o['loss'] == 0.25" "o['steps'] == 2"
run=$(field "o['run']")
expect 0 logs "$run" --rank 1
says "rank=1/2 local=1/2 node=0 group=0 master=127.0.0.1 count=0 run=$run/1 gpus='' threads=5 key=14 words=4 last=2-1-0" \
    "to stderr"
lacks "stdin has"
expect 0 metrics "$run" --name loss --format csv
[ "$(cut -d, -f2,4 "$work/out" | tail -n +2 | tr '\n' ' ')" = "1,0.5 2,0.25 " ] || fail "not the metrics"
expect 0 show "$run"
says "command" "step " "2 of 2"
expect 0 show --json "$run"
json "o['task'] == 'command'" "o['recipe']['env'][0] == 'KEY=\${env:DT_TEST_KEY}'" "'model' not in o['recipe']"
expect 0 list --json
json "o['runs'][0]['task'] == 'command'"
grep -rqa hush-hush "$work/state" && fail "the secret is in the history"
expect 2 resume "$run"
says "is finished: launch it again"
expect 2 fork "$run"
says "is a run of a command"

# Exit codes and signals are those of the program, with the rank; nothing is restarted unless asked.
recipe bad 'command: [./trainer.sh, code, 3]' 'processes: 2'
expect 1 launch --wait "$work/bad.yaml"
says "rank 1 on localhost exited with code 3"
expect 1 launch --wait "$work/bad.yaml" --set 'command=./trainer.sh signal SEGV'
says "rank 1 on localhost was killed by signal 11 (SIGSEGV)"
expect 1 launch --wait "$work/bad.yaml" --set 'command=./trainer.sh signal TERM'
says "rank 1 on localhost was killed by signal 15 (SIGTERM)"
expect 1 launch --wait "$work/bad.yaml" --set shell=true --set 'command=exit 5 | false; exit 6'
says "exited with code 6"

# A stop leaves nothing, whatever the program started; a program that ends when asked is not killed.
recipe stop "command: ./trainer.sh stubborn 7531.$$" 'processes: 2' 'grace_seconds: 0.5' 'metrics: json'
expect 0 launch --detach "$work/stop.yaml"
run=$(cat "$work/out")
within 60 has_processes 7531.$$ 6 || fail "the program did not start its children"
within 60 state_is "$run" running
expect 0 stop "$run"
says "none of its processes are left"
has_processes 7531.$$ 1 && fail "the stop left $(pgrep -af "sleep 7531.$$")"
expect 0 launch --detach "$work/stop.yaml" --set 'command=./trainer.sh polite' --set grace_seconds=20
run=$(cat "$work/out")
within 60 has_step "$run" 1
expect 0 stop "$run"
lacks "did not exit cleanly"
expect 0 logs "$run"
says "saved"
expect 0 status --json "$run"
json "o['state'] == 'stopped'" "o['exit_code'] == 4"

# A time limit ends the program, however it reacts.
expect 124 launch --wait "$work/stop.yaml" --set time_limit=1s --set 'command=./trainer.sh stubborn 7532.'$$
says "time_limit reached"
has_processes 7532.$$ 1 && fail "the time limit left $(pgrep -af "sleep 7532.$$")"

# A restart has another restart count and another port.
recipe again 'command: ./trainer.sh again 3' 'failure: {max_restarts: 2}' 'metrics: json'
expect 0 launch --wait "$work/again.yaml"
expect 0 logs last
cat "$work/out" "$work/err" | grep -o 'count=.*' | cut -d' ' -f1,3 | tr '\n' ' ' >"$work/counts"
[ "$(cat "$work/counts")" = "count=0 attempt=1 count=1 attempt=2 count=2 attempt=3 " ] || fail "not the counts"
[ "$(grep -o 'port=[0-9]*' "$work/out" | sort -u | wc -l)" -eq 3 ] || fail "a port was used twice"
expect 1 launch --wait "$work/again.yaml" --set 'command=./trainer.sh again 2' --set failure.max_restarts=0 \
    --set 'env={KEY: "${env:DT_TEST_KEY}"}'
(unset DT_TEST_KEY && expect 2 resume last --wait && says "'env.KEY': the environment lacks 'DT_TEST_KEY'")
expect 0 resume last --wait --json
json "o['state'] == 'finished'" "o['attempt'] == 2"
expect 2 resume last --new-data
says "--new-data is only for training runs"
