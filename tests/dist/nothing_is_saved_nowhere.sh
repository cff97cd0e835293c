#!/usr/bin/env bash
# A plan whose folder is /dev/null, as measurements use it: no checkpoint is written, not even at the end, and the run
# ends well.
. "$(dirname "$0")/lib.sh"
make_text 40
plan nowhere schedule.steps=4 checkpoint.every=2 evaluate.every=2
sed -i 's|"directory": "[^"]*"|"directory": "/dev/null"|' "$work/nowhere.json"
grep -q '"directory": "/dev/null"' "$work/nowhere.json" || fail "the plan has another folder"
ranks 1 nowhere || fail "exit $?"
grep -q '"event":"finished".*"reason":"steps"' "$work/nowhere.0" || fail "it has not finished"
grep -q '"event":"checkpoint' "$work/nowhere.0" && fail "it speaks of a checkpoint"
[ -z "$(find "$work" -name 'step-*')" ] || fail "something was saved"
