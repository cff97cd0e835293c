#!/usr/bin/env bash
# A network of test hosts, each with a real sshd and without dtrun.
#
#   net=$(tests/net/net.sh up 2) || exit $?    host1, host2; prints the network's folder.
#                                              exits with 77 and one line if it cannot be made
#   . "$net/env"                               PATH with an ssh that knows the hosts, XDG_* in $net/launch
#   tests/net/net.sh cut $net host1            cuts its network: nothing passes in or out
#   tests/net/net.sh heal $net host1           connects it again
#   tests/net/net.sh on $net host1 CMD...      a command there, past ssh (namespaces only: as its root)
#   tests/net/net.sh pids $net host1           its processes, by their process ids here (loopback hosts: none are
#                                              listed)
#   tests/net/net.sh pid $net host1 PID        the process id here of the process that is PID there
#   tests/net/net.sh down $net                 removes all of it, in any state
#
# A host is a network namespace on a bridge (veth), a PID namespace whose process 1 is its sshd, a mount namespace and a
# host name. It sees its own processes only. It sees this machine's file system, with an empty /root (a small tmpfs) and
# without the folders of NET_HIDE (default: this repository and $net/launch): nothing is installed there. Where
# namespaces are not allowed, or with NET_KIND=loopback, the hosts are several sshd on ports of 127.0.0.1 each with its
# own home; then `cut` is not available, as 'kind' in the env says. Host N has $net_prefix6::(10 + N) too; net_prefix6
# is empty where there is no IPv6. Names and addresses belong to this run, so that several networks can exist at once.
# DTRUN_TEST_TIMES, if set, is also set for every command on the hosts. Needs openssh-server and, for namespaces, root
# and iproute2.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
die() { echo "net.sh: $*" >&2; exit 1; }

sshd=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v sshd || true)
ssh=$(command -v ssh || true)

# --- what this machine allows

