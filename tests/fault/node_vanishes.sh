#!/usr/bin/env bash
# A node that is cut off: for ten seconds nothing is lost and nothing restarted; for good it is told
# within 20 s, and the run goes on with the others, or when it is back.
. "$(dirname "$0")/lib.sh"
unset DTRUN_ENGINE
export OMP_NUM_THREADS=1
here=$(cd "$(dirname "$0")/../net" && pwd)
net=$("$here/net.sh" up 2) || exit $?
clean_more() { "$here/net.sh" down "$net"; }
state=$XDG_STATE_HOME
. "$net/env"
export XDG_STATE_HOME=$state
if [ "$net_kind" != namespace ]; then
    echo "skipped: hosts on 127.0.0.1 cannot be cut off"
    exit 77
fi
dtrun=$DTRUN_BIN/dtrun
seq 1 4000 | sed 's/.*/line & of a text that can be learned/' >"$state/corpus.txt"
cat >"$state/tiny.yaml" <<'YAML'
nodes: [host1, host2]
ranks: 2
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, warmup_steps: 5, steps: 1000000}
checkpoint: {every: 1000, keep: 2}
log: {every: 10}
grace_seconds: 2
YAML
launch() { "$dtrun" launch --detach "$state/tiny.yaml" --set "name=$1" "${@:2}" >/dev/null; }
value() { # run expression over the object o
    "$dtrun" status "$1" --json | python3 -c "import json, sys; o = json.load(sys.stdin); print($2)"
}
past() { [ "$(value "$1" "o['step']")" -ge "$2" ]; }
in_attempt() { [ "$(value "$1" "o['attempt']")" -ge "$2" ]; }
is_over() { [[ $(value "$1" "o['state']") =~ ^(finished|failed|stopped)$ ]]; }
ms() { echo $((($(date +%s%N) - $1) / 1000000)); }
ranks_on() { "$here/net.sh" pids "$net" "$1" | xargs -r ps -o args= -p | grep -c 'dtrun-engine.* train' || true; }

launch cut
await 60 past cut 50
"$here/net.sh" cut "$net" host2
sleep 10
"$here/net.sh" heal "$net" host2
step=$(value cut "o['step']")
await 30 past cut $((step + 500))
is attempt "$(value cut "o['attempt']")" 1
"$dtrun" stop cut >/dev/null
is state "$(value cut "o['state']")" stopped
echo "cut for 10 s: nothing lost, attempt 1"

launch smaller --set nodes_min=1
await 60 past smaller 50
start=$(date +%s%N)
"$here/net.sh" cut "$net" host2
is_told() { [[ $("$dtrun" status smaller --json) == *'"lost"'* ]] || in_attempt smaller 2; }
await 20 is_told
echo "cut for good: told after $(ms "$start") ms"
await 60 in_attempt smaller 2
await 30 past smaller 20
echo "... and on with the other node after $(ms "$start") ms"
is nodes "$(value smaller "len(o['nodes'])")" 1
is "ranks on the node that is left" "$(ranks_on host1)" 2
"$here/net.sh" heal "$net" host2
"$dtrun" stop smaller >/dev/null
is state "$(value smaller "o['state']")" stopped

launch waits
await 60 past waits 50
"$here/net.sh" cut "$net" host2
await 60 in_attempt waits 2
await 60 eval '[ "$(ranks_on host1)" = 0 ]'
is state "$(value waits "o['state']")" preparing
sleep 5
"$here/net.sh" heal "$net" host2
start=$(date +%s%N)
await 60 past waits 20
echo "back: trains again after $(ms "$start") ms"
is nodes "$(value waits "len(o['nodes'])")" 2
"$dtrun" stop waits >/dev/null
is state "$(value waits "o['state']")" stopped
for host in host1 host2; do
    await 30 eval "[ \"\$(ranks_on $host)\" = 0 ]"
done
