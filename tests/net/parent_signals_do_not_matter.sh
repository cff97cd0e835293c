#!/usr/bin/env bash
# dtrun started by a parent that ignores signals, blocks signals, closes the standard streams or leaves others open: runs
# on nodes work, processes that dtrun starts have default dispositions and no blocked signal, no process of a run holds a
# lock or a pipe of the parent, and nohup and kill work as usual.
. "$(dirname "$0")/lib.sh"
hosts 1
usual='nodes: [host1]'
recipe <<'END'
ranks: 1
END
odd="env --ignore-signal=CHLD,PIPE,TERM,USR1,XFSZ --block-signal=CHLD,TERM,INT,HUP,ALRM"
# Prints the blocked and ignored signals of a process. Left out are SIGXFSZ, which dtrun ignores, SIGPIPE, which ssh and
# most of dtrun's programs ignore, and 32 and 33 of glibc, which posix_spawn ignores.
masks() { # pid
    awk '/^Sig(Ign|Blk)/ {print $2}' "/proc/$1/status" 2>/dev/null |
        while read -r mask; do printf '%x ' $((0x$mask & ~0x181001000)); done
}
pids_of() { # words of a command line: the processes of this test with them, here and on its host
    local p there
    there=$("$net_sh" pids "$net" host1)
    for p in $(pgrep -f -- "$1"); do
        { tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qF "$net" || grep -qxF "$p" <<<"$there"; } && echo "$p"
    done
}
has_left() { ! kill -0 "$1" 2>/dev/null; }
is_dtrun() { [ "$(readlink "/proc/$1/exe")" = "$(realpath "$dtrun")" ]; }
hears_term() { is_dtrun "$1" && for mask in $(masks "$1"); do [ $((0x$mask & 0x4000)) -eq 0 ] || return 1; done; }

# A command on a node keeps its exit code, and a command without output gets a reason.
got=0
$odd "$DTRUN_BIN/dtrun-reach" host1 /bin/sh -c 'exit 7' </dev/null >"$net/out" 2>&1 || got=$?
is "the exit code of a command on a node" "$got: $(cat "$net/out")" "7: "

# A whole run; checks a rank, its agent and ssh. It is launched with a lock and the end of a pipe.
mkfifo "$net/pipe"
(cat "$net/pipe"; touch "$net/ended") &
exec 7>"$net/pipe" 9>"$net/lock"
flock 9
$odd "$dtrun" launch "$net/launch/r.yaml" --set name=odd --set schedule.steps=1000000000 \
    --set checkpoint.every=0 --detach >"$net/out" 2>&1 ||
    fail "launch under a parent that ignores SIGCHLD: $(cat "$net/out")"
reached() { [ "$(value odd "o.get('step') or 0")" -ge "$1" ]; }
await 60 reached 3
exec 7>&- 9>&-
flock -n "$net/lock" true || fail "the run holds a lock of who launched it"
has_ended() { [ -e "$net/ended" ]; }
await 20 has_ended
there=('dtrun-engine train' dtrun-agent)
[ "$net_kind" = namespace ] || there=() # the processes of a host on 127.0.0.1 are not known
for name in 'ssh -F' dtrun-reach 'dtrun supervise' "${there[@]}"; do
    found=0
    signals='0 0 '
    [ "$name" != 'dtrun-engine train' ] || signals='4000 0 ' # a rank blocks SIGTERM and checks whether it is pending
    for pid in $(pids_of "$name"); do
        for _ in $(seq 200); do # a process that has not yet executed its program still blocks signals
            seen=$(masks "$pid")
            [ -z "$seen" ] || [ "$seen" = "$signals" ] && break
            sleep 0.05
        done
        [ -n "$seen" ] || continue # the process has ended meanwhile
        found=1
        is "blocked and ignored signals of '$name' ($pid)" "$seen" "$signals"
    done
    [ $found -eq 1 ] || fail "no process '$name' of the run"
done

# kill ends dtrun although it was started with SIGTERM blocked and ignored.
$odd "$dtrun" wait odd >"$net/out" 2>&1 &
pid=$!
await 20 hears_term $pid
kill -TERM $pid
await 20 has_left $pid
# nohup: the end of the session ends no process.
nohup "$dtrun" wait odd >"$net/out" 2>&1 &
pid=$!
await 20 is_dtrun $pid
kill -HUP $pid
sleep 1 # what SIGHUP ends is gone by then
kill -0 $pid 2>/dev/null || fail "SIGHUP ended 'nohup dtrun wait': $(cat "$net/out")"
"$dtrun" stop --now odd >"$net/out" 2>&1 || fail "stop: $(cat "$net/out")"
await 20 has_left $pid # with its run

# Without standard streams, messages are not written into the history.
"$dtrun" launch "$net/launch/r.yaml" --set name=mute --wait <&- >&- 2>&-
is "exit code of a launch without standard streams" $? 0
is "the history after it" "$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check").fetchone()[0])' "$XDG_STATE_HOME/dtrun/store.db")" ok
