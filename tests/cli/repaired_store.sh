#!/usr/bin/env bash
# A damaged or lost history: gc removes no journal that a repair needs, and every row that a page, a folder or a journal
# still has is restored once.
. "$(dirname "$0")/lib.sh"
two_ended_runs

# --- gc: a journal is removed once the history has all of it
# rows FILE: the rows that came from journals, without those that only a supervisor adds
rows() {
    python3 - "$db" >"$1" <<'PY' || fail "the history cannot be read"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for query in (
    "SELECT id, name, step, loss, valid_loss, attempt FROM runs ORDER BY run",
    "SELECT r.id, a.attempt, a.state, a.exit_code FROM attempts a JOIN runs r USING (run)",
    "SELECT r.id, s.name, m.step, m.attempt, m.value, m.time_ms FROM metrics m JOIN series s USING (series)"
    " JOIN runs r USING (run)",
    "SELECT r.id, e.attempt, e.node, e.sequence, e.rank, e.time_ms, e.kind, e.json FROM events e"
    " JOIN runs r USING (run) WHERE e.node >= 0",
    "SELECT r.id, c.path, c.attempt, c.step, c.bytes, c.digest, c.valid_loss FROM checkpoints c"
    " JOIN runs r USING (run) WHERE c.attempt > 0",
    "SELECT r.id, k.attempt, k.rank, k.pid, k.device, k.state, k.exit_code FROM ranks k JOIN runs r USING (run)",
):
    found = [repr(row) for row in db.execute(query)]
    print("\n".join(found if "FROM runs ORDER" in query else sorted(found)))
PY
}
same_rows() {
    rows "$work/now"
    diff "$work/rows" "$work/now" >"$work/out" || fail "$1: other rows"
}
journals() { ls "$runs"/*/attempt-*/node-*/journal.jsonl 2>/dev/null | wc -l; }
sql() {
    python3 -c "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(sys.argv[2])
assert db.total_changes > 0
db.commit()" "$db" "$1" || fail "$1"
}
expect 0 resume two --wait --set schedule.steps=200
expect 0 fork two --wait --json --set schedule.steps=220 --set name=three
for run in "$runs"/*; do flock --timeout 20 "$run/supervisor.lock" true || fail "a supervisor stays"; done
keep
rows "$work/rows"
all=$(journals)
for damaged in "damage metrics" "damage pyramid" \
    "sql DELETE_FROM_metrics_WHERE_step=177_AND_attempt=2" "sql DELETE_FROM_events_WHERE_kind='finished'" \
    "sql UPDATE_metrics_SET_value=7_WHERE_step=178_AND_attempt=2" "sql DELETE_FROM_checkpoints"; do
    what=${damaged#* }
    ${damaged%% *} "${what//_/ }"
    expect 3 gc journals --yes --older 0s
    [ "$(journals)" = "$all" ] || fail "$damaged: a journal is gone"
    expect 0 store repair
    same_rows "$damaged"
    expect 0 store check --json
    json "o['problems'] == []"
    put_back
done

# --- a lost history: rows are restored from folders and journals, each once
rm "$db"*
for try in 1 2 3; do # a repair that is killed at any place
    "$dtrun" list >/dev/null 2>&1 &
    sleep 0.0$try
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
done
"$dtrun" list >/dev/null 2>&1 & # two repairs at once
expect 0 list
wait $! || fail "the other of two lists fails"
expect 0 list
same_rows "a lost history"
expect 0 show last --json
json "o['name'] == 'three'"
rm "$db"*
truncate -s 40000 "$runs/$one/attempt-1/node-0/journal.jsonl"
expect 0 list
says "without the events that these no longer hold"
expect 0 store check

# --- the readable part of a damaged file has more than the journals
put_back
rm "$runs"/*/attempt-*/node-*/journal.jsonl
damage events
expect 0 store repair --json
json "o['damaged'].startswith('$db.damaged-')" "o['runs'] == 3"
[ -s "$(field "o['damaged']")" ] || fail "the damaged file is not kept"
expect 0 store check
rows "$work/now"
grep -c "'loss'" "$work/rows" >"$work/out"
[ "$(grep -c "'loss'" "$work/now")" = "$(cat "$work/out")" ] || fail "points of the damaged file are lost"
put_back
head -c 4096 /dev/urandom | dd of="$db" conv=notrunc status=none # no page is readable
expect 3 list
says "'dtrun store repair'"
expect 0 store repair
same_rows "a file without a head"

# --- a repair that was killed between its last two steps: its file exists, and another command made a new history
put_back
printf 'step,loss\n1,2\n' >"$work/other.csv" # a run whose folder has nothing to restore
expect 0 import csv "$work/other.csv" --name imported
flock --timeout 20 "$runs/$one/supervisor.lock" true
python3 -c "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)')" "$db"
mv "$db" "$db.repaired"
rm -f "$db"-*
expect 0 list --json
json "len(o['runs']) == 3"
expect 1 store check
says "'dtrun store repair' completes it"
expect 0 store repair
[ ! -e "$db.repaired" ] || fail "the file is left"
expect 0 list --json
json "len(o['runs']) == 4" "o['runs'][0]['name'] == 'imported'"
expect 0 store check

# --- gc: a checkpoint is removed only if a readable one remains
put_back
for index in "$runs/$one"/checkpoints/step-00000150/model-0.safetensors; do
    printf X | dd of="$index" bs=1 seek=2000 conv=notrunc status=none
done
expect 3 gc checkpoints --yes --older 0s --keep 1
says "are damaged"
ls -d "$runs/$one"/checkpoints/step-* >"$work/out"
[ "$(wc -l <"$work/out")" -ge 2 ] || fail "only a damaged checkpoint is left"
put_back
expect 0 gc journals --yes --older 0s
[ "$(journals)" = 0 ] || fail "journals are left"
