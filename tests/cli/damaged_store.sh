#!/usr/bin/env bash
# A history with damaged pages: rm changes nothing or completes, an interrupted removal is completed by the same
# command, and backup leaves no copy. repaired_store.sh tests what a repair restores.
. "$(dirname "$0")/lib.sh"
two_ended_runs
keep

# --- rm: rows and files are removed together, or nothing is removed
damage metrics
files_of_two() { find "$runs/$two" -type f ! -name '*.lock' | sort; }
files_of_two >"$work/before"
for _ in 1 2; do
    expect 3 rm --yes two
    one_line
    says "is damaged"
    files_of_two | diff - "$work/before" >"$work/out" || fail "files of the run are gone"
done
put_back
expect 0 metrics two
[ "$(wc -l <"$work/out")" -gt 150 ] || fail "the points are not there"

# A file cannot be removed: the rows are gone, nothing restores them, and the same command removes the rest.
mkdir "$runs/$two/logs/held"
if [ "$(id -u)" = 0 ]; then
    mount -t tmpfs none "$runs/$two/logs/held" || exit 77
    trap 'status=$?; umount "$runs/.removed-$two/logs/held" 2>/dev/null; (exit $status); at_exit' EXIT
else
    touch "$runs/$two/logs/held/file"
    chmod 500 "$runs/$two/logs/held"
fi
expect 3 rm --yes two
one_line
says "files of it are left" "'dtrun rm $two' again"
expect 0 list --json
json "[r['name'] for r in o['runs']] == ['one']"
expect 1 store check
says "is left of an interrupted removal ('dtrun rm $two' completes it)"
[ ! -e "$runs/.removed-$two/checkpoints" ] || fail "what could be removed is there"
expect 3 rm --yes two
[ "$(id -u)" = 0 ] && umount "$runs/.removed-$two/logs/held"
chmod 700 "$runs/.removed-$two/logs/held"
expect 0 rm --yes two
[ ! -e "$runs/.removed-$two" ] || fail "files are left"
expect 2 rm --yes two
expect 0 store check --json
json "o['runs'] == 1" "o['problems'] == []"
put_back

# --- backup: a copy is complete, or does not exist
no_copy() {
    expect 3 store backup "$work/copies/copy.db"
    one_line
    says "is damaged" "'dtrun store repair'"
    [ "$(ls -A "$work/copies")" = copy.db.partial ] || fail "a file is left: $(ls -A "$work/copies")"
}
mkdir "$work/copies"
echo mine >"$work/copies/copy.db.partial"
for table in metrics pyramid events series; do
    damage $table
    no_copy
    put_back
done
python3 - "$db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO series (run, name) VALUES (999, 'of no run')")
db.commit()
PY
no_copy
put_back
[ "$(cat "$work/copies/copy.db.partial")" = mine ] || fail "another file was written over"
expect 0 store backup "$work/copies/copy.db"
python3 - "$db" "$work/copies/copy.db" <<'PY' || fail "the copy is not the history"
import sqlite3, sys
one, other = (list(sqlite3.connect(path).iterdump()) for path in sys.argv[1:])
assert one == other
PY

# --- a history from elsewhere: its own SQL does not run, and a repair keeps the rows
python3 - "$db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TRIGGER spy AFTER UPDATE ON runs BEGIN DELETE FROM metrics; END")
db.execute("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i FROM n) SELECT * FROM n")
db.execute("INSERT INTO runs (id, name, created_ms, attempt, recipe_path, recipe_text) VALUES ('../x', 'out', 1, 1, '', '')")
db.commit()
PY
for command in "list" "show two" "tag two good" "sql 'SELECT * FROM runs'" "store check"; do
    eval "expect 3 $command"
    says "the trigger 'spy', the view 'endless'" "'dtrun store repair'"
done
expect 0 store repair
expect 0 metrics two
[ "$(wc -l <"$work/out")" -gt 150 ] || fail "the points are not there"
expect 0 tag two good
expect 0 store check --json
json "o['runs'] == 2" "o['problems'] == []"
