#!/usr/bin/env bash
# Nodes reached by IPv4 and by IPv6 in one run: ranks connect over the address family that all nodes have, whatever
# address ssh uses. Nodes that share none are refused before anything starts.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
if [ -z "$net_prefix6" ]; then
    echo "skipped: no IPv6 here"
    exit 77
fi
first=$net_prefix6::11 second=$net_prefix6::12
on host1 ip -6 -o addr show dev eth0 scope link >"$net/link"
link=$(awk '{sub("/.*", "", $4); print $4; exit}' "$net/link")%dt${net##*.}
ipv4() { sed -n "/^Host $1\$/,/^Host /s/ *HostName //p" "$net/ssh_config" | head -n 1; }
for pair in "$first host1" "$link host1" "$second host2"; do
    printf 'Host %s\n    HostKeyAlias %s\n' "${pair% *}" "$(ipv4 "${pair#* }")" >>"$net/ssh_config"
done
recipe <<'END'
schedule: {steps: 10}
checkpoint: {every: 0}
evaluate: 0
END
trains() { # name nodes
    wants 0 good "$dtrun" doctor "$net/launch/r.yaml" --set "nodes=$2"
    launch "$1" --set "nodes=$2"
    is "attempts of $1" "$(value "$1" 'o["attempt"]')" 1
}
trains global "[\"$first\", host2]"
trains link-local "[\"$link\", \"$second\"]"
trains turned "[host1, \"$second\"]"

# Each node has only one family: both share no address family.
on host1 ip addr flush dev eth0 scope global
on host1 ip addr add "$first/64" dev eth0 nodad
on host2 ip -6 addr del "$second/64" dev eth0
wants 3 "nodes 'host2' and '$first' cannot connect" "$dtrun" doctor "$net/launch/r.yaml" --set "nodes=[\"$first\", host2]"
grep -q "network.interface" "$net/out" || fail "no remedy: $(cat "$net/out")"
before=$("$dtrun" list --json --limit 0)
wants 3 "only an IPv6 address ($first)" "$dtrun" launch --wait "$net/launch/r.yaml" --set "nodes=[\"$first\", host2]"
is "runs after a launch that was refused" "$("$dtrun" list --json --limit 0)" "$before"
