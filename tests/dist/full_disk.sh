#!/usr/bin/env bash
# The disk of the checkpoints fills up while a run trains: each save that fails is an event, the older checkpoint stays
# complete, training continues, and saves again once there is space. A best loss whose save failed does not count: the
# next one is saved although it is worse.
. "$(dirname "$0")/lib.sh"
disk=$work/full.ck
mkdir "$disk"
if ! mount -t tmpfs -o size=2m none "$disk" 2>/dev/null; then
    echo "skipped: no permission to mount a small file system"
    exit 77
fi
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2> /dev/null || true; umount -l "$disk"; rm -rf "$work"' EXIT
make_text 12
events() { grep -c "\"event\":\"$1\"," "$work/full.0" || true; }
within() { # seconds, command that must succeed
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $until ] || fail "never: $*"
        sleep 0.05
    done
}
more() { [ "$(events "$1")" -gt "$2" ]; } # event count
whole() { ls -d "$disk"/step-*/complete; }

plan full schedule.steps=100000000 checkpoint.every=20 checkpoint.keep=1 log.every=1000
"$bin/dtrun-engine" train --plan "$work/full.json" > "$work/full.0" 2> "$work/full.0.err" &
pid=$!
within 120 more checkpoint 0
# Repeatedly: an older checkpoint, or the beginning of one, that is removed meanwhile leaves space for the next one. The
# disk is full once two saves in a row have failed since it was filled.
full() {
    local good failed until=$((SECONDS + 5))
    dd if=/dev/zero bs=4k 2> /dev/null >> "$disk/filler" || true
    good=$(events checkpoint) failed=$(events checkpoint_failed)
    until more checkpoint_failed $((failed + 1)) || [ $SECONDS -ge $until ]; do sleep 0.02; done
    more checkpoint_failed $((failed + 1)) && [ "$(events checkpoint)" = "$good" ]
}
within 120 full
saved=$(whole) || fail "no checkpoint is left"
failed=$(events checkpoint_failed)
within 120 more checkpoint_failed "$failed"
[ "$(whole)" = "$saved" ] || fail "the older checkpoint did not stay: $saved, then $(whole)"
grep -q 'No space left on device; free some space' "$work/full.0" || fail "it does not say why"
rm "$disk/filler"
good=$(events checkpoint)
within 120 more checkpoint "$good"
kill -TERM $pid
wait $pid || fail "the run ends with $?"
pid=
step=$(grep -o '"event":"finished","step":[0-9]*' "$work/full.0" | grep -o '[0-9]*$')
[ "$(whole)" = "$disk/$(printf 'step-%08d' "$step")/complete" ] || fail "not the last step: $(whole)"

# The model gets worse at a text of other letters with every evaluation.
rm -rf "${disk:?}"/*
seq 1 2000 > "$work/numbers.txt"
plan full schedule.steps=100000000 evaluate.every=20 evaluate.sequences=16 log.every=1000 \
    checkpoint.keep_best=1 "data.validation=[\"$work/numbers.txt\"]"
dd if=/dev/zero bs=4k 2> /dev/null >> "$disk/filler" || true
: > "$work/full.0" # the events of the first run are not those of this one, which may start late
"$bin/dtrun-engine" train --plan "$work/full.json" > "$work/full.0" 2> "$work/full.0.err" &
pid=$!
within 120 more checkpoint_failed 2
rm "$disk/filler"
within 120 more checkpoint 0
kill -TERM $pid
wait $pid || fail "the run ends with $?"
pid=
