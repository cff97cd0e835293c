#!/usr/bin/env bash
# Imports runs of other programs into the history: exported runs come back unchanged, files of other programs are
# understood, and damaged files are named and leave nothing.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=30
run=$(field "o['run']")
sql() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall())' "$work/state/dtrun/store.db" "$1"; }
points() { # run: its points without attempts and id
    "$dtrun" export "$1" --to csv | cut -d, -f4-
}

# Export and import again.
expect 0 export "$run" --to csv -o "$work/a.csv"
expect 0 import csv "$work/a.csv" --group old --json
json "len(o['runs']) == 1" "o['skipped'] == 0" "o['points'] > 300"
back=$(field "o['runs'][0]")
diff <(points "$run") <(points "$back") >"$work/out" || fail "it does not come back the same"
expect 0 list --group old --json
json "[(r['run'], r['state'], r['step']) for r in o['runs']] == [('$back', 'finished', 30)]" "o['runs'][0]['loss'] > 0" \
    "o['runs'][0]['name'].startswith('tiny-')"
expect 0 show "$back"
says "imported from" "finished"
expect 0 show "$back" --json
expect 0 compare "$run" "$back"
lacks "the recipes are the same"
says "fewer than two runs have a recipe" "no recipe: $back (imported, or not readable)"
expect 0 status "$back"
expect 0 logs "$back" -n 5
says "step 30" "loss"
expect 0 store check --json
json "o['problems'] == []"
expect 0 export "$run" --to tensorboard "$work/board"
expect 0 import tensorboard "$work/board" --json
board=$(field "o['runs'][0]")
python3 - <(points "$run") <(points "$board") <<'PY' || fail "event files do not come back the same"
import csv, struct, sys
single = lambda text: struct.unpack("<f", struct.pack("<f", float(text)))[0]
a, b = ([(r[0], r[1], single(r[2]), r[3]) for r in list(csv.reader(open(path)))[1:]] for path in sys.argv[1:])
assert a == b and len(a) > 300, [pair for pair in zip(a, b) if pair[0] != pair[1]][:3]
PY
for command in resume generate; do # an imported run has neither recipe nor checkpoint
    expect 2 $command "$back"
    one_line
done
expect 2 fork "$back"
one_line
expect 0 export "$back" --to html "$work/back.html"
expect 0 rm --yes "$back"

# Files as other programs write them: a byte order mark, quotes, carriage returns, an ISO time, a text column, an empty
# cell, NaN.
printf '\xef\xbb\xbf"Step",model,"train - loss","=1+1, ""x""",Wall time\r\n1,gpt,2.5,,1700000000.5\r\n2,gpt,nan,7,1700000001\r\n\r\n3,gpt,-inf,8,2023-11-14T22:13:22Z\r\n' >"$work/w.csv"
expect 0 import csv "$work/w.csv" --name 'old run!' --tag a --note mine --json
json "o['points'] == 5" "o['skipped'] == 1"
wide=$(field "o['runs'][0]")
expect 0 metrics "$wide" --json
json "[(m['step'], m['name'], m['value'], m['time']) for m in o['metrics']] == [(2, '=1+1, \"x\"', 7.0, '2023-11-14T22:13:21.000Z'), (3, '=1+1, \"x\"', 8.0, '2023-11-14T22:13:22.000Z'), (1, 'train - loss', 2.5, '2023-11-14T22:13:20.500Z'), (2, 'train - loss', None, '2023-11-14T22:13:21.000Z'), (3, 'train - loss', None, '2023-11-14T22:13:22.000Z')]"
expect 0 list --tag a --json
json "o['runs'][0]['name'] == 'old_run_'" "o['runs'][0]['note'] == 'mine'"
expect 0 metrics "$wide"
grep -q "\"'=1+1, \"\"x\"\"\"" "$work/out" || fail "a formula is no text"
printf 'run,step,name,value\na,0,loss,1\nb,0,loss,2\na,1,loss,3\na,1,loss,4\n' >"$work/two.csv"
expect 0 import csv "$work/two.csv" --json
json "len(o['runs']) == 2"
expect 0 metrics "$(field "o['runs'][0]")" --json
json "[m['value'] for m in o['metrics']] == [1.0, 4.0]" # of several values at one step the last counts
printf 'Wall time,Step,Value\n1700000000,1,0.5\n' >"$work/accuracy.csv"
expect 0 import csv "$work/accuracy.csv" --json
expect 0 metrics "$(field "o['runs'][0]")"
says ",accuracy,0.5,"

# A name that a run cannot have stays in the note, and two such runs get different names; times can have an offset.
printf 'run,step,loss,time\n日本語,1,1,2024-05-01T12:00:00+02:00\nрусский,1,2,2024-05-01 10:00:00Z\nlr=1e-3/α,1,3,2024-05-01T04:30:00.5-0530\nlr=1e-3/β,1,4,2024-05-01T10:00:00+00\n' >"$work/names.csv"
expect 0 import csv "$work/names.csv" --group names
expect 0 list --group names --json
json "len({r['name'] for r in o['runs']}) == 4" \
    "{r['note'].split(', imported')[0] for r in o['runs']} == {\"'日本語'\", \"'русский'\", \"'lr=1e-3/α'\", \"'lr=1e-3/β'\"}" \
    "sorted(r['created'] for r in o['runs'])[2] == '2024-05-01T10:00:00.000Z'"
expect 0 metrics "$(field "[r['run'] for r in o['runs'] if 'α' in r['note']][0]")"
says "2024-05-01T10:00:00.500Z"
for time in 2024-05-01T12:00:00+25:00 2024-05-01T12:00:00+2:0x 2024-05-01T12:00:00CET; do
    printf 'step,loss,time\n1,1,%s\n' "$time" >"$work/offset.csv"
    expect 3 import csv "$work/offset.csv"
    says "is not a time"
