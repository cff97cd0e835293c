#!/usr/bin/env bash
# 64 nodes, all of them this machine: launch, status and stop with their times, the supervisor's
# memory and an agent's. Figures are printed and not asserted, because they depend on the machine.
. "$(dirname "$0")/lib.sh"
export FAKE_STEPS=1000000 FAKE_STEP_MS=200
ms() { echo $((($(date +%s%N) - $1) / 1000000)); }
resident() { awk '/VmHWM/ {print $2}' "/proc/$1/status"; }

start=$(date +%s%N)
"$driver" launch wide 1 64
await 60 has_step wide 1
echo "launch of 64 nodes to the first step: $(ms "$start") ms"
is "agents" "$(processes "dtrun-agent serve" | wc -l)" 64
is "ranks" "$(get wide pids | grep -vc '^0$')" 64

start=$(date +%s%N)
"$DTRUN_BIN/dtrun" status wide --json >"$XDG_STATE_HOME/status"
echo "status: $(ms "$start") ms"
is "nodes in it" "$(python3 -c "import json, sys; print(len(json.load(sys.stdin)['nodes']))" <"$XDG_STATE_HOME/status")" 64
echo "supervisor: $(resident "$(processes "supervise wide")") KB, an agent: $(resident "$(processes "dtrun-agent serve" | head -n 1)") KB at most"

start=$(date +%s%N)
"$driver" stop wide
await 60 has_ended wide
echo "stop: $(ms "$start") ms"
end_is wide stopped 4
await 20 nothing_left
