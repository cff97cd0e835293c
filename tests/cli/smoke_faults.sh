#!/usr/bin/env bash
# dtrun smoke with faults: each keeps its promise, and one that cannot be planted fails.
. "$(dirname "$0")/lib.sh"
make_tiny
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

expect 0 smoke "$work/tiny.yaml" --json --kill rank=1@3 --hang rank=0@5 --slow rank=1@2x3 --disk-full @6
json "[c['check'] for c in o['recipes'][0]['checks']][8:] == ['kill rank=1@3', 'hang rank=0@5', 'slow rank=1@2', 'disk-full rank=0@6']" \
    "all(c['verdict'] == 'good' for c in o['recipes'][0]['checks'])"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
expect 1 smoke "$work/tiny.yaml" --kill rank=7@3
says "there is no rank 7"