done

# The report has what was stored, and names what was left out.
printf 'step,loss\n1,2\n1,3\n2,4\n' >"$work/twice.csv"
expect 0 import csv "$work/twice.csv"
says "imported 2 points of 1 run" "1 points were replaced"
expect 0 import csv "$work/twice.csv" --json
json "o['points'] == 2" "o['replaced'] == 1" "o['left_out'] == []"
[ "$("$dtrun" metrics "$(field "o['runs'][0]")" | wc -l)" -eq 3 ] || fail "not the points that were reported"
printf 'step,loss,lr,iteration,note\n1,2,"2,5",7,words\n' >"$work/comma.csv"
expect 0 import csv "$work/comma.csv"
says "left out" "'lr'" "'iteration'" "'note'" "with a decimal point: 2.5"
expect 0 import csv "$work/comma.csv" --json
json "o['points'] == 1" "sorted(o['left_out']) == ['iteration', 'lr', 'note']" "o['skipped'] == 2"
printf 'step,value,other\n1,2,3\n' >"$work/value.csv"
expect 0 import csv "$work/value.csv" --metric loss --json
json "o['points'] == 1" "o['left_out'] == ['other']"

# --name works for every format; an option of another format is refused by its name.
expect 0 import tensorboard "$work/board" --name mine --json
expect 0 show "$(field "o['runs'][0]")" --json
json "o['name'] == 'mine'"
mkdir -p "$work/boards"
cp -r "$work/board"/*/ "$work/boards/train"
cp -r "$work/board"/*/ "$work/boards/valid"
expect 0 import tensorboard "$work/boards" --name both --group pair --json
json "len(o['runs']) == 2"
expect 0 list --group pair --json
json "sorted(r['name'] for r in o['runs']) == ['both-train', 'both-valid']"
expect 0 import csv "$work/two.csv" --name both --group csvs --json
expect 0 list --group csvs --json
json "sorted(r['name'] for r in o['runs']) == ['both-a', 'both-b']"
refused() { # option arguments...
    local option=$1
    shift
    expect 2 "$@"
    one_line
    says "--$option"
}
refused metric import tensorboard "$work/board" --metric x
refused metric import csv "$work/twice.csv" --metric x
refused experiment import csv "$work/twice.csv" --experiment x
refused output import csv "$work/twice.csv" --output "$work/o"
refused flags import tensorboard "$work/board" --flags
refused metric import mlflow http://127.0.0.1:9 --metric x
refused name import fairseq --name x -- fairseq-train data
refused tag import slurm --tag x "$work/script"
refused name export "$run" --to html "$work/n.html" --name loss
refused force export "$run" --to hf "$work/hf" --force

# A wrong file leaves nothing.
before=$(sql 'SELECT count(*), (SELECT count(*) FROM metrics) FROM runs') folders=$(ls "$work/state/dtrun/runs" | wc -l)
wrong() { # text words...
    printf "$1" >"$work/bad.csv"
    shift
    expect "${code:-3}" import csv "$work/bad.csv"
    one_line
    says "$@"
    [ "$(sql 'SELECT count(*), (SELECT count(*) FROM metrics) FROM runs')" = "$before" ] || fail "rows are left"
    [ "$(ls "$work/state/dtrun/runs" | wc -l)" -eq "$folders" ] || fail "a folder is left"
}
wrong 'step,loss\n1,2\n2,x\n' "bad.csv:3: column 2: 'x' is not a number"
wrong 'step,loss\n1,2\n2,"2,5"\n' "bad.csv:3: column 2: '2,5' is not a number (write it with a decimal point)"
wrong 'step,loss\n1,2\n2\n' "bad.csv:3: 1 cells, but the title line has 2"
wrong 'step,loss\n-1,2\n' "'-1' is not a step"
wrong 'step,loss\n1.5,2\n' "'1.5' is not a step"
wrong 'step,loss\n1,"2\n' "unclosed quote"
wrong 'step,loss,time\n1,2,yesterday\n' "'yesterday' is not a time"
wrong 'step,loss\n1,"2"3\n' "unexpected text after a quoted cell"
wrong 'step,loss\n\0\n' "is not a text file"
code=2 wrong 'epoch,loss\n1,2\n' "no column 'step'"
code=2 wrong 'step;loss\n1;2\n' "separated by ';'" "only ','"
code=2 wrong 'step;loss, all\n1;2,5\n' "separated by ';'"
code=2 wrong 'step\tloss\n1\t2\n' "separated by tabs"
code=2 wrong 'step,loss,loss\n1,2,3\n' "columns 2 and 3 are both called 'loss'"
code=2 wrong 'step,loss\n' "has no points"
code=2 wrong '' "no column 'step'"
expect 2 import csv "$work/nosuch.csv"
expect 2 import wandb "$work/a.csv"
says "expected csv, mlflow, tensorboard"
mkdir "$work/empty"
expect 2 import tensorboard "$work/empty"
says "has no points"
event=$(find "$work/board" -name '*tfevents*')
python3 - "$event" "$work" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
open(sys.argv[2] + "/cut.tfevents", "wb").write(data[:-7])
data[len(data) // 2] ^= 1
open(sys.argv[2] + "/bad.tfevents", "wb").write(data)
PY
expect 3 import tensorboard "$work/bad.tfevents"
one_line
says "is damaged"
[ "$(sql 'SELECT count(*), (SELECT count(*) FROM metrics) FROM runs')" = "$before" ] || fail "rows are left"
expect 0 import tensorboard "$work/cut.tfevents" --json # the file is still being written
json "o['points'] > 300"
