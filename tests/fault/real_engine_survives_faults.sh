#!/usr/bin/env bash
# The same faults through the commands and the real engine: the supervisor is killed while two ranks train, a rank does
# not react to a stop, a rank and the agent are killed.
. "$(dirname "$0")/lib.sh"
real_engine
cat >"$XDG_STATE_HOME/tiny.yaml" <<'YAML'
ranks: 2
threads: 1
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, warmup_steps: 5, steps: 100000}
checkpoint: {every: 500, keep: 2}
log: {every: 1}
grace_seconds: 2
YAML
launch() { "$dtrun" launch --detach "$XDG_STATE_HOME/tiny.yaml" --set "name=$1" "${@:2}" >/dev/null; }

steps=8000 # two seconds on a fast machine
launch killed --set schedule.steps=$steps
for _ in 1 2 3 4; do
    sleep "0.$((RANDOM % 9))"
    for pid in $(processes "dtrun supervise"); do kill -9 "$pid" 2>/dev/null || true; done
    value killed "o['state']" >/dev/null # this command starts a supervisor again
done
await 120 is_over killed
is state "$(value killed "o['state']")" finished
is points "$("$dtrun" metrics killed --name loss | tail -n +2 | cut -d, -f2 | sort -un | wc -l)" $steps
is "points with repeats" "$("$dtrun" metrics killed --name loss | tail -n +2 | wc -l)" $steps

# The time limit of the recipe is over: the run is saved, distinguished from a failure, and resumed to the end.
code=0
"$dtrun" launch --wait "$XDG_STATE_HOME/tiny.yaml" --set name=limited --set time_limit=1s \
    >/dev/null 2>&1 || code=$?
is "exit code of launch --wait" $code 124
is state "$(value limited "o['state']")" stopped
"$dtrun" resume --wait limited --set time_limit=0 --set "schedule.steps=$(($(value limited "o['step']") + 200))" \
    >/dev/null 2>&1 || fail "resume: exit $?"
is state "$(value limited "o['state']")" finished

launch deaf
await 30 past deaf 5
kill -STOP "$(value deaf "o['nodes'][0]['ranks'][1]['pid']")"
"$dtrun" stop deaf >/dev/null
is state "$(value deaf "o['state']")" stopped
is "exit code" "$(value deaf "o['exit_code']")" 4
await 10 nothing_left

# A rank or the agent is killed: the run continues from its checkpoint, and every loss equals that of an undisturbed
# run. The runs have more steps than the test waits for, so that none ends before its fault, however slow this machine
# is.
has_saved() { [[ $("$dtrun" checkpoints "$1" --json) == *'"step"'* ]]; }
launch golden
await 120 past golden 1500
"$dtrun" stop golden >/dev/null
for victim in rank agent; do
    launch $victim
    await 60 past $victim 700
    await 60 has_saved $victim # a save may take longer than 200 steps
    case $victim in
    rank) pid=$(value rank "o['nodes'][0]['ranks'][1]['pid']") ;;
    agent) pid=$(processes "dtrun-agent serve .*/attempt-1/") ;;
    esac
    kill -9 $pid
    await 60 in_attempt $victim 2
    from=$("$dtrun" show $victim --json | python3 -c "
import json, sys; print(json.load(sys.stdin)['attempts'][-1]['start_step'])")
    [ "$from" -ge 500 ] || fail "it continues from step $from: the checkpoint was not used"
    await 120 past $victim $((from + 300))
    "$dtrun" stop $victim >/dev/null
    is state "$(value $victim "o['state']")" stopped
    losses $victim >"$XDG_STATE_HOME/losses"
    steps=$(wc -l <"$XDG_STATE_HOME/losses")
    is "steps" "$(cut -d, -f1 "$XDG_STATE_HOME/losses" | tr '\n' ' ')" "$(seq "$steps" | tr '\n' ' ')"
    both=$(losses golden | wc -l)
    [ "$both" -le "$steps" ] || both=$steps
    cmp <(losses golden | head -n "$both") <(head -n "$both" "$XDG_STATE_HOME/losses") ||
        fail "other losses after the $victim was killed"
    await 10 nothing_left
done
