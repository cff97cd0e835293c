#!/usr/bin/env bash
# A node is cut off. For ten seconds nothing is lost and nothing restarts. For good, it is reported within 20 s, and the
# run continues with the other nodes, or when the node is back. Processes that still run there are ended. Without
# FAULT_FULL=1 both times are half as long.
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.5 # a node without a sign of life is lost after 8 s
. "$(dirname "$0")/hosts.sh"
if ! apart; then
    echo "skipped: hosts on 127.0.0.1 cannot be cut off"
    exit 77
fi
# The first evaluation may take long, and a node that is silent during it is not lost (policy/watchdog.h), so this recipe
# has none.
endless=(--set log.every=10 --set evaluate.every=0)
stopped() { # run id
    "$dtrun" stop "$1" >/dev/null
    is "state of $1 ($(value "$1" "o['reason']"))" "$(value "$1" "o['state']")" stopped
    is "exit code of $1" "$(value "$1" "o['exit_code']")" 4
    await 20 none_there "$2"
}

# The connections between the ranks were cut too: TCP may stay silent for the same time again.
launch cut "${endless[@]}"
await 60 past cut 50
"$net_sh" cut "$net" host2
sleep "$(scaled 10)"
"$net_sh" heal "$net" host2
step=$(value cut "o['step']")
start=$(date +%s%N)
await 90 past cut $((step + 50))
is attempt "$(value cut "o['attempt']")" 1
figure 3 "a node cut off for $(scaled 10) s: attempts begun beyond the first" 0 "$(($(value cut "o['attempt']") - 1))"
figure 3 "... and the ranks continue after the cut" "30 s" "$(seconds_since "$start")"
stopped cut "$id"

for strategy in ddp fsdp; do
    run=smaller-$strategy
    launch $run "${endless[@]}" --set nodes_min=1 --set strategy=$strategy
    await 60 past $run 60
    await 60 has_saved $run
    start=$(date +%s%N)
    "$net_sh" cut "$net" host2
    is_told() { [[ $("$dtrun" status $run --json) == *'"lost"'* ]] || in_attempt $run 2; }
    await 60 is_told
    figure 3 "a node cut off for good ($strategy): the verdict" "$(scaled 20) s" "$(seconds_since "$start")"
    await 90 in_attempt $run 2
    figure 3 "... and the survivors freed, the next attempt begun" "60 s" "$(seconds_since "$start")"
    from=$("$dtrun" show $run --json | python3 -c "
import json, sys; print(json.load(sys.stdin)['attempts'][-1]['start_step'])")
    [ "$from" -ge 50 ] || fail "it continues from step $from: the checkpoint was not used"
    await 60 past $run $((from + 20))
    is nodes "$(value $run "len(o['nodes'])")" 1
    is "ranks" "$(value $run "sum(len(n['ranks']) for n in o['nodes'])")" 2
    "$net_sh" heal "$net" host2
    stopped $run "$id"
done

# A stop while the node is cut off cannot know what is left there. Once the node is back, stop completes.
launch away "${endless[@]}"
await 60 past away 20
"$net_sh" cut "$net" host2
code=0
"$dtrun" stop away >"$state/stop.out" || code=$?
is "exit code of stop" $code 5
like "what stop says" "$(<"$state/stop.out")" "*cannot verify that nothing is left: node host2 is gone*"
code=0
"$dtrun" stop away >/dev/null 2>"$state/stop.err" || code=$?
is "exit code of another stop" $code 5
"$net_sh" heal "$net" host2
"$dtrun" stop away >/dev/null || fail "stop once the node is back: exit $?"
like "the reason once the node is back" "$(value away "o['reason']")" "*nothing is left on its nodes*"
await 20 none_there "$id"

launch waits "${endless[@]}"
await 60 past waits 60
"$net_sh" cut "$net" host2
await 90 in_attempt waits 2
on_host1() { "$net_sh" pids "$net" host1 | xargs -r ps -o args= -p | grep -c 'dtrun-engine.* train' || true; }
await 60 eval '[ "$(on_host1)" = 0 ]'
is state "$(value waits "o['state']")" preparing
sleep "$(scaled 5)"
"$net_sh" heal "$net" host2
start=$(date +%s%N)
await 90 past waits 70
figure 3 "a node that is back: the run trains again" "60 s" "$(seconds_since "$start")"
is nodes "$(value waits "len(o['nodes'])")" 2
stopped waits "$id"
