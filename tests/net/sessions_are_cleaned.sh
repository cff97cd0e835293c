#!/usr/bin/env bash
# A node that kills the remaining processes of a login when the login ends (KillUserProcesses of systemd-logind,
# pam_slurm_adopt): doctor detects this, reports a remedy, and leaves nothing there.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
recipe <<'END'
nodes: [host1, host2]
END
wants 0 good "$dtrun" doctor "$net/launch/r.yaml"
! grep -q "when the login ends" "$net/out" || fail "a usual node is said to kill: $(cat "$net/out")"

# As logind does for a session: every process that began in it, detached or not, is killed when its command has ended.
cat >"$net/session" <<'END'
#!/bin/bash
export DT_TEST_SESSION=$$-$RANDOM
bash -c "$SSH_ORIGINAL_COMMAND"
code=$?
for file in $(grep -lzsxF "DT_TEST_SESSION=$DT_TEST_SESSION" /proc/[0-9]*/environ); do
    pid=${file//[!0-9]/}
    [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
done
exit $code
END
chmod 755 "$net/session"
echo "ForceCommand $net/session" >>"$net/host2/sshd_config"
kill -HUP "$(cat "$net/host2/sshd.pid")"
kills() {
    drop_masters
    "$dtrun" doctor "$net/launch/r.yaml" >"$net/out" 2>&1 </dev/null || fail "doctor ends with $?: $(cat "$net/out")"
    grep -qF "node 'host2' kills background processes when the login ends" "$net/out"
}
await 20 kills
grep -qF "loginctl enable-linger" "$net/out" || fail "no remedy: $(cat "$net/out")"
! grep -qF "node 'host1' kills" "$net/out" || fail "host1 is said to kill: $(cat "$net/out")"
left() {
    local pid
    for pid in $("$net_sh" pids "$net" host1); do
        tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep "node leave"
    done
}
is "what doctor leaves on host1" "$(left)" ""
