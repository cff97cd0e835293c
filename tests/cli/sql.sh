#!/usr/bin/env bash
# dtrun sql: the views show what the other commands show, docs/sql.md describes them, and nothing can be written.
. "$(dirname "$0")/lib.sh"

expect 0 sql --schema
cmp -s "$work/out" docs/sql.md || fail "docs/sql.md is old: dtrun sql --schema > docs/sql.md"
[ ! -e "$work/state/dtrun" ] || fail "--schema made a history"
expect 0 list
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO runs (id, name, created_ms, attempt, loss, note, recipe_path, recipe_text)"
           " VALUES ('abc234', 'first', 1, 2, 0.1, 'a, \"b\"' || char(27) || '[2J', 'r.yaml', '')")
db.execute("INSERT INTO runs (id, name, created_ms, attempt, recipe_path, recipe_text) VALUES ('bcd345', 'broken', 1, 1, '', '')")
attempt = ("INSERT INTO attempts (run, attempt, state, start_step, steps_total, created_ms, started_ms, ended_ms, elapsed_ms,"
           " exit_code, reason, recipe_json, recipe_hash) VALUES (%s, '')")
recipe = '\'{"model": {"kind": "llama"}, "strategy": {"kind": "fsdp"}, "optimizer": {"lr": 0.25}}\''
db.execute(attempt % ("1, 1, 'failed', 0, 8, 1000, 2000, 9000, 5000, 1, 'killed', " + recipe))
db.execute(attempt % ("1, 2, 'stopped', 4, 8, 1795681554123, 1795681555000, 1795681557500, NULL, 4, '', " + recipe))
db.execute(attempt % "2, 1, 'failed', 0, 0, 1, NULL, 2, NULL, -1, '', 'not JSON'")
db.execute("INSERT INTO series (series, run, name) VALUES (7, 1, 'loss')")
# attempt 2 continued from step 4: steps 5 and 6 of attempt 1 are undone, and its step 4 was measured again
db.executemany("INSERT INTO metrics (series, step, attempt, value, time_ms) VALUES (7, ?, ?, ?, 1)",
               [(step, 1, step) for step in range(1, 7)] + [(4, 2, 40), (5, 2, None)])
db.execute("INSERT INTO checkpoints (run, path, attempt, step, bytes, time_ms, digest, seconds, valid_loss)"
           " VALUES (1, '/nowhere/step-4', 1, 4, 100, 1, 'd', 0.5, 2.5)")
db.execute("INSERT INTO checkpoints (run, path, attempt, step, bytes, time_ms, digest, seconds)"
           " VALUES (1, '/before/runs/abc234/checkpoints/step-8', 2, 8, 9, 1, '', 1)")
db.execute("INSERT INTO nodes (run, attempt, node, name, state, acknowledged) VALUES (1, 2, 0, 'gpu-1', 'running', 0)")
db.execute("INSERT INTO events (run, attempt, node, sequence, rank, time_ms, kind, json) VALUES (1, 2, -1, 0, -1, 1, 'x', '{}')")
db.commit()
PY
expect 0 sql "SELECT run, loss, valid_loss, note, 7 AS n FROM runs WHERE name = 'first'"
[ "$(cat "$work/out")" = $'run,loss,valid_loss,note,n\nabc234,0.1,,"a, ""b""?[2J",7' ] || fail "not this CSV"
expect 0 sql --json 'SELECT run, state, reason, exit_code, created, ended, elapsed_seconds, steps_total, model, strategy, nodes, ranks,
    run_group FROM runs;'
json "o['columns'][:2] == ['run', 'state']" \
    "o['rows'][0][:6] == ['abc234', 'stopped', None, 4, '1970-01-01T00:00:00.001Z', '2026-11-26T08:25:57.500Z']" \
    "o['rows'][0][6:] == [7.5, 8, 'llama', 'fsdp', 1, None, None]" \
    "o['rows'][1] == ['bcd345', 'failed', None, None, '1970-01-01T00:00:00.001Z', '1970-01-01T00:00:00.002Z'] + [None] * 7"
