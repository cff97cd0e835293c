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

# Three ended runs, written as the store would have them.
expect 0 list
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
def insert(table, row):
    known = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
    row = {k: v for k, v in row.items() if k in known}
    marks = ",".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({','.join(row)}) VALUES ({marks})", list(row.values()))
for n, (run, name) in enumerate([("abc234", "first"), ("abd567", "second"), ("xyz789", "first")]):
    at = 1700000000000 + n * 60000
    insert("runs", dict(id=run, name=name, created_ms=at, recipe_path="r.yaml",
                        recipe_text="name: x", attempt=1))
    insert("attempts", dict(run=run, attempt=1, state="finished", start_step=0, steps_total=10,
                            step=10, created_ms=at, started_ms=at, ended_ms=at + 1000, exit_code=0,
                            reason="", recipe_json="{}", recipe_hash="0" * 32, loss=1.5))
db.commit()
PY
expect 0 status abc234 --json
json "o['run'] == 'abc234'"
expect 0 status abd --json
json "o['run'] == 'abd567'"
expect 2 status ab
one_line
says "ambiguous" "abc234" "abd567"
expect 0 status first --json
json "o['run'] == 'xyz789'"
expect 0 status last --json
json "o['run'] == 'xyz789'" "o['state'] == 'finished'" "o['eta_seconds'] == 0"
expect 0 status --json
json "o['run'] == 'xyz789'"
expect 0 list --json --limit 2
json "[r['run'] for r in o['runs']] == ['xyz789', 'abd567']"
expect 0 list --state failed
says "no runs in this state"
expect 0 stop last
says "had already ended: finished"
