#!/usr/bin/env bash
# The disk is full while ranks train: they continue, and once there is space nothing is missing except output that was
# dropped and counted.
. "$(dirname "$0")/lib.sh"
disk=$XDG_STATE_HOME/dtrun
mkdir "$disk"
if ! mount -t tmpfs -o size=4m none "$disk" 2>/dev/null; then
    echo "skipped: a file system of its own needs root"
    exit 77
fi
clean_more() { umount -l "$disk" || true; }

FAKE_STEPS=120 FAKE_STEP_MS=10 FAKE_MODE=flood "$driver" launch one 2
is_full() { [ "$(df --output=avail "$disk" | tail -n 1)" -lt 64 ]; }
await 30 is_full
sleep 1 # the ranks make steps and print, and neither agent nor supervisor can write
[ "$(processes fake_engine | wc -l)" -gt 0 ] || has_ended one || fail "the ranks are gone"
mount -o remount,size=600m "$disk"
await 60 has_ended one
end_is one finished 0
is points "$(get one points)" 120
is step "$(get one step)" 120
for rank in 0 1; do
    repeated=$(grep -o 'step [0-9]* line [0-9]* ' "$disk/runs/one/logs/rank-$rank.log" | sort | uniq -d | wc -l)
    is "lines that are there twice" "$repeated" 0
done
await 10 nothing_left
