#!/usr/bin/env bash
# Lists: filters, order, columns, the width of a terminal.
. "$(dirname "$0")/lib.sh"

# Runs as they are stored in the history.
expect 0 list
python3 - "$work/state/dtrun/store.db" <<'PY'
import json, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
now = int(time.time() * 1000)
rows = [  # id, name, state, hours ago, lr, loss, tags, group
    ("aaa222", "gpt-a", "finished", 30, 1e-4, 2.5, "", "g1"),
    ("bbb333", "gpt-b", "failed", 20, 3e-4, None, "bad", "g1"),
    ("ccc444", "mlp", "finished", 3, 1e-3, 1.5, "good night", ""),
    ("ddd555", "gpt-c", "stopped", 1, 1e-3, 2.0, "good", "g2")]
for run, name, state, hours, lr, loss, tags, group in rows:
    at = now - hours * 3600000
    recipe = {"name": name, "ranks": 2, "optimizer": {"kind": "adamw", "lr": lr}, "data": {"train": ["/d/corpus.txt"]},
              "env": ["KEY=" + 20 * run]}
    number = db.execute("INSERT INTO runs (id, name, created_ms, attempt, step, loss, recipe_path, recipe_text,"
                        " tags, run_group) VALUES (?, ?, ?, 1, 10, ?, 'r.yaml', '', ?, ?)",
                        (run, name, at, loss, tags, group)).lastrowid
    db.execute("INSERT INTO attempts (run, attempt, state, start_step, steps_total, created_ms, started_ms, ended_ms,"
               " exit_code, recipe_json, recipe_hash) VALUES (?, 1, ?, 0, 10, ?, ?, ?, 0, ?, ?)",
               (number, state, at, at, at + 1000, json.dumps(recipe), str(lr)))
    if loss is not None:
        series = db.execute("INSERT INTO series (run, name) VALUES (?, 'valid_loss')", (number,)).lastrowid
        db.executemany("INSERT INTO metrics (series, step, attempt, value, time_ms) VALUES (?, ?, 1, ?, ?)",
                       [(series, 5, loss - 1, at), (series, 10, loss + 1, at)])
        db.execute("UPDATE runs SET valid_loss = ? WHERE run = ?", (loss + 1, number))
db.commit()
PY

lists() { # "ids in order" arguments...
    local wanted=$1
    shift
    expect 0 list --json "$@"
    [ "$(field "' '.join(r['run'][0] for r in o['runs'])")" = "$wanted" ] ||
        fail "lists $(field "[r['run'] for r in o['runs']]"), wanted $wanted"
}
lists "d c b a"
lists "d c" --tag good
lists "c" --tag good --tag night
lists "" --tag goo
lists "b a" --group g1
lists "d b a" --name 'gpt-*'
lists "c" 'name!=gpt-*'
lists "d c" --since 10h
lists "d c b" --since 1d
lists "d c b a" --since 2020-01-01
lists "d c b" 'optimizer.lr>1e-4'
lists "d c" optimizer.lr=0.001
lists "b" 'optimizer.lr > 1e-4' 'optimizer.lr<=3e-4'
lists "d c" 'loss<2.2' 'state=*'
lists "d a" 'loss>=2'
lists "c" valid_loss.min=0.5
lists "a" 'valid_loss.max>=3.5'
lists "c d a b" --sort loss
lists "a d c b" --sort -loss
lists "a b d c" --sort optimizer.lr
lists "c a" --state finished --sort loss
lists "c" --sort loss -n 1
expect 0 list --sort loss -n 1
says "there are more"

expect 0 list --json --columns optimizer.lr,valid_loss.min,data.train -n 2
json "[r['columns'] for r in o['runs']] == [{'optimizer.lr': 0.001, 'valid_loss.min': 1.0, 'data.train': '/d/corpus.txt'}, {'optimizer.lr': 0.001, 'valid_loss.min': 0.5, 'data.train': '/d/corpus.txt'}]"
expect 0 list --columns optimizer.lr,data.train
[ "$(head -2 "$work/out" | tr -s ' ')" = $'run optimizer.lr data.train\nddd555 0.001 corpus.txt' ] ||
    fail "not these columns"
expect 0 list
says "optimizer.lr" "group" "tags" "good night"
lacks "ranks" # a column in which they do not differ
expect 0 list --tag good
lacks "optimizer.lr"

expect 0 list
says "tokens/s (last)"
expect 0 list --columns ranks,gpus # a problem of a node, not of the run
says "ranks per node" "gpus per node"

