#!/usr/bin/env bash
# Any command that takes a run starts a supervisor again if the run has none.
. "$(dirname "$0")/lib.sh"
SSH_AUTH_SOCK=$XDG_STATE_HOME/gone FAKE_STEPS=100000 "$driver" launch one 2
await 20 has_step one 3
# The commands start `dtrun supervise`; the first supervisor was fault_driver's.
supervisor() { processes "supervise one"; }
is_supervised() { [ -n "$(supervisor)" ]; }
for command in "supervise --all-active" "list" "status one" "show one" "logs one" "metrics one" "checkpoints one"; do
    pid=$(supervisor)
    kill -9 $pid
    await 10 is_dead $pid # and has released its lock
    "$DTRUN_BIN/dtrun" $command >/dev/null || fail "dtrun $command: exit $?"
    await 10 is_supervised
done
step=$(get one step)
await 20 has_step one $((step + 5))
is attempt "$(get one attempt)" 1

# The ssh-agent of the launch is gone. A command that only reads does not pass its own on; `stop` does.
python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(9); sys.stdin.read()' \
    "$XDG_STATE_HOME/alive" < <(sleep 600) &
await 10 test -S "$XDG_STATE_HOME/alive"
export SSH_AUTH_SOCK=$XDG_STATE_HOME/alive
kept() { tr '\0' '\n' <"$runs/one/environment" | sed -n 's/^SSH_AUTH_SOCK=//p'; }
"$DTRUN_BIN/dtrun" list >/dev/null
is "the agent that is kept" "$(kept)" "$XDG_STATE_HOME/gone"
"$DTRUN_BIN/dtrun" stop one >/dev/null
is "the agent that is kept" "$(kept)" "$XDG_STATE_HOME/alive"
grep -q "the ssh-agent of the launch is gone" "$runs/one/supervisor.log" || fail "it is not said"
kill $! $(processes "sleep 600")
end_is one stopped 4
await 10 nothing_left
