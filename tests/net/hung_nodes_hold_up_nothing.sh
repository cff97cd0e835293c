#!/usr/bin/env bash
# Nodes and configurations that hang: a stop without supervisor ends the ranks of the other nodes and says what is not
# proven; ssh that is given up leaves none of its children; and who was never connected is not said to be.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
id_of() { value "$1" "o['run']"; }
ranks_on() { # host id: the numbers here of the run's ranks there
    local pid
    for pid in $("$net_sh" pids "$net" "$1"); do
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "DTRUN_RUN_ID=$2" &&
            tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q "dtrun-engine train" && echo "$pid"
    done
    true
}
no_ranks_on() { [ -z "$(ranks_on "$@")" ]; }
asleep() { pgrep -f "sleep $1" >/dev/null; }
none_asleep() { ! asleep "$1"; }

# --- ssh that is given up

sed -n "/^Host host1\$/,/^Host /p" "$net/ssh_config" | sed '1d;/^Host /d' >"$net/way"
{
    echo "Host in-match"
    cat "$net/way"
    echo "Host in-proxy"
    echo "    ProxyCommand sh -c 'sleep 22227 & sleep 22227'"
    echo "Host behind"
    cat "$net/way"
    echo "    ProxyCommand ssh -F $net/ssh_config -o ControlPath=none -W %h:%p host2"
    echo "Match originalhost in-match exec \"sleep 11117; sleep 11117\""
} >>"$net/ssh_config"
recipe <<'END'
nodes: [in-match, in-proxy]
END
"$dtrun" doctor "$net/launch/r.yaml" >"$net/table" 2>&1 </dev/null && fail "doctor finds nothing"
for node in in-match in-proxy; do
    grep -F "node '$node'" "$net/table" | grep -qE "ssh has not started the command after 20 s: try 'ssh -v $node true'|during banner exchange" ||
        fail "of '$node' doctor says: $(cat "$net/table")"
done
! grep -q "connected, but" "$net/table" || fail "said to be connected: $(cat "$net/table")"
for seconds in 11117 22227; do
    asleep $seconds && fail "left behind: $(pgrep -af "sleep $seconds")"
done

# The same for a dtrun-reach that is killed, with any signal.
for signal in TERM KILL; do
    for node in in-match in-proxy; do
        "$DTRUN_BIN/dtrun-reach" $node true </dev/null >"$net/out" 2>&1 &
        pid=$!
        seconds=11117
        [ $node = in-match ] || seconds=22227
        await 10 asleep $seconds
        kill -$signal $pid
        wait $pid 2>/dev/null
        await 5 none_asleep $seconds
    done
done

# A ProxyCommand that carries a connection which others share stays when the command that opened it is given up.
drop_masters
"$DTRUN_BIN/dtrun-reach" behind sh -c 'echo begun; exec sleep 1000' </dev/null >"$net/begun" 2>&1 &
pid=$!
has_begun() { grep -q begun "$net/begun"; }
await 20 has_begun
carriers() { pgrep -f "$net/ssh_config -o ControlPath=none -W" | wc -l; }
is "the ProxyCommands of one connection" "$(carriers)" 1
kill -KILL $pid
wait $pid 2>/dev/null
sleep 1
is "the ProxyCommands after its command was killed" "$(carriers)" 1
wants 0 fine "$DTRUN_BIN/dtrun-reach" behind echo fine
is "the ProxyCommands of a second command" "$(carriers)" 1
drop_masters

# --- a stop, past the supervisor and the history, with a node whose new commands hang after the login

recipe <<'END'
nodes: [host1, host2]
schedule: {kind: constant, steps: 1000000}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 1000000, keep: 2, keep_best: 0}
failure: {max_restarts: 0}
END
for how in "" --now; do
    wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set "name=hung$how"
    await 60 past "hung$how" 5
    id=$(id_of "hung$how")
    kill -9 $(pgrep -f "dtrun supervise $id\$") || fail "no supervisor"
    mkdir "$net/away"
    mv "$net"/launch/state/dtrun/store.db* "$net/away/"
    echo "this is no database, and it is long enough to be seen as none" >"$net/launch/state/dtrun/store.db"
    echo "ForceCommand sleep 33337" >>"$net/host2/sshd_config"
    kill -HUP "$(cat "$net/host2/sshd.pid")"
    drop_masters
    hangs() { ! timeout 2 ssh host2 true 2>/dev/null; }
    await 10 hangs
    begun=$(date +%s)
    "$dtrun" stop "$id" $how >"$net/out" 2>&1 </dev/null &
    pid=$!
    await 10 no_ranks_on host1 "$id" # long before host2 is given up
    freed=$(($(date +%s) - begun))
    kill -0 $pid 2>/dev/null || fail "stop $how did not wait for host2: $(cat "$net/out")"
    got=0
    wait $pid || got=$?
    is "exit code of stop $how" $got 5
    echo "stop $how: host1 was free after $freed s, host2 was given up after $(($(date +%s) - begun)) s"
    [ $(($(date +%s) - begun)) -lt 75 ] || fail "stop $how took $(($(date +%s) - begun)) s"
    grep -q "dtrun stop: waiting for the answer of 'host2'" "$net/out" || fail "nobody is named: $(cat "$net/out")"
    grep -qF "cannot verify that nothing of run $id is left: host2: connected, but its login shell has not run the command" "$net/out" ||
        fail "stop $how says: $(cat "$net/out")"
    ! grep -q "host1" "$net/out" || fail "host1 is blamed: $(cat "$net/out")"

    # Once the node is back the same command proves it.
    sed -i '/^ForceCommand/d' "$net/host2/sshd_config"
    kill -HUP "$(cat "$net/host2/sshd.pid")"
    pkill -f "sleep 33337"
    answers() { drop_masters; timeout 2 ssh host2 true 2>/dev/null; }
    await 10 answers
    wants 0 "nothing of run $id is left running" "$dtrun" stop "$id" --now
    no_ranks_on host2 "$id" || fail "ranks are left on host2"
    rm -f "$net"/launch/state/dtrun/store.db*
    mv "$net"/away/* "$net/launch/state/dtrun/"
    rmdir "$net/away"
done