expect 2 list 'optimizer.lrr>1'
one_line
says "did you mean 'optimizer.lr'?"
expect 2 list --sort nosuchmetric
says "no run has 'nosuchmetric'"
expect 2 list --columns loss,nosuchmetric
expect 2 list 'loss>much'
says "'much' is not a number"
expect 2 list '>3'
# The newest loss is not a number: no earlier value replaces it, and the run comes last in both orders.
cat >"$work/nan.sh" <<'END'
for loss in 1.9 1.2 NaN; do echo "{\"step\": $((n += 1)), \"loss\": $loss, \"accuracy\": $loss}"; done
END
printf 'name: lost\ncommand: sh nan.sh\nmetrics: json\n' >"$work/nan.yaml"
expect 0 launch --wait "$work/nan.yaml"
says "lost" "diverged at step 3" "nan"
lacks "finished"
expect 0 list --json
json "o['runs'][0]['diverged'] is True" "o['runs'][0]['loss'] is None" "o['runs'][0]['state'] == 'finished'" "not o['runs'][1]['diverged']"
lost=$(field "o['runs'][0]['run']")
lists "c d a ${lost:0:1} b" --sort loss
lists "a d c ${lost:0:1} b" --sort -loss
lists "c" 'loss<2'
for command in list show status; do
    expect 0 $command $([ $command = list ] || echo lost)
    says "diverged" "nan"
done
expect 0 compare lost ccc444 --metric loss
says "nan" "diverged"
expect 0 compare lost ccc444 --metric loss --json
json "o['runs'][0]['metrics']['loss']['last'] == {'value': None, 'step': 3, 'difference': None}" "o['runs'][0]['metrics']['loss']['best']['value'] == 1.2"
expect 0 list --columns accuracy
says "nan"
expect 0 status --json lost
json "o['diverged']"
sed -i 's/NaN/NaN 1.1/' "$work/nan.sh" # the loss recovers: the last value counts
expect 0 launch --wait "$work/nan.yaml" --set name=found
lacks "diverged at" "nan"
expect 0 rm --yes found
expect 0 rm --yes lost

expect 2 list --since yesterday
says "expected a time such as 90m"
# Values of the environment are not columns, unless requested.
expect 0 list
lacks "KEY="
says "optimizer.lr"
expect 0 list --columns env
says "KEY=aaa222aaa222"
expect 0 list 'loss>100'
says "no runs like that"

# No line is wider than the terminal, and the first columns are always shown.
for width in 30 44 60 80 120; do
    subject="dtrun list in $width columns"
    python3 - "$width" "$dtrun" list >"$work/out" 2>"$work/err" <<'PY' || fail "too wide, or something is missing"
import fcntl, os, pty, re, struct, sys, termios
width, command = int(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    sys.stdin.readline()
    os.execve(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
os.write(terminal, b"\n")
text = b""
try:
    while data := os.read(terminal, 65536):
        text += data
except OSError:
    pass
lines = re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r", "").split("\n")[1:-1]
print("\n".join(lines))
assert len(lines) == 5 and all(len(line) <= width for line in lines), lines
assert lines[1].startswith("ddd555"), lines
assert ("optimizer.lr" in lines[0]) == (width == 120), lines
PY
done

# CSV: read by Python's csv, it has what --json has; texts with quotes, commas, line breaks and formulas are kept
python3 - "$work/state/dtrun/store.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for run, note in (("aaa222", 'a "b", c\nd\r\n'), ("bbb333", "=1+1"), ("ccc444", "-é\t漢"), ("ddd555", "@x;'y'")):
    db.execute("UPDATE runs SET note = ? WHERE id = ?", (note, run))
db.execute("UPDATE runs SET name = '+gpt', parent = 'bbb333', parent_step = 7 WHERE id = 'aaa222'")
db.execute("UPDATE runs SET loss = -2.5e-7 WHERE id = 'ccc444'")
db.commit()
PY
columns=optimizer.lr,valid_loss.min,data.train,note
expect 0 list --json --columns $columns --sort name
cp "$work/out" "$work/list.json"
expect 0 list --csv --columns $columns --sort name
python3 - "$work" <<'PY' || fail "not what --json has"
import csv, json, sys
work = sys.argv[1]
rows = list(csv.DictReader(open(f"{work}/out", newline="", encoding="utf-8"), strict=True))
runs = json.load(open(f"{work}/list.json"))["runs"]
def text(value):
    if value is None: return ""
    if isinstance(value, bool): return "true" if value else "false"
    return "'" + value if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else str(value)
assert len(rows) == len(runs) == 4
for row, run in zip(rows, runs):
    parent = run.pop("parent") or {"run": None, "step": None}
    wanted = {**run, **run.pop("columns"), "parent": parent["run"], "parent_step": parent["step"]}
    del wanted["columns"]
    wanted["tags"] = " ".join(run["tags"])
    assert set(row) == set(wanted), (row, wanted)
    for key, value in wanted.items():
        same = float(row[key]) == value if isinstance(value, float) else row[key] == text(value)
        assert same, (key, row[key], value)
PY
head -1 "$work/out" | grep -q '^run,name,task,state,.*,activity,parent_step,optimizer.lr,valid_loss.min,data.train$' ||
    fail "not these keys"
head -1 "$work/out" >"$work/head"
expect 0 list --csv --columns $columns --name nobody # the same first line without a run
cmp -s "$work/out" "$work/head" || fail "not the line of keys alone"
expect 2 list --csv --json
says "--csv and --json cannot be combined"
