#!/usr/bin/env bash
# Faults on the way to a node that is reached through a jump host or a ProxyCommand: the message names the faulty
# machine and the cause, which is never ssh's last line.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
node=$(address host1) jump=$(address host2)
ssh-keygen -q -t ed25519 -N '' -C other -f "$net/other"
printf 'Only for staff. Permission denied (by law). Connection refused to others.\n' >"$net/banner"
echo "Banner $net/banner" >>"$net/host1/sshd_config"
kill -HUP "$(cat "$net/host1/sshd.pid")"
mv "$net/ssh_config" "$net/common"
host() { # name [HostName JUMP [lines]]: a node behind JUMP, or a jump host
    printf 'Host %s\n' "$1"
    shift
    printf '    %s\n' "$@"
}
{
    sed "s|^IdentityFile .*||" "$net/common"
    host through "HostName $node" "ProxyJump host2"
    host port "HostName $node" "Port 1" "ProxyJump host2"
    host noroute "HostName 192.0.2.9" "ProxyJump host2"
    host noname "HostName no-such.invalid" "ProxyJump host2"
    host key "HostName $node" "HostKeyAlias never-seen" "ProxyJump host2"
    host denied "HostName $node" "IdentityFile $net/other" "ProxyJump host2"
    host j-port "HostName $jump" "Port 1"
    host j-noname "HostName no-such-jump.invalid"
    host j-key "HostName $jump" "HostKeyAlias never-seen"
    host j-denied "HostName $jump" "IdentityFile $net/other"
    host j-nested "HostName $jump" "ProxyJump j-port"
    for kind in port noname key denied; do
        host "by-$kind" "HostName $node" "ProxyJump j-$kind"
    done
    host by-two "HostName $node" "ProxyJump host2,j-port"
    host by-nested "HostName $node" "ProxyJump j-nested"
    host command-fails "HostName $node" "ProxyCommand /bin/false"
    host command-missing "HostName $node" "ProxyCommand /no/such/program %h %p"
    host command-says "HostName $node" "ProxyCommand sh -c 'echo \"nc: port %p: Connection refused\" >&2; exit 1'"
    printf 'Host * !denied !j-denied\n    IdentityFile %s\n' "$net/id"
} >"$net/ssh_config"
recipe <<'END'
nodes: [through, port, noroute, noname, key, denied, by-port, by-noname, by-key, by-denied, by-two, by-nested, command-fails, command-missing, command-says]
END
says() { # node text...
    local node=$1 text line
    shift
    line=$(grep -F "node '$node': " "$net/table")
    for text; do
        case $line in
        *"$text"*) ;;
        *) fail "of '$node' doctor says '$line', not '$text'" ;;
        esac
    done
}
"$dtrun" doctor "$net/launch/r.yaml" >"$net/table" 2>&1 </dev/null && fail "doctor finds nothing"
grep -qE '^through +good' "$net/table" || fail "through is not good: $(cat "$net/table")"
says port "jump host 'host2': it cannot connect there: nothing listens" "Connection refused)"
says noroute "jump host 'host2': it cannot connect there"
says noname "jump host 'host2': it cannot resolve that name"
says key "'key': its host key is not known here"
says denied "'denied': it refuses your ssh keys" "publickey)"
says by-port "jump host 'j-port' cannot be used: nothing listens on its ssh port" "port 1: Connection refused)"
says by-noname "jump host 'j-noname' cannot be used: its name cannot be resolved"
says by-key "jump host 'j-key' cannot be used: its host key is not known here" "'ssh j-key'"
says by-denied "jump host 'j-denied' cannot be used: it refuses your ssh keys" "'ssh-copy-id j-denied'"
says by-two "jump host 'host2': it cannot connect there" "(to jump host 'j-port')"
says by-nested "jump host 'j-port' cannot be used: nothing listens"
says command-fails "ProxyCommand '/bin/false'" "ended without a message"
says command-missing "ProxyCommand '/no/such/program" "No such file or directory"
says command-says "nc: port 22: Connection refused"
! grep -F "journalctl" "$net/table" || fail "a node's own sshd is blamed"

# A jump host that accepts the login and forwards nothing.
echo "AllowTcpForwarding no" >>"$net/host2/sshd_config"
kill -HUP "$(cat "$net/host2/sshd.pid")"
forbidden() {
    drop_masters
    "$dtrun" doctor "$net/launch/r.yaml" --set nodes=through >"$net/table" 2>&1 </dev/null && return 1
    grep -qF "jump host 'host2': it does not forward connections there: allow it" "$net/table"
}
await 10 forbidden
