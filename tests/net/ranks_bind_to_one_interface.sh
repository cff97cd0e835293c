#!/usr/bin/env bash
# Nodes with two networks: ranks listen only on the chosen one, given by the name of the interface or by subnet; by
# default on the one that ssh used. A network on which the nodes cannot connect is found before the start.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
for i in 1 2; do
    on host$i ip addr add 203.0.113.$i/24 dev eth0
    on host$i ip addr add fd5a:17::$i/64 dev eth0 nodad
    on host$i ip link add lonely type veth peer name end
    on host$i ip link set end up
    on host$i ip addr add 198.51.100.$i/24 dev lonely
    on host$i ip link set lonely up
done
recipe <<'END'
schedule: {kind: cosine, warmup_steps: 5, steps: 1000000}
checkpoint: {every: 0}
evaluate: {every: 0, sequences: 32}
END
address() { sed 's/:[0-9]*$//' | sort -u | xargs; }
talkers() { on host1 ss -Htn state established | awk '$3 !~ /:22$/ && $3 !~ /^127\./ {print $3}' | address; }
# Ranks stop listening once all are connected: checked from before the launch on.
watch_listeners() {
    touch "$net/watching"
    on host1 sh -c 'while [ -e "$1" ]; do ss -Htln; done' sh "$net/watching" >"$net/listeners" &
    watcher=$!
}
listeners() { awk '$4 !~ /:22$/ {print $4}' "$net/listeners" | address; }
# Ranks listen for milliseconds, which a check may miss: then it is repeated.
run() { # name wanted-address options...
    local wanted=$2 try name seen=
    for try in 1 2 3 4 5; do
        name=$1-$try
        watch_listeners
        "$dtrun" launch --detach "$net/launch/r.yaml" --set "name=$name" "${@:3}" >"$net/out" 2>&1 ||
            { fail "$name: $(cat "$net/out")"; exit 1; }
        await 60 past "$name" 5
        rm "$net/watching"
        wait $watcher
        seen=$(listeners)
        is "addresses that $name talks on" "$(talkers)" "$wanted"
        "$dtrun" stop --now "$name" >/dev/null 2>&1
        [ -z "$seen" ] || break
    done
    is "addresses that $1 listens on" "$seen" "$wanted"
}

own=$(on host1 ip -4 -o addr show eth0 | awk 'NR == 1 {sub("/.*", "", $4); print $4}')
run unsaid "$own"
run by-subnet 203.0.113.1 --set network.interface=203.0.113.0/24
run by-strategy 203.0.113.1 --set network.interface=203.0.113.0/24 --set strategy=fsdp
run by-ipv6 '[fd5a:17::1]' --set network.interface=fd5a:17::/64
run by-name "$own" --set network.interface=eth0
wants 3 "cannot connect to node" "$dtrun" launch "$net/launch/r.yaml" --set network.interface=lonely
wants 3 "has no address on 'ib0'" "$dtrun" launch "$net/launch/r.yaml" --set network.interface=ib0
