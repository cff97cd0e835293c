#!/usr/bin/env bash
# A rebooted node is recognised by its boot id: no process of the earlier boot can exist, the attempt ends with this
# reason, and another one follows.
if [ "${IN_NAMESPACE:-}" != yes ]; then # a file in which this machine's boot id can be replaced
    unshare --mount true 2>/dev/null || { echo "skipped: no mount namespace can be made here"; exit 77; }
    IN_NAMESPACE=yes exec unshare --mount bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
export FAULT_RESTARTS=1 FAKE_STEPS=100000

reboot() { # run: ends its agent and its ranks, and changes the boot id
    local agent
    agent=$(processes "dtrun-agent serve .*/$1/")
    cat /proc/sys/kernel/random/uuid >"$XDG_STATE_HOME/boot_id"
    ! mountpoint -q /proc/sys/kernel/random/boot_id || umount /proc/sys/kernel/random/boot_id
    mount --bind "$XDG_STATE_HOME/boot_id" /proc/sys/kernel/random/boot_id
    kill -9 "$agent"
}
mount --make-rprivate /
clean_more() { umount /proc/sys/kernel/random/boot_id || true; }

FAKE_ATTEMPTS=1 "$driver" launch one 2
await 20 has_step one 3
reboot one
second_attempt() { [ "$(get one attempt)" = 2 ]; }
await 30 second_attempt
await 10 grep -q "node localhost was rebooted: attempt 2 continues" "$runs/one/supervisor.log" # after it is stored
await 20 has_step one 3

# The supervisor died with the node, as on the launch machine; the next one finds another boot. The pid in the journal
# now belongs to another process, with any start time, which is left alone.
kill -9 $(processes "supervise one")
reboot one
await 10 is_dead "$(get one pids | head -n 1)"
sleep 1000 & # in place of rank 0
ticks=$(awk '{ sub(/.*\) /, ""); print $20 }' /proc/$!/stat)
journal=$(ls "$runs"/one/attempt-2/node-0/journal.jsonl)
sed -i -E "/\"event\":\"started\"/{s/\"pid\":[0-9]+/\"pid\":$!/; s/\"start_ticks\":[0-9]+/\"start_ticks\":$ticks/; s/,\"sum\":\"[0-9a-f]+\"//}" "$journal"
grep -q "\"pid\":$!," "$journal" || fail "the journal names no such process"
"$DTRUN_BIN/dtrun" list >/dev/null
end_is one failed 3
is reason "$(get one reason)" "node localhost was rebooted; given up after 1 restart without a new checkpoint"
kill -0 $! || fail "a process of another boot was killed"
kill $!
await 10 nothing_left

# The journal is lost too, as after a power failure or with the state folder in memory.
unset FAKE_ATTEMPTS
for run in two three; do
    "$driver" launch $run 2
    await 20 has_step $run 3
    kill -9 $(processes "supervise $run")
    reboot $run
    await 10 is_dead "$(get $run pids | head -n 1)"
    rm "$runs/$run"/attempt-1/node-0/journal.jsonl*
done
"$DTRUN_BIN/dtrun" status two >/dev/null
second_of_two() { [ "$(get two attempt)" = 2 ]; }
await 30 second_of_two
await 10 grep -q "node localhost was rebooted: attempt 2 continues" "$runs/two/supervisor.log" # after it is stored
await 20 has_step two 3
"$DTRUN_BIN/dtrun" stop two >/dev/null || fail "stop: exit $?"
end_is two stopped 4
# ... and a stop finds it so: nothing can be left there, so that the exit code is not 5
code=0
"$DTRUN_BIN/dtrun" stop three >"$XDG_STATE_HOME/said" || code=$?
[ $code -ne 5 ] || fail "stop: $(<"$XDG_STATE_HOME/said")"
has_ended three || fail "it has not ended: $(<"$XDG_STATE_HOME/said")"
echo "stop of a run that a reboot had ended: exit $code, $(get three reason)"
await 10 nothing_left
