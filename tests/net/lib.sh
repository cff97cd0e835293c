# Shared code of the scripts of this folder: hosts, and runs on them (runs.sh).
#
#   hosts 2 [apart]             host1, host2 (net.sh); skips the test if they cannot be made, or are one machine
#   curve RUN                   step, metric and value of losses and gradient norms, as text; if $every is set, only for
#                               step 1 and its multiples
. "$(dirname "${BASH_SOURCE[0]}")/runs.sh"
net_sh=$PWD/tests/net/net.sh
usual='nodes: [host1, host2]'

undo() { "$net_sh" down "$net"; }

hosts() { # how many [apart]
    net=$("$net_sh" up "$1") || exit $?
    . "$net/env"
    begin
    if [ "${2:-}" = apart ] && [ "$net_kind" != namespace ]; then
        echo "skipped: several sshd on 127.0.0.1 are one machine, which a run takes once"
        exit 77
    fi
}

on() { "$net_sh" on "$net" "$@"; }
is() { [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"; }

launch() { # name options...
    local name=$1 got=0
    shift
    "$dtrun" launch --wait "$net/launch/r.yaml" --set "name=$name" "$@" >"$net/out" 2>&1 || got=$?
    [ $got -eq 0 ] || fail "'$name' ends with $got: $(cat "$net/out")"
}

address() { sed -n "/^Host $1\$/,/^Host /s/ *HostName //p" "$net/ssh_config" | head -n 1; }
drop_masters() { # of ssh: the next command logs in again
    local socket
    for socket in "$net"/run/dtrun/*; do
        [ ! -S "$socket" ] || ssh -S "$socket" -O exit x 2>/dev/null
    done
}
begin_closer() { # sets closed to a local port that closes each connection at once, and closer_pid
    exec 5< <(exec python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
while True:
    s.accept()[0].close()')
    closer_pid=$!
    read -r closed <&5
}

past() { [ "$(value "$1" "o.get('step', 0)")" -ge "$2" ]; }
is_now() { [ "$(value "$1" "o['state']")" = "$2" ]; }
in_attempt() { [ "$(value "$1" "o['attempt']")" -ge "$2" ]; }

curve() {
    "$dtrun" metrics "$1" | awk -F, -v every="${every:-1}" '
        $3 ~ /^(loss|valid_loss|gradient_norm)$/ && ($2 == 1 || $2 % every == 0) {print $2, $3, $4}'
}

# Exact, because the same ranks exchange the same pieces in the same order over any network.
same_curve() { # a b lines
    curve "$1" >"$net/a"
    curve "$2" >"$net/b"
    [ "$(wc -l <"$net/a")" -eq "$3" ] || fail "'$1' has $(wc -l <"$net/a") points, expected $3"
    cmp -s "$net/a" "$net/b" || fail "'$1' and '$2' differ: $(diff "$net/a" "$net/b" | head -n 4)"
}
