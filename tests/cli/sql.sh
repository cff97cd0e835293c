#!/usr/bin/env bash
# The history is asked in SQL, and nobody writes it so.
. "$(dirname "$0")/lib.sh"

expect 0 list
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO runs (id, name, created_ms, attempt, loss, note, recipe_path, recipe_text)"
           " VALUES ('abc234', 'first', 1, 1, 0.1, 'a, \"b\"' || char(27) || '[2J', 'r.yaml', '')")
db.commit()
PY
expect 0 sql 'SELECT id, loss, valid_loss, note, 7 AS n FROM runs'
[ "$(cat "$work/out")" = $'id,loss,valid_loss,note,n\nabc234,0.1,,"a, ""b""?[2J",7' ] || fail "not this csv"
expect 0 sql --json 'SELECT id, valid_loss FROM runs;'
json "o['columns'] == ['id', 'valid_loss']" "o['rows'] == [['abc234', None]]"
expect 0 sql 'SELECT id FROM runs WHERE 0'
[ "$(cat "$work/out")" = id ] || fail "no line of names"
expect 0 sql 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT sum(x) AS s FROM c'
[ "$(tail -1 "$work/out")" = 6 ] || fail "not 6"

for bad in 'DELETE FROM runs' 'UPDATE runs SET name = 1' 'PRAGMA user_version = 3' 'PRAGMA table_info(runs)' \
    "ATTACH '$work/x.db' AS x" "VACUUM INTO '$work/x.db'" 'DROP TABLE runs' 'CREATE TEMP TABLE t (a)' \
    'BEGIN' "SELECT load_extension('x')" 'SELECT 1; DELETE FROM runs' 'SELECT nothing FROM runs' 'SELEC' '' \
    'INSERT INTO runs DEFAULT VALUES RETURNING 1'; do
    expect 2 sql "$bad"
    one_line
done
[ ! -e "$work/x.db" ] || fail "a file was written"
expect 0 sql 'SELECT count(*) FROM runs'
[ "$(tail -1 "$work/out")" = 1 ] || fail "the run is gone"
"$dtrun" sql --limit 0.3 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c' \
    >"$work/out" 2>"$work/err"
[ $? -ne 0 ] || fail "an endless question is answered"
says "no answer within 0.3 seconds"
