#!/usr/bin/env bash
# Two nodes with the same private address behind two jump hosts (other HostKeyAlias, other ProxyJump) are two
# machines: a run on one of them right after a run on the other does not reach the wrong machine.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
id=dt${net##*.}
leaf() { # name number: a machine with the address 192.168.50.1 that only host<number> reaches
    local name=$1 space=$id-$1 jump=$id-$2
    ip netns add "$space"
    ip -n "$jump" link add "${id}j" type veth peer name eth0 netns "$space"
    ip -n "$jump" addr add 192.168.50.2/24 dev "${id}j"
    ip -n "$jump" link set "${id}j" up
    ip -n "$space" link set lo up
    ip -n "$space" addr add 192.168.50.1/24 dev eth0
    ip -n "$space" link set eth0 up
    mkdir "$net/$name"
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$net/$name/key"
    sed "s|$net/host1|$net/$name|; s|^ListenAddress.*|ListenAddress 192.168.50.1|" "$net/host1/sshd_config" |
        sed "s|$net/host1|$net/$name|g" >"$net/$name/sshd_config"
    cp "$net/id.pub" "$net/$name/authorized_keys"
    echo "$name $(cut -d' ' -f1,2 "$net/$name/key.pub")" >>"$net/known_hosts"
    printf 'Host %s\n    HostName 192.168.50.1\n    ProxyJump host%s\n    HostKeyAlias %s\n' "$name" "$2" "$name" \
        >>"$net/ssh_config"
    nsenter --net="/run/netns/$space" unshare -m -u bash -c '
        set -e
        mount --make-rprivate /
        hostname "$1"
        mount -t tmpfs -o size=512m,mode=0700 tmpfs /root
        for hidden in "$4" "$5"; do mount -t tmpfs -o size=64m tmpfs "$hidden"; done
        cd /
        env -i PATH="$PATH" "$3" -f "$2/sshd_config" -E "$2/sshd.log"
    ' net "$name" "$net/$name" "$(PATH=$PATH:/usr/sbin command -v sshd)" "$PWD" "$net/launch"
}
answers() { ssh -o BatchMode=yes -o ControlPath=none "$1" hostname 2>/dev/null; }

leaf west 1
leaf east 2
for name in west east; do
    for _ in $(seq 100); do [ "$(answers $name)" != $name ] || break; sleep 0.05; done
    is "what ssh $name reaches" "$(answers $name)" $name
done

usual='nodes: [east]'
recipe <<'END'
ranks: 1
END
launch on-east
is "what a run on east leaves on west" "$(ssh -o ControlPath=none west 'ls -A ~/.cache ~/.local 2>/dev/null')" ""
launch on-west --set 'nodes=[west]'
for name in east west; do
    ssh -o ControlPath=none "$name" 'test -d ~/.cache/dtrun' || fail "the run on $name did not go to $name"
done