can_namespaces() {
    [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null && command -v nsenter >/dev/null || return 1
    local name=dtry$$
    ip netns add $name 2>/dev/null || return 1
    local good=0
    ip link add $name type bridge 2>/dev/null && ip link add $name-a type veth peer name $name-b 2>/dev/null &&
        ip netns exec $name unshare -m -u -p --fork --mount-proc true 2>/dev/null && good=1
    ip link del $name-a 2>/dev/null || true
    ip link del $name 2>/dev/null || true
    ip netns del $name 2>/dev/null || true
    [ $good -eq 1 ]
}

# --- a host

write_sshd_config() { # host address port pid-file
    local dir=$net/$1
    mkdir -p "$dir"
    ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$dir/key"
    cat >"$dir/sshd_config" <<END
ListenAddress $2
Port $3
HostKey $dir/key
AuthorizedKeysFile $dir/authorized_keys
PidFile $4
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PermitUserEnvironment yes
LogLevel VERBOSE
END
    # agents there use the same limits as the supervisor here (runner/times.h)
    [ -z "${DTRUN_TEST_TIMES:-}" ] || echo "SetEnv DTRUN_TEST_TIMES=$DTRUN_TEST_TIMES" >>"$dir/sshd_config"
    cp "$net/id.pub" "$dir/authorized_keys"
    local place=$2
    [ "$3" = 22 ] || place="[$2]:$3"
    echo "$place $(cut -d' ' -f1,2 "$dir/key.pub")" >>"$net/known_hosts"
    cat >>"$net/ssh_config" <<END
Host $1
    HostName $2
    Port $3
END
}

await_sshd() { # host
    local i
    for i in $(seq 200); do
        [ -s "$net/$1/sshd.pid" ] && "$ssh" -F "$net/ssh_config" -o BatchMode=yes "$1" true 2>/dev/null && return
        sleep 0.05
    done
    die "the sshd of $1 does not answer: $(tail -n 3 "$net/$1/sshd.log" 2>/dev/null)"
}

up_namespace_host() { # index
    local host=host$1 space=$id-$1 address=$subnet.$((10 + $1))
    ip netns add "$space"
    ip link add "$space" type veth peer name "${space}p"
    ip link set "${space}p" netns "$space" name eth0
    ip link set "$space" master "$id" up
    ip -n "$space" link set lo up
    ip -n "$space" addr add "$address/24" dev eth0
    ip -n "$space" link set eth0 up
    [ -z "$prefix6" ] || ip -n "$space" addr add "$prefix6::$((10 + $1))/64" dev eth0 nodad
    write_sshd_config "$host" "$address" 22 none
    [ -z "$prefix6" ] || echo "ListenAddress ::" >>"$net/$host/sshd_config"
    # Only the network namespace is new: /sys and /etc/resolv.conf stay unchanged. The first unshare waits outside of
    # the host for the host's process 1, which becomes sshd.
    setsid unshare -p --fork --kill-child nsenter --net="/run/netns/$space" unshare -m -u bash -c '
        set -e
        mount --make-rprivate /
        mount -t proc proc /proc
        hostname "$1"
        mount -t tmpfs -o size=${NET_HOME_SIZE:-512m},mode=0700 tmpfs /root
        shift
        dir=$1 sshd=$2
        shift 2
        for hidden; do [ ! -d "$hidden" ] || mount -t tmpfs -o size=64m tmpfs "$hidden"; done
        cd /
        exec env -i PATH="$PATH" "$sshd" -D -f "$dir/sshd_config" -E "$dir/sshd.log"
    ' net "$host" "$net/$host" "$sshd" ${NET_HIDE:-$repo $net/launch} </dev/null >"$net/$host/start.log" 2>&1 &
    local outside=$! i
    for i in $(seq 200); do
        pgrep -P "$outside" >"$net/$host/sshd.pid" && break
        kill -0 "$outside" 2>/dev/null || die "cannot start $host: $(<"$net/$host/start.log")"
        sleep 0.05
    done
    await_sshd "$host"
}

up_loopback_host() { # index
    local host=host$1 port
    for port in $(shuf -i 20000-29999 -n 20); do
        (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
        write_sshd_config "$host" 127.0.0.1 "$port" "$net/$host/sshd.pid"
        break
    done
    mkdir -p -m 0700 "$net/$host/home"
    echo "environment=\"HOME=$net/$host/home\" $(cat "$net/id.pub")" >"$net/$host/authorized_keys"
    env -i PATH="$PATH" "$sshd" -f "$net/$host/sshd_config" -E "$net/$host/sshd.log" </dev/null >/dev/null 2>&1 ||
        die "cannot start $host"
    await_sshd "$host"
}

# --- commands

pick_subnet() { # no network uses two /24 of the benchmark range 198.18.0.0/15
    local number
    for number in $(shuf -i 0-511 -n 50); do
        subnet=198.$((18 + number / 256)).$((number % 256))
        ip addr add "$subnet.1/24" dev "$id" 2>/dev/null || continue
        [ "$(ip route show "$subnet.0/24" | wc -l)" -le 1 ] && return
        ip addr del "$subnet.1/24" dev "$id"
    done
    die "no free subnet"
}

up() { # count
    local count=$1 kind=${NET_KIND:-namespace} i
    [ -n "$ssh" ] || skip "no ssh here (package openssh-client)"
    [ -n "$sshd" ] || skip "no sshd here (package openssh-server)"
    if [ "$kind" = namespace ] && ! can_namespaces; then
        kind=loopback
        echo "namespaces are not allowed here: hosts are several sshd on 127.0.0.1" >&2
    fi
    net=$(mktemp -d /tmp/dtnet.XXXXXX) # short, because paths of sockets contain it
    trap '[ $? -eq 0 ] || down' EXIT
    id=dt${net##*.}
    mkdir -p -m 0700 "$net/run" "$net/launch" "$net/bin"
    [ -d /run/sshd ] || [ "$(id -u)" -ne 0 ] || mkdir -p -m 0755 /run/sshd
    ssh-keygen -q -t ed25519 -N '' -C net -f "$net/id"
    printf '%s\n' "$kind" >"$net/kind"
    cat >"$net/ssh_config" <<END
UserKnownHostsFile $net/known_hosts
GlobalKnownHostsFile /dev/null
IdentityFile $net/id
IdentitiesOnly yes
User $(id -un)
END
    printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$ssh" "$net/ssh_config" >"$net/bin/ssh"
    chmod 755 "$net/bin/ssh"
    cat >"$net/env" <<END
export PATH="$net/bin:\$PATH" XDG_RUNTIME_DIR="$net/run"
export XDG_STATE_HOME="$net/launch/state" XDG_CACHE_HOME="$net/launch/cache" XDG_CONFIG_HOME="$net/launch/config"
net=$net net_kind=$kind net_interface=eth0
END
    if [ "$kind" = namespace ]; then
        ip link add "$id" type bridge
        ip link set "$id" up
        pick_subnet
        prefix6=fd78:${subnet//./:}
        ip addr add "$prefix6::1/64" dev "$id" nodad 2>/dev/null || prefix6=
        echo "net_address=$subnet.1 net_prefix6=$prefix6" >>"$net/env"
    fi
    for i in $(seq "$count"); do up_"${kind}"_host "$i"; done
    trap - EXIT
    echo "$net"
}

host_pid() { cat "$net/$1/sshd.pid"; }

down() {
    local pid space socket host
    for socket in "$net"/run/dtrun/*; do # shared connections that remain open
        [ -S "$socket" ] && "$ssh" -F none -S "$socket" -O exit x 2>/dev/null || true
    done
    for space in $(ip netns list 2>/dev/null | awk -v id="$id-" 'index($1, id) == 1 {print $1}'); do
        for pid in $(ip netns pids "$space" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
        ip link del "$space" 2>/dev/null || true
        ip netns del "$space" 2>/dev/null || true
    done
    if [ "$(cat "$net/kind")" = loopback ]; then
        for host in "$net"/host*; do
            [ -s "$host/sshd.pid" ] || continue
            pid=$(cat "$host/sshd.pid")
            kill -9 $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null || true
        done
    fi
    ip link del "$id" 2>/dev/null || true
    rm -rf "$net"
}

command=${1:-}
shift || true
if [ "$command" = up ]; then
    up "${1:?how many}"
    exit
fi
net=${1:-} id=dt${net##*.}
[ -f "$net/kind" ] || die "usage: net.sh up N | (cut|heal|pids) NET HOST | pid NET HOST PID | on NET HOST CMD... | down NET"
shift
host=${1-}
space=$id-${host#host}
case $command in
cut | heal)
    [ "$(cat "$net/kind")" = namespace ] || skip "hosts on 127.0.0.1 cannot be cut off"
    if [ "$command" = cut ]; then ip link set "$space" down; else ip link set "$space" up; fi ;;
on)
    shift
    if [ "$(cat "$net/kind")" = namespace ]; then
        exec nsenter -t "$(host_pid "$host")" -n -m -u -p "$@"
    else
        exec env HOME="$net/$host/home" "$@"
    fi ;;
pids) [ "$(cat "$net/kind")" != namespace ] || ip netns pids "$space" ;;
pid)
    [ "$(cat "$net/kind")" = namespace ] || { echo "$2"; exit; }
    for pid in $(ip netns pids "$space"); do
        [ "$(awk '/^NSpid:/ {print $NF}' "/proc/$pid/status" 2>/dev/null)" != "$2" ] || echo "$pid"
    done ;;
down) down ;;
*) die "no such command '$command'" ;;
esac
