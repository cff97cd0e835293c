#!/usr/bin/env bash
# Runs are removed permanently: rm asks, refuses active runs, removes nothing else, and completes an interrupted
# removal. The history is checked and backed up as a whole.
. "$(dirname "$0")/lib.sh"
make_tiny
runs=$work/state/dtrun/runs
short=(--set schedule.steps=20)

expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
kept=$(field "o['run']")
expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
gone=$(field "o['run']")
expect 0 fork "$gone" --wait --json --set schedule.steps=30
fork=$(field "o['run']")
expect 0 store check --json
json "o['runs'] == 3" "o['problems'] == []"
expect 2 rm "$gone"
one_line
says "not a terminal: use --yes"
[ -d "$runs/$gone" ] || fail "it was removed without a word"

answer() { # word: the answer that a person types
    python3 - "$1" "$dtrun" rm "$gone" >"$work/out" 2>"$work/err" <<'PY'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
try:
    while data := os.read(terminal, 65536):
        text += data
        if b"[y/N]" in text and sys.argv[1]:
            os.write(terminal, sys.argv[1].encode() + b"\n")
            sys.argv[1] = ""
except OSError:
    pass
print(text.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}
subject="an answer of no"
answer n && fail "exit code 0"
says "$gone" "remove this run permanently" "kB" "nothing was removed"
[ -d "$runs/$gone" ] || fail "no was taken for yes"
subject="an answer of yes"
answer y || fail "exit code is not 0"
[ ! -e "$runs/$gone" ] || fail "the folder is there"
expect 2 show "$gone"
expect 0 show "$fork" --json
json "o['parent']['run'] == '$gone'"
expect 0 resume "$fork" --wait --json --set schedule.steps=40
json "o['steps'] == 40"
[ -e "$work/tiny.yaml" ] && [ -e "$work/corpus.txt" ] || fail "more than the run was removed"
python3 - "$work/state/dtrun/store.db" <<'PY' || fail "rows are left"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for table in ("attempts", "nodes", "ranks", "events", "series", "checkpoints"):
    assert not db.execute(f"SELECT 1 FROM {table} WHERE run NOT IN (SELECT run FROM runs) LIMIT 1").fetchall(), table
assert not db.execute("SELECT 1 FROM metrics WHERE series NOT IN (SELECT series FROM series) LIMIT 1").fetchall()
PY
expect 0 list # writes no new rows
expect 0 store check --json
json "o['runs'] == 2" "o['problems'] == []"

expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=1000000000 --set evaluate.every=100000000 \
    --set checkpoint.every=100000000
running=$(cat "$work/out")
expect 2 rm --yes "$kept" "$running"
one_line
says "stop it first ('dtrun stop $running')"
[ -d "$runs/$kept" ] || fail "another that was named with it was removed"
expect 0 stop "$running"

# Interrupted after the mark: the run is listed and has no folder; the same command completes the removal.
mv "$runs/$running" "$runs/.removed-$running"
expect 1 store check
says "run '$running' has no folder" "is left of an interrupted removal"
expect 0 rm --yes "$running" --json
json "[r['run'] for r in o['removed']] == ['$running']"
[ ! -e "$runs/.removed-$running" ] || fail "half a folder is left"
mkdir "$runs/nosuch"
expect 1 store check
says "nosuch' does not belong to a run"
rmdir "$runs/nosuch"

expect 0 store backup "$work/copy.db"
expect 2 store backup "$work/copy.db"
says "already exists"
[ "$(stat -c %a "$work/copy.db")" = 600 ] || fail "others may read the copy"
expect 0 rm --yes "$kept" "$fork"
cp "$work/copy.db" "$work/state/dtrun/store.db"
rm -f "$work/state/dtrun/store.db-"*
expect 0 list --json
json "sorted(r['run'] for r in o['runs']) == sorted(['$kept', '$fork'])"
expect 2 store mend
says "expected check, repair, or backup FILE"
expect 2 store backup
