#!/usr/bin/env bash
# dtrun smoke with faults: for each the run behaves as promised, and a fault that cannot be planted fails.
. "$(dirname "$0")/lib.sh"
make_tiny
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

expect 0 smoke "$work/tiny.yaml" --json --kill rank=1@3 --hang rank=0@5 --slow rank=1@2x3 --disk-full @6 \
    --bitflip rank=1@7 --cut node=2@4:2s
json "[c['check'] for c in o['recipes'][0]['checks']][8:] == ['kill rank=1@3', 'hang rank=0@5', 'slow rank=1@2', 'disk-full rank=0@6', 'bitflip rank=1@7', 'cut node=2@4:2s']" \
    "all(c['verdict'] == 'good' for c in o['recipes'][0]['checks'])"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
# On its own nodes: faults that cannot be noticed are left out, faults that cannot be planted fail.
expect 1 smoke "$work/tiny.yaml" --here --set strategy=fsdp --bitflip rank=1@7 --kill rank=7@3 --cut node=2@4
says "no rank 7" "no node 2 (nodes are 1 to 1)" "fsdp shards them" "12 steps on 2 ranks" \
    "2 of 11 checks failed"
