#!/usr/bin/env bash
# Checks that refuse a launch before it creates anything: memory, disk, state folder, installation.
. "$(dirname "$0")/lib.sh"
make_tiny

# A batch that does not fit: the message has the arithmetic.
expect 2 launch --wait "$work/tiny.yaml" --set batch.sequences=60000 --set batch.tokens=1000 \
    --set model.embed=1024
says "activations" "60000"
[ ! -s "$work/out" ] || fail "an error wrote to stdout"
nothing_half_made

# A plan without a run.
expect 0 launch --dry-run "$work/tiny.yaml"
says "64 = 2 sequences x 16 tokens x 1 accumulated x 2 ranks" "activations" "nothing was started"
expect 0 launch --dry-run --json "$work/tiny.yaml" --set ranks=3
json "o['plan']['world_size'] == 3" "len(o['plan']['ranks']) == 3" "o['tokens_per_step'] == 96" \
    "o['memory']['rank_bytes'] > 0" "o['plan']['recipe']['schedule']['steps'] == 60" \
    "o['parameters'] > 0"
nothing_half_made

# A webhook whose secret is not set.
expect 2 launch --wait "$work/tiny.yaml" --set 'notify.webhook=https://a.example/${env:DT_NO_SUCH}'
one_line
says "the environment lacks 'DT_NO_SUCH'"
nothing_half_made

# Programs that are missing.
DTRUN_ENGINE=$work/no-engine expect 3 launch --wait "$work/tiny.yaml"
one_line
says "no-engine" "the installation is incomplete"
nothing_half_made

# A state folder that cannot be written.
: >"$work/file"
XDG_STATE_HOME=$work/file expect 3 launch --wait "$work/tiny.yaml"
one_line
says "$work/file" "XDG_STATE_HOME"

# A full disk: a separate small file system, where it can be mounted.
mkdir "$work/small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=2m tmpfs "$work/small" 2>/dev/null; then
    XDG_STATE_HOME=$work/small expect 3 launch --wait "$work/tiny.yaml"
    one_line
    says "not enough space" " free, but one checkpoint" "XDG_STATE_HOME"
    [ -z "$(ls -A "$work/small/dtrun/runs" 2>/dev/null)" ] || fail "a run's folder was left"
    dd if=/dev/zero of="$work/small/dtrun/filler" bs=64k >/dev/null 2>&1
    XDG_STATE_HOME=$work/small expect 3 list # the disk of the store is full
    one_line
else
    echo "the full disk is not tried: no right to mount"
fi
