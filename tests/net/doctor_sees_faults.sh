#!/usr/bin/env bash
# dtrun doctor, and the first phase of a launch: the properties of the nodes, and each fault with its remedy.
. "$(dirname "$0")/lib.sh"
hosts 2
recipe() { # nodes gpus
    seq 20000 >"$net/launch/corpus.txt"
    cat >"$net/launch/r.yaml" <<END
name: doctor
nodes: $1
ranks: 2
strategy: ddp
model: {kind: gpt2, layers: 1, heads: 1, embed: 16, dropout: 0}
data: {train: corpus.txt, tokens: char}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 10}
END
}
doctor() { # code text
    local got=0
    "$dtrun" doctor "$net/launch/r.yaml" >"$net/out" 2>&1 || got=$?
    [ $got -eq "$1" ] || fail "doctor ends with $got, wanted $1: $(cat "$net/out")"
    grep -qF -- "$2" "$net/out" || fail "doctor does not say '$2': $(cat "$net/out")"
}
json() { # expression over o
    "$dtrun" doctor --json "$net/launch/r.yaml" >"$net/json"
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$net/json" "$1" ||
        fail "not so: $1: $(cat "$net/json")"
}

nodes='host1, host2'
[ "$net_kind" = namespace ] || nodes=host1 # the others are the same machine
recipe "[$nodes]"
start=$(date +%s%N)
doctor 0 "will be copied"
took=$((($(date +%s%N) - start) / 1000000))
echo "doctor, nodes with nothing on them ($nodes): $took ms"
json "o['version'] == 1 and o['good'] and ', '.join(n['node'] for n in o['nodes']) == '$nodes'"
json 'all(n["reached"] and n["good"] and abs(n["clock_skew_ms"]) < 2000 for n in o["nodes"])'
json 'all(n["facts"][k] for n in o["nodes"] for k in ("arch", "glibc", "cores", "memory_free_bytes", "state_free_bytes"))'

# A node that cannot be reached, next to a good one; a launch ends at once and leaves nothing.
printf 'Host deaf\n  HostName 127.0.0.1\n  Port 1\n' >>"$net/ssh_config"
recipe '[host1, deaf]'
doctor 3 "nothing listens on its ssh port"
grep -qE "^deaf +not reached( +-){9}$" "$net/out" || fail "doctor claims to know of deaf: $(cat "$net/out")"
json 'not o["good"] and [n["good"] for n in o["nodes"]] == [True, False] and o["faults"][0]["node"] == "deaf"'
"$dtrun" launch --wait "$net/launch/r.yaml" >"$net/out" 2>&1
[ $? -eq 3 ] || fail "a launch to a deaf node does not end with 3: $(cat "$net/out")"
grep -q "nothing listens" "$net/out" || fail "a launch to a deaf node says: $(cat "$net/out")"
[ "$("$dtrun" list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"]))')" = 0 ] ||
    fail "a launch that could not be leaves a run"

# A connection that earlier commands left open proves nothing: the doctor opens its own. Without host keys and without a
# login key every node is faulty, and none is asked over the connection of another command.
recipe "[$nodes]"
doctor 0 "good"
mv "$net/known_hosts" "$net/known"
touch "$net/known_hosts"
doctor 3 "host key"
json 'not o["good"] and not any(n["reached"] for n in o["nodes"])'
mv "$net/known" "$net/known_hosts"
doctor 0 "good"
for host in ${nodes//,/}; do mv "$net/$host/authorized_keys" "$net/$host/kept"; done
doctor 3 "refuses your ssh keys"
json 'not o["good"] and not any(n["reached"] for n in o["nodes"])'
for host in ${nodes//,/}; do mv "$net/$host/kept" "$net/$host/authorized_keys"; done

# A node that is cut off while its connection stands: neither doctor nor launch blames its login shell.
if [ "$net_kind" = namespace ]; then
    doctor 0 "good"
    tests/net/net.sh cut "$net" host1
    doctor 3 "node 'host1'"
    ! grep -q "login shell" "$net/out" || fail "a node that is cut off has a bad shell: $(cat "$net/out")"
    tests/net/net.sh heal "$net" host1
    doctor 0 "good"
    tests/net/net.sh cut "$net" host1
    "$dtrun" launch --wait "$net/launch/r.yaml" >"$net/out" 2>&1 && fail "a launch to a node that is cut off succeeds"
    grep -q "host1" "$net/out" || fail "a launch does not name the node: $(cat "$net/out")"
    ! grep -q "login shell" "$net/out" || fail "a launch blames the shell of a node that is cut off: $(cat "$net/out")"
    tests/net/net.sh heal "$net" host1
fi

# One machine under two names; a name given twice is an error of the recipe.
awk '/^Host host1$/ {print "Host again"; getline; print; getline; print}' "$net/ssh_config" >"$net/again"
cat "$net/again" >>"$net/ssh_config"
recipe '[host1, again]'
doctor 3 "'host1' and 'again' are the same machine"

# This machine under another name: reported, and accepted. (Loopback hosts are all this machine.)
if [ "$net_kind" = loopback ]; then
    recipe '[host1]'
    doctor 0 "is this machine"
fi

recipe '[host1, host2]'
"$dtrun" doctor --set gpus=4 "$net/launch/r.yaml" >"$net/out" 2>&1
[ $? -eq 0 ] && [ ! -e /proc/driver/nvidia ] && fail "GPUs that are not there are not missed"
"$dtrun" doctor --set network.interface=ib7 "$net/launch/r.yaml" >"$net/out" 2>&1
grep -q "has no address on 'ib7'" "$net/out" || fail "an interface that is not there: $(cat "$net/out")"

if [ "$net_kind" = namespace ]; then
    # Both nodes can be reached from here, but not from each other.
    json 'o["good"]'
    address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["nodes"][1]["address"])' "$net/json")
    on_host1() { tests/net/net.sh on "$net" host1 "$@"; }
    on_host1 ip route add prohibit "$address/32"
    doctor 3 "cannot connect to node"
    grep -q "network.interface" "$net/out" || fail "no remedy for nodes that do not meet"
    on_host1 ip route del prohibit "$address/32"
    doctor 0 "good"

    # A node that cannot run the check: not a fault of the network.
    case $(getent passwd "$(id -u)") in
    *bash)
        on_host1 sh -c 'cat >/root/.bashrc' <<'END'
case $BASH_EXECUTION_STRING in
*"node dial"*)
    echo "bash: fork: Cannot allocate memory" >&2
    exit 254 ;;
esac
END
        doctor 3 "node 'host1': cannot test its connections to the other nodes"
        grep -q "Cannot allocate memory" "$net/out" || fail "the cause is not said: $(cat "$net/out")"
        ! grep -q firewall "$net/out" || fail "a fork that fails is blamed on the firewall: $(cat "$net/out")"
        on_host1 rm /root/.bashrc ;;
    esac

    # A route that comes back during the check, like that of a link which was down until now.
    dials() { # pid
        tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -q "node dial $address"
    }
    way_comes_back() {
        local pid i
        for i in $(seq 400); do
            for pid in $(tests/net/net.sh pids "$net" host1); do
                dials "$pid" && on_host1 ip route del unreachable "$address/32" && return
            done
            sleep 0.05
        done
    }
    on_host1 ip route add unreachable "$address/32"
    way_comes_back &
    doctor 0 "good"
    wait
fi
