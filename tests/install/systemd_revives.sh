#!/usr/bin/env bash
# The installed timer restarts the supervisor of a run without any command: after kill -9, and after a reboot of the
# launch machine. A real user manager runs in namespaces of this test: when the first one ends, every process in it is
# gone, as in a reboot, and the second one has another boot id.
if [ -z "${PHASE:-}" ]; then
    command -v systemd-run systemctl >/dev/null && [ -x /lib/systemd/systemd ] || { echo "skipped: no systemd"; exit 77; }
    [ "$(id -u)" = 0 ] && unshare --mount --pid --fork --mount-proc true 2>/dev/null ||
        { echo "skipped: no namespaces can be made here"; exit 77; }
    base=$(mktemp -d "${TMPDIR:-/tmp}/dtrun-systemd.XXXXXX")
    trap 'rm -rf "$base"' EXIT
    cmake --install "$(dirname "$DTRUN_BIN")" --prefix "$base/prefix" >"$base/installed" || exit 1
    for PHASE in first second; do
        BASE=$base PHASE=$PHASE timeout -k 5 120 unshare --mount --pid --fork --mount-proc bash "$0" ||
            { code=$?; [ $code -eq 77 ] && exit 77; tail -n 30 "$base"/*.log "$base"/state/dtrun/runs/one/supervisor.log; exit $code; }
    done
    exit 0
fi

set -euo pipefail
fail() { echo "FAILED in the $PHASE boot: $*" >&2; exit 1; }
await() { # seconds command...
    local end=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt $end ] || fail "not in time: $*"
        sleep 0.1
    done
}
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/user/0
export HOME=$BASE/home XDG_RUNTIME_DIR=/run/user/0 XDG_STATE_HOME=$BASE/state
export DTRUN_ENGINE=$DTRUN_BIN/fake_engine DTRUN_KEEP_ENV="FAKE_*" FAULT_RESTARTS=3
unset DBUS_SESSION_BUS_ADDRESS
mkdir -p "$HOME"
driver=$DTRUN_BIN/fault_driver
cat /proc/sys/kernel/random/uuid >"$BASE/boot_id"
mount --bind "$BASE/boot_id" /proc/sys/kernel/random/boot_id

env -u XDG_STATE_HOME -u DTRUN_ENGINE -u DTRUN_KEEP_ENV /lib/systemd/systemd --user >"$BASE/manager-$PHASE.log" 2>&1 &
manager=$!
is_up() { case $(systemctl --user is-system-running 2>/dev/null) in running | degraded) ;; *) ! kill -0 $manager 2>/dev/null ;; esac; }
await 60 is_up
kill -0 $manager 2>/dev/null || { echo "skipped: no user manager of systemd can run here"; exit 77; }
if [ "$PHASE" = first ]; then
    for unit in service timer; do # more often, and for this state folder (an empty value removes all times)
        mkdir -p "$HOME/.config/systemd/user/dtrun-supervisors.$unit.d"
    done
    printf '[Service]\nEnvironment=XDG_STATE_HOME=%s\n' "$XDG_STATE_HOME" \
        >"$HOME/.config/systemd/user/dtrun-supervisors.service.d/here.conf"
    printf '[Timer]\nOnStartupSec=\nOnStartupSec=1\nOnUnitInactiveSec=1\nAccuracySec=100ms\n' \
        >"$HOME/.config/systemd/user/dtrun-supervisors.timer.d/soon.conf"
    # the command of docs/install.md
    systemctl --user enable --now "$BASE"/prefix/lib/systemd/user/dtrun-supervisors.{service,timer} >"$BASE/enabled.log" 2>&1 ||
        fail "enable: $(<"$BASE/enabled.log")"
fi

supervisor() { pgrep -f '^dtrun supervise one$' || true; }
# Exactly one supervisor; while it starts it is two processes for a moment.
is_supervised() { [ "$(supervisor | wc -w)" -eq 1 ]; }
has_step() { [ "$("$driver" get one step)" -ge "$1" ]; }
attempt_is() { [ "$("$driver" get one attempt)" = "$1" ]; }
if [ "$PHASE" = first ]; then
    FAKE_STEPS=100000 "$driver" launch one 2
    await 30 has_step 3
    await 30 is_supervised
    pid=$(supervisor)
    kill -9 "$pid"
    await 30 is_supervised # started by the timer: no command runs here
    [ "$(supervisor)" != "$pid" ] || fail "it was not killed"
    grep -q '\.scope$' "/proc/$(supervisor)/cgroup" || fail "it is in the unit of the timer: $(grep systemd "/proc/$(supervisor)/cgroup")"
    step=$("$driver" get one step)
    await 30 has_step $((step + 3))
    attempt_is 1 || fail "another attempt was begun"
else
    await 40 attempt_is 2
    # reported after it is stored
    await 10 grep -q "node localhost was rebooted: attempt 2 continues" "$XDG_STATE_HOME/dtrun/runs/one/supervisor.log"
    await 30 has_step 3
    "$BASE/prefix/bin/dtrun" stop one >/dev/null || fail "stop: exit $?"
fi
