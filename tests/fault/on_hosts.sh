#!/usr/bin/env bash
# Faults for which the network matters, over real sshd, 2 nodes x 2 ranks, with the real engine:
# a rank, an agent, the supervisor killed; a node that cannot be prepared; stop; two runs; a hang.
# FAULT_FULL=1: the supervisor stays away for 0, 20 and 60 s, three times each; a hang counts after 30 s.
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.5 # a node without a sign of life is lost after 8 s
. "$(dirname "$0")/hosts.sh"
away="0 3" rounds=1 hang=3 steps=4000
[ -z "${FAULT_FULL:-}" ] || { away="0 20 60" rounds=3 hang=30; }

hit() { # id pattern
    local pids
    pids=$(there "$1" "$2")
    [ -n "$pids" ] || fail "nothing there to be killed: $2"
    kill -9 $pids
}
resumes() { # run attempt: resumed from its checkpoint with the same losses; then it is stopped
    local from
    await 60 in_attempt "$1" "$2"
    from=$("$dtrun" show "$1" --json | python3 -c "
import json, sys; print(json.load(sys.stdin)['attempts'][-1]['start_step'])")
    [ "$from" -ge 50 ] || fail "it continues from step $from: the checkpoint was not used"
    await 120 past "$1" $((from + 100))
    is "attempt of $1" "$(value "$1" "o['attempt']")" "$2"
    "$dtrun" stop "$1" >/dev/null
    is "state of $1" "$(value "$1" "o['state']")" stopped
    whole "$1"
    await 20 none_there "$id"
}

launch golden
await 120 past golden 1000
"$dtrun" stop golden >/dev/null
whole golden

# 1: a rank is killed. There are no restarts here, so that the run fails.
code=0
"$dtrun" launch --wait "$state/tiny.yaml" --set name=rank --set failure.max_restarts=0 \
    >"$state/rank.out" 2>&1 &
waiting=$!
await 60 eval '"$dtrun" status rank --json >/dev/null 2>&1'
await 60 past rank 20
id=$(value rank "o['run']")
kill -9 "$(pid_of rank 3)"
start=$(date +%s%N)
await 60 no_ranks "$id"
figure 1 "kill -9 of a rank, 2 nodes x 2: every rank gone" "30 s" "$(seconds_since "$start")"
wait $waiting || code=$?
is "exit code of launch --wait" $code 1
like "what it says" "$(<"$state/rank.out")" "*rank 3 on host2 was killed by signal 9 (SIGKILL*"
await 20 none_there "$id"

# ... or a node fails while it is prepared
if apart; then
    "$net_sh" on "$net" host2 mount -o remount,ro /root
    start=$(date +%s%N) code=0
    "$dtrun" launch --wait "$state/tiny.yaml" --set name=prepare >"$state/prepare.out" 2>&1 || code=$?
    "$net_sh" on "$net" host2 mount -o remount,rw /root
    is "exit code where a node cannot be prepared" $code 3
    like "what it says" "$(<"$state/prepare.out")" "*host2*"
    figure 1 "a node whose home is read-only: the launch fails, exit 3" "30 s" "$(seconds_since "$start")"
fi

# 2: an agent is killed
launch agent
await 60 past agent 100
await 60 has_saved agent
start=$(date +%s%N)
hit "$id" 'dtrun-agent serve .*node-1'
await 60 in_attempt agent 2
figure 2 "kill -9 of an agent: the next attempt begins" "60 s" "$(seconds_since "$start")"
resumes agent 2

# 4: the supervisor is killed, and no command runs
for round in $(seq $rounds); do
    for seconds in $away; do
        run=away-$round-$seconds
        launch "$run" --set schedule.steps=$steps
        await 60 past "$run" 5
        hit "$id" 'dtrun supervise'
        sleep "$seconds"
        start=$(date +%s%N)
        await 240 is_over "$run"
        is "state of $run ($(value "$run" "o['reason']"))" "$(value "$run" "o['state']")" finished
        is "attempts of $run" "$(value "$run" "o['attempt']")" 1
        whole "$run" $steps
        figure 4 "supervisor killed, away for $seconds s: one attempt, $steps points; then ended in" - \
            "$(seconds_since "$start")"
        await 20 none_there "$id"
    done
done

# 5: a stop after the supervisor was killed
launch orphan
await 60 past orphan 20
hit "$id" 'dtrun supervise'
start=$(date +%s%N)
"$dtrun" stop orphan >/dev/null
figure 5 "stop after the supervisor was killed" "30 s" "$(seconds_since "$start")"
is state "$(value orphan "o['state']")" stopped
await 20 none_there "$id"

# 7: two runs on the same nodes
launch one
launch two
await 60 past one 20
await 60 past two 20
start=$(date +%s%N)
"$dtrun" stop one >/dev/null
took=$(seconds_since "$start")
is state "$(value one "o['state']")" stopped
step=$(value two "o['step']")
await 60 past two $((step + 100))
is "attempt of the other" "$(value two "o['attempt']")" 1
"$dtrun" stop two >/dev/null
whole two
figure 7 "two runs on the same nodes, one stopped: the other has lost no step; stopped in" - "$took"

# 8: a rank that makes no progress
launch hang --set failure.hang_seconds=$hang
await 60 past hang 100
await 60 has_saved hang
start=$(date +%s%N)
kill -STOP "$(pid_of hang 2)"
await 120 in_attempt hang 2
figure 8 "SIGSTOP of a rank, floor of $hang s: seen, told and the next attempt begun" "$((hang + 15)) s" \
    "$(seconds_since "$start")"
resumes hang 2
