#!/usr/bin/env bash
# dtrun top: a plain table without a terminal; on a terminal the keys, its size, and that the terminal is restored.
. "$(dirname "$0")/lib.sh"

expect 0 top
says "no active runs"
python3 - "$work/points.csv" <<'PY'
import sys
with open(sys.argv[1], "w") as file:
    print("run,step,loss,quality", file=file)
    for run in "early", "river", "table", "sly":
        for step in range(1, 41):
            print(f"{run},{step},{1 / step},{step / 7}", file=file)
PY
expect 0 import csv "$work/points.csv"
python3 - "$work/state/dtrun/store.db" <<'PY'
import json, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
now = int(time.time() * 1000)
rows = [  # id, name, kind of model, ended so many minutes ago, loss, speed
    ("aaa222", "early", "gpt2", 60, 1.25, 100), ("bbb333", "river", "gpt2", 4, 2.5, 16600),
    ("ccc444", "table", "mlp", 3, 0.5, 900), ("ddd555", "\x1b[2Jsly", "gpt2", 2, 1.5, 50)]
for run, name, kind, minutes, loss, speed in rows:
    at = now - minutes * 60000
    number = db.execute("SELECT run FROM runs WHERE name = ?", (name.split("J")[-1],)).fetchone()[0]
    db.execute("UPDATE runs SET id = ?, name = ?, created_ms = ?, loss = ?, tokens_per_second = ? WHERE run = ?",
               (run, name, at - 60000, loss, speed, number))
    db.execute("UPDATE attempts SET steps_total = 40, started_ms = ?, ended_ms = ?, recipe_json = ? WHERE run = ?",
               (at - 60000, at, json.dumps({"name": name, "model": {"kind": kind}}), number))
db.commit()
PY

expect 0 top
says "river" "bbb333" "finished" "40/40" "2.5000" "16.6k tokens/s" "900 rows/s" "2m ago" "?[2Jsly"
lacks "early" $'\x1b'
expect 0 top --all --sort loss
[ "$(awk 'NR > 1 {print $2}' "$work/out" | tr '\n' ' ')" = "ccc444 aaa222 ddd555 bbb333 " ] || fail "not by loss"
expect 0 top --json
json "[r['run'] for r in o['runs']] == ['ddd555', 'ccc444', 'bbb333']"
expect 2 top nobody
says "unknown run"
expect 2 top --sort size

# list counts the same as the runs do
expect 0 list
says "speed" "900 rows/s" "16.6k tokens/s"
expect 0 list name=table
says "rows/s" "900"
lacks "tokens/s" "900 rows/s"

LC_ALL=C.UTF-8 TERM=xterm python3 tests/cli/top.py "$dtrun" || fail "on a terminal"
