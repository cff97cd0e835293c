#!/usr/bin/env bash
# A sweep on GPUs: points train at the same time on cards that no other run has, also after a stop, a resume and the
# death of the driver; a request for more cards than exist is refused. The cards are files of a private /dev, and the
# engine trains on the CPU on any card: this tests only the assignment.
if [ "${SWEEP_GPUS_DEV:-}" = "" ]; then
    unshare -m -n true 2>/dev/null || { echo "skipped: namespaces are not allowed here" >&2; exit 77; }
    SWEEP_GPUS_DEV=$(mktemp -d)
    export SWEEP_GPUS_DEV
    unshare -m -n bash "$0" "$@" # claims of these cards are not those of other tests
    status=$?
    rmdir "$SWEEP_GPUS_DEV"
    exit $status
fi
ip link set lo up || { echo "skipped: no iproute2 here" >&2; exit 77; }
. "$(dirname "$0")/lib.sh"
dev=$SWEEP_GPUS_DEV
mount -t tmpfs tmpfs "$dev" || { echo "skipped: no tmpfs can be mounted" >&2; exit 77; }
mkdir "$dev/shm" "$dev/pts"
mount --rbind /dev/shm "$dev/shm" && mount --rbind /dev/pts "$dev/pts"
for node in null zero full random urandom tty; do
    touch "$dev/$node" && mount --bind /dev/$node "$dev/$node"
done
ln -s /proc/self/fd "$dev/fd"
touch "$dev"/nvidia{0,1,2,3} "$dev/nvidiactl"
mount --rbind "$dev" /dev
unset CUDA_VISIBLE_DEVICES
cat >"$work/engine" <<END
#!/bin/sh
[ "\$1" = train ] || exec "$(dirname "$dtrun")/dtrun-engine" "\$@"
sed 's/"cuda:[0-9]*"/"cpu"/' "\$3" >"$work/plan.\$DTRUN_RUN_ID.\$RANK.json"
exec "$(dirname "$dtrun")/dtrun-engine" train --plan "$work/plan.\$DTRUN_RUN_ID.\$RANK.json"
END
chmod 755 "$work/engine"
export DTRUN_ENGINE=$work/engine

make_tiny
cat >"$work/sweep.yaml" <<'YAML'
extends: tiny.yaml
name: lr
gpus: 2
ranks: 1
sweep: {optimizer.lr: [1e-3, 2e-3, 3e-3]}
search: {at_once: 0}
schedule: {steps: 1000000000}
YAML
# devices GROUP: "lr-1:0,1 lr-2:2,3" for the runs that have not ended, by their plans
devices() {
    "$dtrun" list --group "$1" --json | python3 -c '
import json, re, sys
from pathlib import Path
for run in sorted(json.load(sys.stdin)["runs"], key=lambda r: r["name"]):
    if run["state"] in ("finished", "failed", "stopped"): continue
    plan = sorted(Path(sys.argv[1], run["run"]).glob("attempt-*/plan.json"))[-1]
    print(run["name"] + ":" + ",".join(d[5:] for d in re.findall(r"cuda:\d+", plan.read_text())), end=" ")
' "$XDG_STATE_HOME/dtrun/runs" | sed 's/ $//'
}
has_devices() { [ "$(devices "$1")" = "$2" ]; }
wants_devices() { # group devices
    subject="GPUs of $1"
    within 60 has_devices "$1" "$2" || fail "they are '$(devices "$1")', wanted '$2'"
}
driver_of() { pgrep -f "^dtrun drive $1\$" | while read -r pid; do grep -qzxF "XDG_STATE_HOME=$XDG_STATE_HOME" "/proc/$pid/environ" && echo "$pid"; done; }

# Two of three points at once; the third when the first has stopped, on its cards; killing the driver changes nothing.
expect 0 launch "$work/sweep.yaml" --detach
wants_devices lr "lr-1:0,1 lr-2:2,3"
expect 0 status lr --json
json "[p['state'] == 'waiting' for p in o['points']] == [False, False, True]"
within 30 grep -q "lr-3 waits for nodes or GPUs" "$XDG_STATE_HOME/dtrun/sweeps/lr/driver.log" || fail "nobody says what is waited for"
kill -9 "$(driver_of lr)"
within 60 state_is lr-1 running
expect 0 stop lr-1
wants_devices lr "lr-2:2,3 lr-3:0,1"
expect 0 show lr-2 --json
json "o['recipe']['nodes'] == ['localhost first_gpu=2']" "o['recipe']['gpus'] == 2"

# Another sweep takes none of these cards, and gets those that are released.
expect 0 launch "$work/sweep.yaml" --detach --set name=other --set gpus=1 --set early_stop='{metric: loss, after: 1000000}'
sleep 2
wants_devices other ""
expect 0 stop lr --json
wants_devices other "other-1:0 other-2:1 other-3:2"

# Resumed, the points go to the cards that are free now.
expect 0 resume lr --detach
sleep 2
wants_devices lr ""
expect 0 stop other --json
apart() { [ "$(devices lr | grep -oE ':[0-9,]+' | tr -d : | tr , '\n' | sort | tr '\n' ' ')" = "0 1 2 3 " ]; } # the order varies
within 60 apart || fail "the GPUs are '$(devices lr)'"
expect 0 stop lr --json

# A run launched by hand; a sweep gets the remaining cards, from the given one on.
expect 0 launch "$work/tiny.yaml" --detach --set name=own --set gpus=1 --set nodes='["localhost first_gpu=1"]' --set schedule.steps=1000000000
expect 0 launch "$work/sweep.yaml" --detach --set name=rest --set search.at_once=3
wants_devices rest "rest-1:2,3"
expect 0 stop rest --json
expect 0 launch "$work/sweep.yaml" --detach --set name=rest --set gpus=1 --set nodes='["localhost first_gpu=2"]'
wants_devices rest.2 "rest.2-1:2 rest.2-2:3"
expect 0 stop rest.2 --json
expect 0 stop own

# Each point on some of the nodes: here all are one machine, whose cards they divide.
expect 0 launch "$work/sweep.yaml" --detach --set name=some --set gpus=1 --set nodes='[localhost, localhost#2]' --set search.nodes=1
wants_devices some "some-1:0 some-2:1 some-3:2"
expect 0 stop some --json

# More cards than exist: refused, without waiting.
expect 2 launch "$work/tiny.yaml" --wait --set gpus=2 --set nodes='["localhost first_gpu=3"]'
says "'first_gpu' is 3 with 2 GPUs from there on, but 'localhost' has 4"
expect 2 launch "$work/sweep.yaml" --wait --set gpus=9
expect 2 validate "$work/sweep.yaml" --set search.nodes=2
says "'search.nodes' is 2, but 'nodes' has only 1"
