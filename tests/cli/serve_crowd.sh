#!/usr/bin/env bash
# The page keeps answering under any load on its port: too many, slow and hostile connections, few descriptors.
. "$(dirname "$0")/lib.sh"

expect 0 list
python3 - "$XDG_STATE_HOME/dtrun/store.db" <<'PY' || fail "cannot fill the store"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO runs (id, name, created_ms, attempt, recipe_path, recipe_text)"
           " VALUES ('aa', 'long', 1, 1, '', '')")
db.execute("INSERT INTO attempts (run, attempt, state, start_step, steps_total, created_ms, recipe_json, recipe_hash)"
           " VALUES (1, 1, 'running', 0, 200000, 1, '{}', '')")
for series, name in enumerate(("loss", "tokens_per_second"), 1):
    db.execute("INSERT INTO series (series, run, name) VALUES (?, 1, ?)", (series, name))
    db.executemany("INSERT INTO metrics (series, step, attempt, value, time_ms) VALUES (?, ?, 1, ?, ?)",
                   ((series, step, 5.0 / (step + 1), 1763718600000 + step) for step in range(150000)))
db.commit()
PY
python3 tests/cli/crowd.py "$dtrun" "$work" || fail "the page does not stand a crowd"
