#!/usr/bin/env bash
# dtrun-reach on hosts with a real sshd: success, and every kind of failure.
. "$(dirname "$0")/lib.sh"
hosts 2
reach=$DTRUN_BIN/dtrun-reach
wants() { # code text command...
    local code=$1 text=$2 got=0
    shift 2
    "$@" >"$net/out" 2>"$net/err" </dev/null || got=$?
    [ $got -eq "$code" ] || fail "$*: code $got, wanted $code: $(cat "$net/err")"
    [ -z "$text" ] || grep -qF -- "$text" "$net/out" "$net/err" || fail "$*: does not say '$text': $(cat "$net/err")"
}

wants 0 "words 'as they are' \$(x)" "$reach" host1 /bin/echo "words 'as they are' \$(x)"
wants 7 "" "$reach" host1 /bin/sh -c 'exit 7'
wants 127 "not found" "$reach" host1 /no/such/program
printf 'a\nb' | "$reach" host2 /bin/cat | cmp -s - <(printf 'a\nb') || fail "stdin does not reach stdout"
head -c 3000000 /dev/urandom >"$net/big"
"$reach" host2 /bin/cat <"$net/big" | cmp -s - "$net/big" || fail "3 MB do not come back as they went"

# A command with further output that nobody reads any more is abandoned at once.
timeout 20 "$reach" host1 /bin/sh -c 'head -c 3000000 /dev/zero; sleep 60' 2>"$net/err" </dev/null | head -c 1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 255 ] || fail "what nobody hears does not end: $(cat "$net/err")"

# One connection is shared: sshd saw one login of host1, however many commands ran.
drop_masters
for _ in 1 2 3; do "$reach" host1 /bin/true; done
logins=$(grep -c 'Accepted publickey' "$net/host1/sshd.log")
for _ in 1 2 3; do "$reach" host1 /bin/true; done
[ "$(grep -c 'Accepted publickey' "$net/host1/sshd.log")" -eq "$logins" ] ||
    fail "six commands did not share a connection"
drop_masters

# Host keys that are unknown, or have changed.
cp "$net/known_hosts" "$net/known"
: >"$net/known_hosts"
wants 255 "'ssh host1'" "$reach" host1 /bin/true
sed "s/ssh-ed25519 .*/$(cut -d' ' -f1,2 "$net/host2/key.pub" | sed 's/[&/]/\\&/g')/" "$net/known" >"$net/known_hosts"
wants 255 "ssh-keygen -R" "$reach" host1 /bin/true
# ... and a configuration that would accept them does not.
sed -i '1i StrictHostKeyChecking no' "$net/ssh_config"
wants 255 "host key" "$reach" host1 /bin/true
sed -i 1d "$net/ssh_config"
cp "$net/known" "$net/known_hosts"

# Logins are refused; a password would be requested.
mv "$net/host1/authorized_keys" "$net/host1/nobody"
wants 255 "ssh-copy-id host1" "$reach" host1 /bin/true
mv "$net/host1/nobody" "$net/host1/authorized_keys"

# A port without a listener, one that closes the connection at once, and a name that does not exist.
begin_closer
printf 'Host closes\n  HostName 127.0.0.1\n  Port %s\nHost deaf\n  HostName 127.0.0.1\n  Port 1\n' "$closed" >>"$net/ssh_config"
wants 255 "closes the connection at once" "$reach" closes /bin/true
kill $closer_pid
wants 255 "nothing listens" "$reach" deaf /bin/true
wants 255 "cannot be resolved" "$reach" no-such-host.invalid /bin/true

# A login shell that prints something.
bashrc() { "$reach" host1 /bin/sh -c "printf '%s\n' \"\$1\" > ~/.bashrc" sh "$1"; }
case $(getent passwd "$(id -u)") in
*bash)
    bashrc 'echo "Welcome to host1"; echo noise >&2'
    wants 0 "hello" "$reach" host1 /bin/echo hello
    ! grep -q Welcome "$net/out" || fail "the banner is in the output"
    bashrc 'exit 3'
    wants 255 "ended with exit code 3" "$reach" host1 /bin/true ;;
esac

if [ "$net_kind" = namespace ]; then
    drop_masters
    tests/net/net.sh cut "$net" host2
    wants 255 "node 'host2': " "$reach" host2 /bin/true
    tests/net/net.sh heal "$net" host2
    wants 0 back "$reach" host2 /bin/echo back
    # An open connection ends by itself when the network is cut.
    "$reach" host2 /bin/cat >/dev/null 2>"$net/err" < <(sleep 60) &
    waits=$!
    "$reach" host2 /bin/true
    tests/net/net.sh cut "$net" host2
    wait $waits
    [ $? -eq 255 ] || fail "a cut connection did not end with 255"
    grep -q "host2" "$net/err" || fail "a cut connection says '$(cat "$net/err")'"
fi
