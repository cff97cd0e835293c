#!/usr/bin/env bash
# The two ends of the connectivity check, on this machine: `dtrun-agent node listen` waits for dialers as long as they
# take to log in, and `node dial` reports for each peer whether it connected, and whether the network is to blame.
set -uo pipefail
agent=$(realpath "$DTRUN_BIN")/dtrun-agent
folder=$(mktemp -d /tmp/dtmeet.XXXXXX)
failed=0
fail() { echo "FAILED: $*"; failed=1; }
stop_listener() {
    exec 7>&-
    wait "$listener"
}
trap 'kill "$listener" 2>/dev/null; rm -rf "$folder"' EXIT
says() { # expected lines of the last dial
    [ "$(cat "$folder/out")" = "$1" ] || fail "dial says '$(cat "$folder/out")', expected '$1'"
}

begin_listener() {
    : >"$folder/port"
    "$agent" node listen 127.0.0.1 <"$folder/in" >"$folder/port" 2>"$folder/why" &
    listener=$!
    exec 7>"$folder/in"
    until read -r _ port <"$folder/port"; do sleep 0.02; done
}

mkfifo "$folder/in"
begin_listener
sleep 4.2 # as long as the login of a dialer takes
"$agent" node dial 127.0.0.1 "$port" >"$folder/out"
says met
"$agent" node dial 127.0.0.1 "$port" 127.0.0.1 1 127.0.0.1 "$port" >"$folder/out"
says $'met\nunreachable Connection refused\nmet'
"$agent" node dial ::1 1 no-address 1 >"$folder/out"
grep -q "^failed 'no-address' is not an address" "$folder/out" || fail "a word for an address: $(cat "$folder/out")"
prlimit --nofile=3 "$agent" node dial 127.0.0.1 "$port" >"$folder/out"
says 'failed cannot open a socket: Too many open files'
stop_listener || fail "the listener ends with an error"
"$agent" node dial 127.0.0.1 "$port" >"$folder/out"
says 'unreachable Connection refused'

# A listener that cannot accept a connection reports it.
begin_listener
prlimit --pid "$listener" --nofile=4
"$agent" node dial 127.0.0.1 "$port" >"$folder/out"
! grep -q "^met" "$folder/out" || fail "met a listener without descriptors"
stop_listener && fail "a listener without descriptors ends well"
grep -q "cannot accept a connection: Too many open files" "$folder/why" || fail "it says: $(cat "$folder/why")"
[ $failed -eq 0 ] && echo good
exit $failed
