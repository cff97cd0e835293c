#!/usr/bin/env bash
# A Slurm cluster for the tests: a real slurmctld, and a real slurmd on every test host of tests/net/net.sh, with a
# munge key and a configuration in one folder. A Slurm installation of this machine is not touched: ports, sockets and
# folders are different.
#
#   slurm=$(tests/slurm/slurm.sh up 2) || exit $?   two nodes; prints the cluster's folder.
#                                                   exits with 77 and one line if it cannot be made
#   . "$slurm/env"                                  SLURM_CONF, XDG_*, nodes=N, net=FOLDER
#   tests/slurm/slurm.sh log $slurm                 the logs of the daemons
#   tests/slurm/slurm.sh down $slurm                removes all of it, in any state
#
# Without namespaces there is one node, this machine, whatever was requested. Needs slurmctld, slurmd, slurm-client,
# munge, and root.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
net_sh=$here/../net/net.sh
export PATH=$PATH:/usr/sbin:/usr/local/sbin
skip() { echo "skipped: $*" >&2; exit 77; }
die() { echo "slurm.sh: $*" >&2; exit 1; }

free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 20); do
        (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

show_logs() {
    local file
    for file in "$slurm"/*.log; do
        echo "--- ${file##*/}"
        tail -n 30 "$file"
    done
}

# --- the parts

start_munge() {
    head -c 1024 /dev/urandom >"$slurm/munge.key"
    chmod 400 "$slurm/munge.key"
    munged --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
        --log-file="$slurm/munged.log" --seed-file="$slurm/munge.seed" --force 2>"$slurm/munged.err" ||
        die "munged does not start: $(tail -n 3 "$slurm/munged.err" "$slurm/munged.log" 2>/dev/null)"
}

write_conf() { # kind nodes
    local kind=$1 nodes=$2 i host=localhost address=127.0.0.1
    host=$(hostname -s)
    [ "$kind" = loopback ] || address=$net_address
    cat >"$slurm/slurm.conf" <<END
ClusterName=dtrun
SlurmctldHost=$host($address)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool-%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmctldTimeout=60
SlurmdTimeout=60
SchedulerParameters=sched_interval=2
END
    if [ "$kind" = loopback ]; then
        echo "NodeName=$host NodeAddr=127.0.0.1 CPUs=4" >>"$slurm/slurm.conf"
    else
        for i in $(seq "$nodes"); do
            echo "NodeName=host$i NodeAddr=${net_address%.*}.$((10 + i)) CPUs=4" >>"$slurm/slurm.conf"
        done
    fi
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=60 DefaultTime=10" >>"$slurm/slurm.conf"
    : >"$slurm/cgroup.conf"
}

await_idle() { # nodes
    local i
    for i in $(seq 150); do
        [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq "$1" ] && return
        sleep 0.2
    done
    show_logs >&2
    die "the nodes do not come up: $(sinfo -N -l 2>&1)"
}

up() { # count
    local count=$1 tool i
    [ "$(id -u)" -eq 0 ] || skip "a Slurm cluster of one's own needs root"
    for tool in slurmctld slurmd srun sbatch munged; do
        command -v $tool >/dev/null || skip "no $tool here (packages slurm-wlm and munge)"
    done
    local folder
    folder=$("$net_sh" up "$count") || exit $?
    slurm=$folder/slurm
    mkdir -m 0755 "$slurm" "$slurm/state"
    trap '[ $? -eq 0 ] || down' EXIT
    . "$folder/env"
    export SLURM_CONF=$slurm/slurm.conf
    [ "$net_kind" = namespace ] || count=1
    write_conf "$net_kind" "$count"
    start_munge
    slurmctld -c -f "$SLURM_CONF" </dev/null >/dev/null 2>"$slurm/slurmctld.err" ||
        die "slurmctld does not start: $(tail -n 5 "$slurm/slurmctld.err")"
    if [ "$net_kind" = namespace ]; then
        for i in $(seq "$count"); do
            # Steps inherit the launch machine's XDG_CACHE_HOME: on the node it is an empty folder.
            "$net_sh" on "$net" "host$i" mount -o remount,size=512m "$net/launch"
            "$net_sh" on "$net" "host$i" env -i PATH="$PATH" slurmd -f "$SLURM_CONF" -N "host$i" \
                </dev/null >/dev/null 2>>"$slurm/slurmd.err" || die "slurmd does not start: $(cat "$slurm/slurmd.err")"
        done
    else
        slurmd -f "$SLURM_CONF" </dev/null >/dev/null 2>"$slurm/slurmd.err" ||
            die "slurmd does not start: $(cat "$slurm/slurmd.err")"
    fi
    await_idle "$count"
    {
        cat "$folder/env"
        echo "export SLURM_CONF=$SLURM_CONF"
        echo "slurm=$slurm nodes=$count"
    } >"$slurm/env"
    trap - EXIT
    echo "$slurm"
}

down() {
    local file pid
    SLURM_CONF=$slurm/slurm.conf timeout 10 scancel --user=root --quiet 2>/dev/null || true
    for file in "$slurm"/slurmd-*.pid "$slurm/slurmctld.pid" "$slurm/munged.pid"; do
        [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
    done
    for file in "$slurm"/slurmd-*.pid "$slurm/slurmctld.pid" "$slurm/munged.pid"; do
        for _ in $(seq 50); do [ -s "$file" ] || break; sleep 0.1; done
        [ ! -s "$file" ] || kill -9 "$(cat "$file")" 2>/dev/null || true
    done
    "$net_sh" down "${slurm%/slurm}"
}

command=${1:-}
shift || true
case $command in
up) up "${1:?how many}" ;;
down | log)
    slurm=${1:-}
    [ -f "$slurm/slurm.conf" ] || die "no cluster in '$slurm'"
    if [ "$command" = down ]; then down; else show_logs; fi ;;
*) die "usage: slurm.sh up N | log FOLDER | down FOLDER" ;;
esac