expect 0 sql --json "SELECT attempt, state, reason, elapsed_seconds FROM attempts WHERE run = 'abc234'"
json "o['rows'] == [[1, 'failed', 'killed', 5.0], [2, 'stopped', None, 2.5]]"
expect 0 sql --json "SELECT step, attempt, value FROM points WHERE run = 'abc234' AND metric = 'loss'"
json "o['rows'] == [[1, 1, 1.0], [2, 1, 2.0], [3, 1, 3.0], [4, 2, 40.0], [5, 2, None]]"
expect 0 metrics abc234 --json
json "[p['value'] for p in o['metrics']] == [1, 2, 3, 40, None]"
mkdir -p "$work/state/dtrun/runs/abc234/checkpoints/step-8"
expect 0 sql --json 'SELECT step, path, kept, score FROM checkpoints ORDER BY step'
json "o['rows'] == [[4, '/nowhere/step-4', 0, 2.5], [8, '$work/state/dtrun/runs/abc234/checkpoints/step-8', 1, None]]"
expect 0 sql --json 'SELECT node, rank, event, detail FROM events'
json "o['rows'] == [[None, None, 'x', '{}']]"
expect 0 sql --json 'SELECT count(*) FROM metrics JOIN series USING (series) JOIN main.runs USING (run)' # the tables
json "o['rows'] == [[8]]"

# The description names the existing columns, and its examples run; so do those of the help text.
expect 0 sql --schema --json
cp "$work/out" "$work/schema"
for view in $(python3 -c 'import json, sys; print(*(v["view"] for v in json.load(open(sys.argv[1]))["views"]))' "$work/schema"); do
    expect 0 sql --json "SELECT * FROM $view"
    json "o['columns'] == [c['column'] for v in json.load(open('$work/schema'))['views'] if v['view'] == '$view' for c in v['columns']]"
done
"$dtrun" help sql | cat - docs/sql.md | sed -nE 's/^ *dtrun (sql ["'"'"'].*)/expect 0 \1/p' >"$work/examples"
[ "$(wc -l <"$work/examples")" -ge 8 ] || fail "only $(wc -l <"$work/examples") examples were found"
. "$work/examples"

expect 0 sql 'SELECT run FROM runs WHERE 0'
[ "$(cat "$work/out")" = run ] || fail "no line of names"
expect 0 sql 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT sum(x) AS s FROM c'
[ "$(tail -1 "$work/out")" = 6 ] || fail "not 6"
expect 2 sql 'SELECT loses FROM runs'
says "no such column: loses" "'dtrun sql --schema' lists"
expect 2 sql
says "SELECT is missing"
expect 2 sql --schema 'SELECT 1'
says "--schema and SELECT cannot be combined"

for bad in 'DELETE FROM main.runs' 'DELETE FROM runs' 'DROP VIEW runs' 'DROP VIEW temp.runs' 'UPDATE runs SET name = 1' 'PRAGMA user_version = 3' 'PRAGMA table_info(runs)' \
    "ATTACH '$work/x.db' AS x" "VACUUM INTO '$work/x.db'" 'DROP TABLE runs' 'CREATE TEMP TABLE t (a)' \
    'BEGIN' "SELECT load_extension('x')" 'SELECT 1; DELETE FROM runs' 'SELECT nothing FROM runs' 'SELEC' '' \
    'INSERT INTO runs DEFAULT VALUES RETURNING 1'; do
    expect 2 sql "$bad"
    one_line
done
[ ! -e "$work/x.db" ] || fail "a file was written"
expect 0 sql 'SELECT count(*) FROM runs'
[ "$(tail -1 "$work/out")" = 2 ] || fail "a run is gone"
"$dtrun" sql --limit 0.3 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c' \
    >"$work/out" 2>"$work/err"
[ $? -ne 0 ] || fail "an endless question is answered"
says "no answer within 0.3 seconds"
