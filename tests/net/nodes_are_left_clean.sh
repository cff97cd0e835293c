#!/usr/bin/env bash
# An ended run leaves nothing on its nodes except files that may be the only copy. It can be resumed nevertheless. If a
# supervisor dies during the removal, the next one completes the end of the run unchanged.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
nodes=/root/.local/state/dtrun/nodes
left() { on "$1" sh -c "cd $nodes && find . -mindepth 2 | sort | xargs"; }
recipe <<'YAML'
schedule: {kind: constant, steps: 1000000}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 1000000, keep: 2, keep_best: 0}
log: {every: 50}
ranks: 1
YAML

# Stopped: its checkpoints are here; a checkpoint that was never downloaded stays on its node, complete or in parts.
"$dtrun" launch --detach "$net/launch/r.yaml" --set name=ends >"$net/out" 2>&1 || fail "launch: $(cat "$net/out")"
await 60 past ends 50
run=$(value ends "o['run']") folder=$net/launch/state/dtrun/runs/$(value ends "o['run']")
on host1 test -s "$nodes/$run/attempt-1/node-0/journal.jsonl" || fail "the journal of host1 is not where it is looked for"
on host1 sh -c "cd $nodes/$run/checkpoints-0 && mkdir step-00000001 step-00000002 step-00000003 && touch step-00000001/complete step-00000002/part"
wants 0 "" "$dtrun" stop ends
at=$(value ends "o['step']")
[ -e "$folder/checkpoints/$(printf 'step-%08d' "$at")/complete" ] || fail "step $at is not here"
kept=./$run/checkpoints-0
is "what host1 keeps" "$(left host1)" "$kept $kept/step-00000001 $kept/step-00000001/complete $kept/step-00000002 $kept/step-00000002/part"
is "what host2 keeps" "$(left host2)" ""
grep -Eq "checkpoints that were not fetched are kept .*: (step-00000001, step-00000002|step-00000002, step-00000001)\$" "$folder/supervisor.log" ||
    fail "what stays is not told: $(tail -n 3 "$folder/supervisor.log")"
[ -e "$folder/attempt-1/node-1/tidied" ] || fail "it is not noted that nothing is left on host2"
[ ! -e "$folder/attempt-1/node-0/tidied" ] || fail "it is noted that nothing is left on host1"
on host1 rm -r "$nodes/$run"

# Resumed to its end on the same nodes, which have no files of it. The supervisor dies while it waits for a node, here
# because a process holds the agent's lock there.
"$dtrun" resume ends --detach >"$net/out" 2>&1 || fail "resume: $(cat "$net/out")"
await 60 past ends $((at + 50))
is "step that it continued from" "$("$dtrun" show ends --json | python3 -c "
import json, sys
print([a['start_step'] for a in json.load(sys.stdin)['attempts']][-1])")" "$at"
"$net_sh" on "$net" host2 flock -o "$nodes/$run/attempt-2/node-1/agent.lock" sleep 300 &
waits_for_lock() { grep -q '^flock ' <<<"$("$net_sh" pids "$net" host2 | xargs -r ps -o args= -p)"; }
await 20 waits_for_lock
"$dtrun" stop ends >"$net/stop" 2>&1 &
stop=$!
left_one() { [ -z "$(left host1)" ]; }
await 30 left_one
is_now ends stopping || fail "the run is $(value ends "o['state']") before its nodes are clean"
kill -9 $(pgrep -f "dtrun supervise $run\$")
"$net_sh" on "$net" host2 pkill -x 'flock|sleep'
ended() { is_now ends stopped; } # this command starts a supervisor again
await 30 ended
wait $stop
is "stop" "$? $(grep -ci 'lost\|fail' "$net/stop")" "0 0"
is "what host2 keeps" "$(left host2)" ""
is "how it ended" "$(value ends "o['exit_code'], o['reason']")" "4 stopped by request"

# The checkpoint that it continued from is no longer here: the parts on the nodes stay. An attempt whose agent is gone
# there is asked about with the newest agent.
at=$(value ends "o['step']")
"$dtrun" resume ends --detach >"$net/out" 2>&1 || fail "resume: $(cat "$net/out")"
await 60 past ends $((at + 50))
name=$(printf 'step-%08d' "$at")
mv "$folder/checkpoints/$name" "$net/away"
rm "$folder/attempt-1/node-1/tidied"
sed -i 's|"agent": "[^"]*"|"agent": "/gone/dtrun-agent"|' "$folder/attempt-1/node-1/place.json"
wants 0 "" "$dtrun" stop ends
on host1 test -s "$nodes/$run/checkpoints-0/$name/complete" || fail "host1 has lost $name: $(left host1)"
[ -e "$folder/attempt-1/node-1/tidied" ] || fail "attempt 1 was not asked for: $(tail -n 4 "$folder/supervisor.log")"
for host in host1 host2; do on $host rm -rf "$nodes/$run"; done

# The last checkpoint cannot be downloaded: the parts on each node stay there, and are reported.
"$dtrun" launch --detach "$net/launch/r.yaml" --set name=blocked >"$net/out" 2>&1 || fail "launch: $(cat "$net/out")"
await 60 past blocked 50
run=$(value blocked "o['run']") folder=$net/launch/state/dtrun/runs/$(value blocked "o['run']")
mv "$folder/checkpoints" "$folder/checkpoints.away" && touch "$folder/checkpoints"
"$dtrun" stop blocked >"$net/out" 2>&1 || true
is "how it ended" "$(value blocked "o['state']")" stopped
name=$(printf 'step-%08d' "$(value blocked "o['step']")")
for node in 0 1; do
    on "host$((node + 1))" test -s "$nodes/$run/checkpoints-$node/$name/part" || fail "host$((node + 1)) has lost its part of $name"
    grep -q "host$((node + 1)): checkpoints that were not fetched are kept .*checkpoints-$node.*: .*$name" "$folder/supervisor.log" ||
        fail "host$((node + 1)): what stays is not told: $(tail -n 4 "$folder/supervisor.log")"
    on "host$((node + 1))" rm -r "$nodes/$run"
done

# A run whose node was lost: this node keeps its journal, which nothing has read; the other node has nothing.
"$dtrun" launch --detach "$net/launch/r.yaml" --set name=lost --set failure.max_restarts=0 >"$net/out" 2>&1 || fail "launch: $(cat "$net/out")"
await 60 past lost 50
"$net_sh" cut "$net" host2
fallen() { is_now lost failed; }
await 90 fallen
run=$(value lost "o['run']")
is "what host1 keeps of a run that lost host2" "$(left host1)" ""
on host2 test -s "$nodes/$run/attempt-1/node-1/journal.jsonl" || fail "the journal of a lost node is gone"
"$net_sh" heal "$net" host2

# Stopped while its engine is being sent: when the stop returns, the receiving process has ended.
receiving() {
    local host pid
    for host in host1 host2; do
        for pid in $("$net_sh" pids "$net" $host); do
            tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep 'dtrun-agent node receive'
        done
    done
    true
}
for host in host1 host2; do on $host rm -rf /root/.cache/dtrun; done
"$dtrun" launch --detach "$net/launch/r.yaml" --set name=half >"$net/out" 2>&1 || fail "launch: $(cat "$net/out")"
comes() { grep -q "copying the engine" <<<"$("$dtrun" status half --json)"; }
await 60 comes
wants 0 "" "$dtrun" stop half
is "what still receives after the stop" "$(receiving)" ""
is "how it ended" "$(value half "o['state']")" stopped
