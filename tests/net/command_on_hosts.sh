#!/usr/bin/env bash
# A recipe with a `command` on two hosts over real ssh: the processes meet at MASTER_ADDR, metrics and the secret
# arrive, a failure and a missing folder name their host, a stop leaves nothing there, and a lost host is left out.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
mkdir "$net/program"
cat >"$net/program/meet.py" <<'PY'
import json, os, signal, socket, subprocess, sys, time
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
place = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
print('host', socket.gethostname(), 'rank', rank, 'of', world, 'local', os.environ['LOCAL_RANK'], 'of',
      os.environ['LOCAL_WORLD_SIZE'], 'node', os.environ['NODE_RANK'], 'key', len(os.environ['KEY']))
if rank == 0:
    with socket.create_server(('', place[1]), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        met = [server.accept()[0].recv(100).decode() for _ in range(world - 1)]
    print(json.dumps({'step': 1, 'loss': sum(map(int, met))}))
else:
    while True:
        try:
            with socket.create_connection(place, 30) as peer:
                peer.sendall(str(rank).encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
if 'stay' in sys.argv:
    subprocess.Popen(['sleep', '8642'], start_new_session=True)
    step = 1
    while True:
        time.sleep(0.2)
        step += 1
        if rank == 0:
            print(json.dumps({'step': step, 'loss': world}))
if 'break' in sys.argv and rank == world - 1:
    os.kill(os.getpid(), signal.SIGSEGV)
if 'break' in sys.argv:
    time.sleep(60)
PY
cat >"$net/launch/meet.yaml" <<END
nodes: "host[1-2]"
command: python3 meet.py
workdir: $net/program
processes: 2
metrics: json
env: {KEY: "\${env:NET_TEST_KEY}"}
grace_seconds: 2
END
export NET_TEST_KEY=hush-hush-hush
launched() { # code text name options...
    wants "$1" "$2" "$dtrun" launch --wait "$net/launch/meet.yaml" --set "name=$3" "${@:4}"
}
left_on_hosts() {
    for host in host1 host2; do "$net_sh" pids "$net" "$host" | xargs -r ps -o args= -p | grep -E 'meet.py|sleep 8642|dtrun-engine'; done
}

# No engine goes to the hosts: what they receive is the agent and the folder, and the agent's child is the program.
received() { on "$1" cat /proc/net/dev | awk -F'[: ]+' '/:/ && !/ lo:/ {sum += $3} END {printf "%d", sum}'; }
size_there() { ssh "$1" "find / -xdev -path '*/.cache/dtrun/*' -type f -printf '%s\n'" | awk '{sum += $1} END {print sum + 0}'; }
most=$(($(stat -c %s "$DTRUN_BIN/dtrun-agent") + 1500000)) # the engine has 11 MB, its libraries 50 MB
before=$(received host1)
DTRUN_ENGINE=$net/none launched 0 "" met
sent=$(($(received host1) - before))
[ "$sent" -lt "$most" ] || fail "host1 received $sent bytes"
[ "$(size_there host1)" -lt "$most" ] || fail "$(size_there host1) bytes are in the cache of host1"
is "what is called like the engine on host1" "$(ssh host1 'find ~ -name "*engine*" -o -name bundles')" ""
wants 0 "not needed" "$dtrun" doctor "$net/launch/meet.yaml"
echo "a command sends $sent bytes to a host, of which the agent has $(stat -c %s "$DTRUN_BIN/dtrun-agent")"
is "what rank 0 got" "$(value met "o['loss']")" "6.0"
"$dtrun" logs met >"$net/out"
for rank in 0 1 2 3; do
    grep -q "host host$((rank / 2 + 1)) rank $rank of 4 local $((rank % 2)) of 2 node $((rank / 2)) key 14" "$net/out" ||
        fail "rank $rank: $(cat "$net/out")"
done
! grep -rqa hush-hush "$net/launch/state" || fail "the secret is in the history"
launched 1 "rank 3 on host2 was killed by signal 11 (SIGSEGV)" broken --set 'command=python3 meet.py break'
ssh host1 'mkdir only-here'
launched 1 "on host2 exited with code 1: cannot run in the folder '/root/only-here' of this node" missing \
    --set workdir=/root/only-here --set 'command=sleep 30'
wants 0 "" "$dtrun" launch --detach "$net/launch/meet.yaml" --set name=stopped --set 'command=python3 meet.py stay'
stays() { [ "$(value "$1" "o['step']")" -ge 3 ]; }
await 15 stays stopped
[ "$(left_on_hosts | grep -c 'sleep 8642')" -eq 4 ] || fail "there is not what should be stopped"
for host in host1 host2; do # the program is the agent's child
    parents=$("$net_sh" pids "$net" "$host" | xargs -r ps -o ppid=,args= -p | awk '/meet.py/ {print $1}')
    for parent in $parents; do
        [[ $(ps -o args= -p "$parent") == *agent*" serve "* ]] || fail "the parent of a program on $host is '$(ps -o args= -p "$parent")'"
    done
    is "the programs on $host" "$(wc -w <<<"$parents")" 2
done
wants 0 "none of its processes are left" "$dtrun" stop stopped
is "what a stop leaves on the hosts" "$(left_on_hosts)" ""

# A smoke test on the recipe's own nodes: the hosts get a copy of the folder, and nothing is left there.
mkdir "$net/launch/here" "$net/tmp"
cat >"$net/launch/here/run.sh" <<'END'
mkdir -p out
for step in $(seq 1 2000); do
    [ "$RANK" != 0 ] || { echo "{\"step\": $step, \"loss\": 1}"; echo "$step" >"out/save-$step"; }
    sleep 0.2
done
END
cat >"$net/launch/here/r.yaml" <<'END'
nodes: [host1, host2]
processes: 1
command: sh run.sh
metrics: json
checkpoints: {path: "out/save-{step}", settle: 0.2}
END
before=$(for host in host1 host2; do ssh $host 'ls /root/.local/state/dtrun/nodes'; done)
wants 0 "2 processes, running" env TMPDIR="$net/tmp" "$dtrun" smoke --here "$net/launch/here/r.yaml"
for text in 'good    saves' 'no rank runs on this machine' 'no process left'; do
    grep -q "$text" "$net/out" || fail "smoke --here does not say '$text': $(cat "$net/out")"
done
is "what a smoke test leaves on the hosts" "$(for host in host1 host2; do ssh $host 'ls /root/.local/state/dtrun/nodes'; done)" "$before"
is "what a smoke test leaves here" "$(ls "$net/tmp")$(ls "$net/launch/here" | tr '\n' ' ')" "r.yaml run.sh "

# A host that is gone is left out if the recipe allows fewer: the next attempt has two processes.
wants 0 "" "$dtrun" launch --detach "$net/launch/meet.yaml" --set name=lost --set 'command=python3 meet.py stay' \
    --set nodes_min=1 --set failure.max_restarts=1
await 15 stays lost
# the program of rank 0 does not notice by itself, unlike a collective: it is halted, and makes no step
"$net_sh" pids "$net" host1 | xargs -r ps -o pid=,args= -p | awk '/meet.py/ { print $1 }' | xargs kill -STOP
"$net_sh" cut "$net" host2
again() { [ "$(value lost "o['attempt']")" -eq 2 ] && [ "$(value lost "o['loss']")" = 2.0 ]; }
await 60 again || fail "no attempt without host2: $("$dtrun" show lost)"
# a stop reports that host2 has proved nothing, until it can be asked
wants 5 "host2" "$dtrun" stop lost
! grep -q "verified later\|none of its processes are left" "$net/out" || fail "a proof without host2: $(cat "$net/out")"
"$net_sh" heal "$net" host2
wants 0 "no processes are left" "$dtrun" stop lost
is "what a stop leaves on the hosts" "$(left_on_hosts)" ""
