#!/usr/bin/env bash
# A command that only reads runs in a minimal environment (cron, sudo, another login) while the supervisor of a run on
# other machines is dead. The supervisor that it starts has the environment of the launch, and the run continues. A
# command that cannot start one leaves the run unchanged.
. "$(dirname "$0")/hosts.sh"

bare() { env -i XDG_STATE_HOME="$XDG_STATE_HOME" HOME=/nowhere PATH=/nowhere "$@"; }
supervisor() { processes "supervise $id"; }
kill_supervisor() {
    local pid
    pid=$(supervisor)
    kill -9 $pid
    await 10 is_dead $pid
}
keeps_stepping() { # the run still makes steps, in its first attempt
    local step
    step=$(value "$id" "o['step']")
    await 40 past "$id" $((step + 20))
    is attempt "$(value "$id" "o['attempt']")" 1
}

umask 027
HOOK=sec-ret launch one --set 'notify.webhook=http://127.0.0.1:9/${env:HOOK}'
await 60 past "$id" 20
kill_supervisor
(umask 0 && cd / && bare "$dtrun" list) >/dev/null || fail "list: exit $?"
pid=$(supervisor)
[ -n "$pid" ] || fail "nobody supervises it"
tr '\0' '\n' <"/proc/$pid/environ" >"$state/its"
grep -qxF "HOME=$HOME" "$state/its" || fail "it has another HOME: $(grep ^HOME "$state/its")"
grep -qxF "PATH=$PATH" "$state/its" || fail "it has another PATH: $(grep ^PATH "$state/its")"
is "its folder" "$(readlink "/proc/$pid/cwd")" "$PWD"
is "its umask" "$(sed -n 's/^Umask:\t//p' "/proc/$pid/status")" 0027
await 10 grep -q "the variable 'HOOK' is not set where the run is supervised" "$runs/$id/supervisor.log"
! grep -rqs sec-ret "$runs/$id" "$state/dtrun/store.db" || fail "a secret was stored"
is "who may read it" "$(stat -c %a "$runs/$id/environment")" 600
keeps_stepping

# A launch machine that cannot run ssh proves nothing about a node.
code=0
(PATH=/nowhere "$DTRUN_BIN/dtrun-reach" --probe host1 true) || code=$?
is "what a probe without ssh proves" $code 11

# In a read-only state folder the run is listed, whether somebody else supervises it or nobody can.
if unshare --mount true 2>/dev/null; then
    read_only() {
        unshare --mount bash -c 'mount --bind "$XDG_STATE_HOME" "$XDG_STATE_HOME" &&
            mount -o remount,ro,bind "$XDG_STATE_HOME" && exec "$@"' read_only "$@"
    }
    read_only "$dtrun" list >"$state/said" 2>"$state/complaint" || fail "list: exit $?, $(<"$state/complaint")"
    grep -q "$id" "$state/said" || fail "the list lacks the run"
    [ ! -s "$state/complaint" ] || fail "it complains though the run is supervised: $(<"$state/complaint")"
    kill_supervisor
    read_only "$dtrun" list >"$state/said" 2>"$state/complaint" || fail "list: exit $?, $(<"$state/complaint")"
    grep -q "$id" "$state/said" || fail "the list lacks the run"
    is "lines of complaint ($(<"$state/complaint"))" "$(grep -c "run '$id' has no supervisor.*Read-only" "$state/complaint")" 1
    is "lines of complaint" "$(wc -l <"$state/complaint")" 1
    "$dtrun" status "$id" >/dev/null
    keeps_stepping
fi

# Another user's run is left unchanged, and is listed nevertheless.
if [ "$(id -u)" = 0 ]; then
    kill_supervisor
    chown nobody "$runs/$id"
    bare "$dtrun" list >"$state/said" 2>"$state/complaint" || fail "list: exit $?"
    code=0
    "$dtrun" stop "$id" >"$state/said" 2>&1 || code=$?
    is "exit code of a stop by another user" $code 3
    grep -q "belongs to user nobody" "$state/said" || fail "stop says: $(<"$state/said")"
    chown root "$runs/$id"
    grep -q "$id" "$state/said" || fail "the list lacks the run"
    is "lines of complaint ($(<"$state/complaint"))" "$(grep -c "run '$id' has no supervisor.*nobody" "$state/complaint")" 1
    is "lines of complaint" "$(wc -l <"$state/complaint")" 1
    [ -z "$(supervisor)" ] || fail "a supervisor was started for somebody else"
    bare "$dtrun" status "$id" >/dev/null
    keeps_stepping
fi
"$dtrun" stop "$id" >/dev/null || fail "stop: exit $?"
is state "$(value "$id" "o['state']")" stopped
if [ "$(id -u)" = 0 ]; then # a resume by another user leaves no file that does not belong to the owner
    chown -R nobody "$runs/$id"
    code=0
    HOOK=x "$dtrun" resume "$id" >"$state/said" 2>&1 || code=$?
    is "exit code of a resume by another user ($(<"$state/said"))" $code 3
    is "what it left" "$(find "$runs/$id" -user root)" ""
    is state "$(value "$id" "o['state']")" stopped
fi
