#!/usr/bin/env bash
# RUN: an id, a prefix of one, a name, 'last'; unknown and ambiguous ones.
. "$(dirname "$0")/lib.sh"

for command in status stop show logs metrics checkpoints resume generate; do
    expect 2 $command nosuchrun
    one_line
    says "nosuchrun"
    expect 2 $command nosuchrun --json
    json "'nosuchrun' in o['error']['message']"
done
expect 2 status
one_line

# Three ended runs, as they are stored in the history.
expect 0 list
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for n, (run, name) in enumerate([("abc234", "first"), ("abd567", "second"), ("xyz789", "first")]):
    at = 1700000000000 + n * 60000
    row = db.execute("INSERT INTO runs (id, name, created_ms, attempt, step, loss, recipe_path,"
                     " recipe_text) VALUES (?, ?, ?, 1, 10, 1.5, 'r.yaml', 'name: x')",
                     (run, name, at)).lastrowid
    db.execute("INSERT INTO attempts (run, attempt, state, start_step, steps_total, created_ms,"
               " started_ms, ended_ms, exit_code, recipe_json, recipe_hash)"
               " VALUES (?, 1, 'finished', 0, 10, ?, ?, ?, 0, '{}', '0')", (row, at, at, at + 1000))
db.commit()
PY
expect 0 status abc234 --json
json "o['run'] == 'abc234'"
expect 0 status abd5 --json
json "o['run'] == 'abd567'"
for ref in a ab abc; do # a name that does not exist is not taken for the beginning of an id
    for command in status stop "rm --yes" resume "export --to csv"; do
        expect 2 $command $ref
        says "unknown run '$ref'" "at least 4 characters"
    done
done
expect 0 status abc2 --json
json "o['run'] == 'abc234'"
expect 2 status abc2x
lacks "at least 4"
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE runs SET id = 'abc256' WHERE id = 'abd567'")
db.commit()
PY
expect 2 status abc2
one_line
says "the ids of 2 runs begin with it" "abc234" "abc256"
expect 0 status first --json
json "o['run'] == 'xyz789'"
expect 0 status last --json
json "o['run'] == 'xyz789'" "o['state'] == 'finished'" "o['eta_seconds'] == 0"

# No run can have the name that stands for the newest run.
make_tiny
for words in "rename first last" "launch --wait $work/tiny.yaml --set name=last"; do
    expect 2 $words
    one_line
    says "last" "stands for the newest run"
done
grep -v "^name:" "$work/tiny.yaml" >"$work/last.yaml"
expect 2 validate "$work/last.yaml"
says "'name' is 'last' (from the file's name)"
expect 0 status --json
json "o['run'] == 'xyz789'"
expect 0 list --json --limit 2
json "[r['run'] for r in o['runs']] == ['xyz789', 'abc256']"
expect 0 list --limit 2
says "there are older ones: 'dtrun list -n 0' shows all"
expect 0 list --limit 3
grep -q older "$work/err" && fail "it says that there are more than all"
expect 0 list --state failed
says "no runs in this state"
expect 0 stop last
says "has already ended: finished"

# A recipe file with this name gives its run another name.
printf 'step,loss\n1,2.5\n' >"$work/last.csv"
expect 0 import csv "$work/last.csv"
expect 0 status last_ --json
json "o['name'] == 'last_'"
