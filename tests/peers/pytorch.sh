#!/usr/bin/env bash
# Real programs under `command`, on two hosts that share no folder: PyTorch's DDP (examples/pytorch-ddp.yaml), the same
# under torchrun, and transformers' Trainer. Then faults: a process is killed, fails, hangs or loses its host. Checks
# whether the reason names it, whether the run continues, and what remains on the hosts.
#
#   DTRUN_BIN=build/test/bin PEER=/path/to/venv bash tests/peers/pytorch.sh [FAULTS]
#
# PEER has PyTorch, transformers and accelerate. Prints one line for each fault and a table at the end.
. "$(dirname "$0")/../net/lib.sh"
faults=${1:-20}
: "${DTRUN_BIN:?the folder of the programs}" "${PEER:?the folder of a virtual environment with torch, transformers and accelerate}"
hosts 2 apart
cp -r examples "$net/launch/examples"
sed "s/^        step += 1\$/&\n        if step == 120 and rank == 3:\n            raise ValueError('as asked')/" \
    examples/pytorch_ddp.py >"$net/launch/examples/pytorch_ddp_raises.py"
python=$PEER/bin/python3
left_on_hosts() {
    local host
    for host in host1 host2; do
        "$net_sh" pids "$net" "$host" | xargs -r ps -o args= -p | grep -E 'pytorch_ddp|huggingface_trainer|torchrun|dtrun-engine'
    done
}
go() { # name code recipe options...
    wants "$2" "" "$dtrun" launch --wait "$net/launch/examples/$3.yaml" --set name="$1" \
        --set 'nodes=[host1, host2]' --set processes=2 --set grace_seconds=5 "${@:4}"
}
ddp="$python pytorch_ddp.py --out out/{run} --lr {args.lr}"

start=$(date +%s%N)
go ddp 0 pytorch-ddp --set "command=$ddp"
echo "DDP, 500 steps on two hosts of two processes: $((($(date +%s%N) - start) / 1000000)) ms"
is "steps of DDP" "$(value ddp "o['step']")" 500
[ "$("$dtrun" checkpoints ddp | grep -c step-)" -eq 10 ] || fail "not ten checkpoints: $("$dtrun" checkpoints ddp)"
wants 0 "" "$dtrun" launch --wait "$net/launch/examples/torchrun.yaml" --set name=torchrun \
    --set 'nodes=[host1, host2]' --set grace_seconds=5 --set "command=$PEER/bin/torchrun --nnodes {nnodes} \
--nproc_per_node 2 --node_rank {node_rank} --master_addr {master_addr} --master_port {master_port} pytorch_ddp.py --out out/{run}"
is "steps under torchrun" "$(value torchrun "o['step']")" 500
go trainer 0 huggingface-trainer --set "command=$python huggingface_trainer.py --out out/{run} --lr {args.lr}" \
    --set nodes=host1
is "steps of the Trainer" "$(value trainer "o['step']")" 60
[ "$("$dtrun" checkpoints trainer | grep -c checkpoint-)" -eq 3 ] || fail "not three: $("$dtrun" checkpoints trainer)"

# Two learning rates.
cat "$net/launch/examples/pytorch-ddp.yaml" - >"$net/launch/examples/swept.yaml" <<END
sweep: {args.lr: [1e-3, 1e-4]}
END
go swept 0 swept --set "command=$ddp --steps 100" --set nodes=host1

is "what is left on the hosts" "$(left_on_hosts)" ""

# --- faults
ranks_of() { # processes of the run's program on a host
    "$net_sh" pids "$net" "$1" | xargs -r ps -o pid=,args= -p | awk '/[p]ytorch_ddp/ && !/dtrun/ { print $1 }'
}
declare -A seen right
kinds=(kill segv raise stop cut freeze)
for ((i = 0; i < faults; i++)); do
    kind=${kinds[i % ${#kinds[@]}]} name=fault$i
    options=(--set "command=$ddp --steps 100000")
    [ "$kind" = raise ] && options=(--set "command=${ddp/ddp.py/ddp_raises.py} --steps 100000")
    wants 0 "" "$dtrun" launch --detach "$net/launch/examples/pytorch-ddp.yaml" --set name=$name \
        --set 'nodes=[host1, host2]' --set processes=2 --set grace_seconds=3 --set failure.max_restarts=1 \
        --set nodes_min=1 "${options[@]}"
    await 60 past $name 60
    victim=$(ranks_of host2 | head -n $((1 + RANDOM % 2)) | tail -n 1)
    verdict="" ok=no
    case $kind in
    kill) kill -KILL "$victim"; text="on host2 was killed by signal 9" ;;
    segv) kill -SEGV "$victim"; text="on host2 was killed by signal 11" ;;
    raise) text="ValueError: as asked" ;;
    stop) "$dtrun" stop $name >"$net/out" 2>&1; text="stopped by request" ;;
    cut) "$net_sh" cut "$net" host2; text="host2" ;;
    freeze) kill -STOP "$victim"; sleep 3; "$dtrun" stop $name >"$net/out" 2>&1; text="stopped by request" ;;
    esac
    case $kind in
    stop | freeze) await 60 is_now $name stopped; verdict=$("$dtrun" show $name --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["reason"])') ;;
    *)
        await 120 in_attempt $name 2
        verdict=$("$dtrun" logs $name 2>/dev/null | grep -o 'attempt 1 failed: .*' | head -n 1)
        [ "$kind" = raise ] || await 120 past $name 80
        "$dtrun" stop $name >"$net/out" 2>&1
        ;;
    esac
    case $verdict in *"$text"*) ok=yes ;; esac
    [ "$kind" = cut ] && "$net_sh" heal "$net" host2 && drop_masters && sleep 8
    "$dtrun" stop $name >"$net/out" 2>&1
    left=$(left_on_hosts | wc -l)
    [ "$left" -eq 0 ] || ok=no
    seen[$kind]=$((${seen[$kind]:-0} + 1))
    [ $ok = no ] || right[$kind]=$((${right[$kind]:-0} + 1))
    echo "$kind: right=$ok left=$left: $verdict"
done
echo "| fault | times | verdict right, nothing left |"
echo "|---|---|---|"
for kind in "${kinds[@]}"; do
    echo "| $kind | ${seen[$kind]:-0} | ${right[$kind]:-0} |"
done
