#!/usr/bin/env bash
# Faults of real programs under `command`: PyTorch's DDP on one and on two hosts that share no folder, torchrun, and
# transformers' Trainer. One rank of two, chosen at random, fails in each way; checks that the reason names the rank,
# its host and what happened, and that no process is left. Prints a table (docs/command.md).
#
#   DTRUN_BIN=build/test/bin PEER=/path/to/venv bash tests/peers/faults.sh [ROUNDS [SECONDS]]
#
# PEER has PyTorch and transformers; its Python must not be below /root, which the hosts do not see. FAULTS="cut stop"
# provokes only these. Each round provokes each fault once; no fault starts after SECONDS.
. "$(dirname "$0")/../net/lib.sh"
rounds=${1:-10} seconds=${2:-100000}
: "${DTRUN_BIN:?the folder of the programs}" "${PEER:?the folder of a virtual environment with torch and transformers}"
hosts 2 apart
mkdir -p "$net/launch/faults"
cp tests/peers/faulty.py "$net/launch/faults/faulty.py"
cd "$net/launch/faults" || exit 1
python=$PEER/bin/python3 began=$(date +%s)
left_on_hosts() {
    local host
    for host in host1 host2; do
        "$net_sh" pids "$net" "$host" | xargs -r ps -o args= -p | grep -E 'faulty|torchrun|dtrun-engine'
    done
}
program_on() { # host: pid of a rank's program there
    "$net_sh" pids "$net" "$1" | xargs -r ps -o pid=,args= -p | awk '/[f]aulty/ && !/dtrun/ { print $1; exit }'
}
fault_of() { # FAULT VICTIM-HOST : text of the reason
    case $1 in
    exception) echo "exited with code 1: ValueError: bad sample 4711 on rank" ;;
    exit0) echo "ended with code 0 at" ;;
    os._exit) echo "exited with code 7" ;;
    segv) echo "was killed by signal 11" ;;
    abort) echo "was killed by signal 6" ;;
    sigkill) echo "was killed by signal 9" ;;
    hang) echo "slept" ;;
    oom) echo "MemoryError" ;;
    message) echo "exited with code 1: cannot open the data set /data/x" ;;
    frozen) echo "was stopped by a signal" ;;
    stop) echo "stopped by request" ;;
    esac
}
declare -A seen right clean
all="exception exit0 os._exit segv abort sigkill hang frozen oom thread message stop resume cut"
provoke() { # FAULT PLACE
    local fault=$1 place=$2 rank=$((RANDOM % 2)) host=host1 options=(--processes 2 --nodes host1) reason state code=0
    local name=$fault-$place-${seen[$1]:-0} words=() wanted wanted_rank ok=no
    [ "$place" = two ] && options=(--processes 1 --nodes host1,host2) && [ $rank = 1 ] && host=host2
    wanted_rank=$rank
    words=("$python" faulty.py --fault "$fault" --rank $rank)
    case $fault in
    hang | frozen) words+=(--timeout 10) ;;
    stop) words+=(--steps 100000) ;;
    cut) words+=(--steps 100000) ;;
    resume) words+=(--out "out/$name") options+=(--set "checkpoints=out/$name/step-{step}.pt" --set 'resume=--resume {checkpoint}' --set failure.max_restarts=1 --set checkpoints.settle=0.3s) ;;
    esac
    [ "$fault" = frozen ] && words+=(--steps 100000)
    [ "$place" = trainer ] && words+=(--trainer)
    if [ "$place" = torchrun ]; then
        options=(--processes node --nodes host1)
        wanted_rank=0
        words=("$PEER/bin/torchrun" --nnodes '{nnodes}' --nproc_per_node 2 --node_rank '{node_rank}' --master_addr '{master_addr}' --master_port '{master_port}' "${words[@]:1}")
    fi
    "$dtrun" run --detach --name "$name" --set grace_seconds=3 "${options[@]}" -- "${words[@]}" >"$net/out" 2>&1 || fail "start: $(cat "$net/out")"
    case $fault in stop | cut | frozen) await 90 past "$name" 3 ;; esac
    case $fault in
    stop) "$dtrun" stop "$name" >"$net/out" 2>&1 ;;
    cut) "$net_sh" cut "$net" host2 ;;
    frozen) kill -STOP "$(if [ "$place" = two ]; then program_on $host; else "$dtrun" status "$name" --json | python3 -c "import json,sys; print(json.load(sys.stdin)['runs'][0]['ranks'][$rank]['pid'])" 2>/dev/null || program_on $host; fi)" ;;
    esac
    timeout 150 "$dtrun" wait "$name" >"$net/out" 2>&1 || code=$?
    [ "$fault" = cut ] && "$net_sh" heal "$net" host2 && drop_masters && sleep 8 && "$dtrun" stop "$name" >"$net/out" 2>&1
    read -r state reason < <("$dtrun" show "$name" --json | python3 -c 'import json,sys; o=json.load(sys.stdin); print(o["state"], o["reason"])')
    wanted=$(fault_of "$fault")
    case $fault in
    thread) [ "$state" = finished ] && "$dtrun" logs "$name" | grep -q "KeyError: 'in a thread'" && ok=yes ;;
    resume) [ "$state" = finished ] && "$dtrun" logs "$name" | grep -q "rank 1 continues at step 4" && ok=yes ;;
    stop) [ "$state" = stopped ] && case $reason in "$wanted"*) ok=yes ;; esac ;;
    cut) case $reason in *host2*) ok=yes ;; esac ;;
    frozen) case $reason in *" on $host $wanted"*) ok=yes ;; esac ;;
    *) case $reason in "rank $wanted_rank on $host "*"$wanted"*) ok=yes ;; esac ;;
    esac
    [ $code = 124 ] && "$dtrun" stop --now "$name" >"$net/out" 2>&1
    local left
    left=$(left_on_hosts | wc -l)
    seen[$fault]=$((${seen[$fault]:-0} + 1))
    [ $ok = yes ] && right[$fault]=$((${right[$fault]:-0} + 1))
    [ "$left" = 0 ] && clean[$fault]=$((${clean[$fault]:-0} + 1))
    echo "$(date +%T) $fault $place rank $rank: right=$ok left=$left: $state $reason"
}
table() {
    echo "| fault | times | cause right | nothing left |"
    echo "|---|---|---|---|"
    for fault in $all; do
        [ -n "${seen[$fault]:-}" ] && echo "| $fault | ${seen[$fault]} | ${right[$fault]:-0} | ${clean[$fault]:-0} |"
    done
}
for ((round = 0; round < rounds; round++)); do
    for fault in ${FAULTS:-$all}; do
        [ $(($(date +%s) - began)) -lt "$seconds" ] || break 2
        place=two
        [ $((round % 2)) = 1 ] && place=one
        [ $fault = cut ] && place=two
        [ $((round % 5)) = 3 ] && case $fault in exception | message | stop) place=torchrun ;; exit0 | sigkill | segv) place=trainer ;; esac
        provoke $fault $place
    done
    table
done
table
