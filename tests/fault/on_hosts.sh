#!/usr/bin/env bash
# The faults that a network matters to, over real sshd, 2 nodes x 2 ranks, with the real engine:
# a rank, an agent, the supervisor killed; a node that cannot be prepared; stop; two runs; a hang.
# FAULT_FULL=1: the supervisor stays away for 0, 20 and 60 s, three times; a hang is one after 30 s.
STEPS=1500
. "$(dirname "$0")/hosts.sh"
away="0 3" rounds=1 hang=3
[ -z "${FAULT_FULL:-}" ] || { away="0 20 60" rounds=3 hang=30; }

hit() { # id pattern
    local pids
    pids=$(there "$1" "$2")
    [ -n "$pids" ] || fail "nothing there to be killed: $2"
    kill -9 $pids
}

launch golden
await 120 is_over golden
is state "$(value golden "o['state']")" finished
whole golden

# 1: a rank is killed. It is not to be started again here, so that the run fails.
code=0
"$dtrun" launch --wait "$state/tiny.yaml" --set name=rank --set schedule.steps=1000000 \
    --set failure.max_restarts=0 >"$state/rank.out" 2>&1 &
waiting=$!
await 60 eval '"$dtrun" status rank --json >/dev/null 2>&1'
await 60 past rank 20
id=$(id_of rank)
kill -9 "$(pid_of rank 3)"
start=$(date +%s%N)
await 60 no_ranks "$id"
figure 1 "kill -9 of a rank, 2 nodes x 2: every rank gone" "30 s" "$(seconds_since "$start")"
wait $waiting || code=$?
is "exit code of launch --wait" $code 1
like "what it says" "$(<"$state/rank.out")" "*rank 3 on host2 was killed by signal 9 (SIGKILL*"
await 10 none_there "$id"

# ... or a node fails while it is made ready
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
start=$(date +%s%N)
hit "$(id_of agent)" 'dtrun-agent serve .*node-1'
await 60 in_attempt agent 2
figure 2 "kill -9 of an agent: the next attempt begins" "60 s" "$(seconds_since "$start")"
finished agent 2
await 10 none_there "$(id_of agent)"

# 4: the supervisor is killed and nobody looks
for round in $(seq $rounds); do
    for seconds in $away; do
        run=away-$round-$seconds
        launch "$run"
        await 60 past "$run" 20
        id=$(id_of "$run")
        hit "$id" 'dtrun supervise'
        sleep "$seconds"
        start=$(date +%s%N)
        finished "$run" 1
        figure 4 "supervisor killed, away for $seconds s: one attempt, $STEPS points; then ended in" - \
            "$(seconds_since "$start")"
        await 10 none_there "$id"
    done
done

# 5: stop where the supervisor was killed
launch orphan --set schedule.steps=1000000
await 60 past orphan 20
id=$(id_of orphan)
hit "$id" 'dtrun supervise'
start=$(date +%s%N)
"$dtrun" stop orphan >/dev/null
figure 5 "stop after the supervisor was killed" "30 s" "$(seconds_since "$start")"
is state "$(value orphan "o['state']")" stopped
await 5 none_there "$id"

# 7: two runs on the same nodes
launch one --set schedule.steps=1000000
launch two
await 60 past one 20
await 60 past two 20
start=$(date +%s%N)
"$dtrun" stop one >/dev/null
took=$(seconds_since "$start")
is state "$(value one "o['state']")" stopped
finished two 1
figure 7 "two runs on the same nodes, one stopped: the other has lost 0 steps; stopped in" - "$took"

# 8: a rank that does nothing more
launch hang --set failure.hang_seconds=$hang
await 60 past hang 100
start=$(date +%s%N)
kill -STOP "$(pid_of hang 2)"
await 120 in_attempt hang 2
figure 8 "SIGSTOP of a rank, floor of $hang s: seen, told and the next attempt begun" "$((hang + 15)) s" \
    "$(seconds_since "$start")"
finished hang 2
await 10 none_there "$(id_of hang)"
