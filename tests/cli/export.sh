#!/usr/bin/env bash
# Exports runs to files of other programs and reads these with our own readers (export_peers.py: with the programs
# themselves, on demand). Covers hostile names, NaN and infinity, an active run, and a full disk.
. "$(dirname "$0")/lib.sh"
make_tiny
here=$(dirname "${BASH_SOURCE[0]}")

for lr in 1e-3 1e-2; do
    expect 0 launch --wait --json "$work/tiny.yaml" --set optimizer.lr=$lr --group rates
    runs+=("$(field "o['run']")")
done
python3 - "$work/state/dtrun/store.db" "${runs[1]}" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
number, = db.execute("SELECT run FROM runs WHERE id = ?", (sys.argv[2],)).fetchone()
db.execute("UPDATE runs SET name = ? WHERE run = ?", ('=cmd("<script>")', number))
loss, = db.execute("SELECT series FROM series WHERE run = ? AND name = 'loss'", (number,)).fetchone()
for step, value in ((3, None), (4, 9e999), (5, -9e999)):
    db.execute("UPDATE metrics SET value = ? WHERE series = ? AND step = ?", (value, loss, step))
db.execute("UPDATE series SET name = ? WHERE run = ? AND name = 'step_seconds'", ('@SUM(1),"<b>\u00e4', number))
db.commit()
PY

"$dtrun" metrics "${runs[@]}" --json >"$work/points.json"
expect 0 export "${runs[@]}" --to csv
cp "$work/out" "$work/a.csv"
expect 0 export --group rates --to jsonl
cp "$work/out" "$work/a.jsonl"
expect 0 export --group rates --to csv --wide -o "$work/wide.csv"
expect 0 export "${runs[@]}" --to parquet "$work/a.parquet" --json
json "o['to'] == 'parquet'" "o['path'] == '$work/a.parquet'" "o['runs'] == '${runs[*]}'.split()"
expect 0 export "${runs[@]}" --to tensorboard "$work/board"
python3 "$here/export_read.py" "$work" "${runs[@]}" || fail "what was exported is not what metrics say"
expect 0 export "${runs[0]}" --to csv --name valid_loss
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "not three points and a head"

expect 2 export "${runs[0]}" --to csv -o "$work/a.csv"
one_line
says "exists; use --force to replace it"
expect 0 export "${runs[0]}" --to csv -o "$work/a.csv" --force
expect 2 export "${runs[0]}" --to tensorboard "$work/board"
expect 2 export "${runs[0]}" --to csv -o /dev/null --force
says "not a regular file"
expect 2 export "${runs[0]}" --to parquet
says "FILE is missing"
expect 2 export "${runs[0]}" --to parquet "$work"
expect 2 export "${runs[0]}" "$work/b.csv" --to csv
says "--output $work/b.csv writes to a file of that name"
expect 2 export "${runs[0]}" --to xlsx
expect 2 export "${runs[0]}"
says "--to is missing"
expect 2 export --to csv
expect 2 export nosuchrun --to csv
expect 2 export "${runs[0]}" --to csv --name nosuch
says "none of these runs has a metric 'nosuch'"
expect 2 export "${runs[0]}" --to jsonl --wide
expect 2 export "${runs[0]}" --to csv --json
expect 3 export "${runs[0]}" --to csv -o "$work/nosuch/a.csv"
one_line

# An active run: all metrics end at the same step, and each line is complete.
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000
running=$(cat "$work/out")
within 60 step_reached "$running" 50
for format in csv jsonl; do
    expect 0 export "$running" --to $format
done
python3 - "$work/out" <<'PY' || fail "the curves do not end at one step"
import collections, json, sys
last = collections.defaultdict(int)
for line in open(sys.argv[1]):
    point = json.loads(line)
    last[point["name"]] = max(last[point["name"]], point["step"])
ends = {last[n] for n in ("loss", "learning_rate", "gradient_norm", "tokens_per_second")}
assert len(ends) == 1 and ends.pop() >= 50, last
PY
expect 0 export "$running" --to parquet "$work/running.parquet"
expect 0 stop "$running"

# A full disk leaves the existing file, and no partial one.
mkdir "$work/small"
if mount -t tmpfs -o size=16k none "$work/small" 2>/dev/null; then
    echo before >"$work/small/a.csv"
    for to in csv jsonl parquet; do
        expect 3 export "${runs[@]}" --to $to -o "$work/small/a.csv" --force
        one_line
        says "No space left on device"
        [ "$(cat "$work/small/a.csv")" = before ] || fail "the file that was there is gone"
        [ "$(ls "$work/small" | wc -l)" -eq 1 ] || fail "half a file is left"
    done
    expect 3 export "${runs[@]}" --to tensorboard "$work/small"
    [ -z "$(find "$work/small" -name '*tfevents*')" ] || fail "half an event file is left"
    umount "$work/small"
fi

# --- the vocabulary of a model of characters or bytes is exported; a model of ids has none, which is reported
printf 'a"b\\c\t\x01\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82 d\r\n%.0s' {1..300} >"$work/odd.txt"
head -c 8000 /dev/zero | tr '\0' '\1' >"$work/ids.bin"
for tokens in char byte nanogpt; do
    data=$work/odd.txt
    [ $tokens != nanogpt ] || data=$work/ids.bin
    expect 0 launch --wait --json "$work/tiny.yaml" --set "data.train=[$data]" --set data.tokens=$tokens \
        --set schedule.steps=6 --set model.vocab=$([ $tokens != nanogpt ] && echo 0 || echo 300)
    run=$(field "o['run']")
    expect 0 export --to hf "$run" "$work/hf-$tokens"
    if [ $tokens = nanogpt ]; then
        says "has no tokenizer"
        [ ! -e "$work/hf-$tokens/tokenizer.json" ] || fail "there is a tokenizer"
        continue
    fi
    lacks "has no tokenizer"
    python3 "$here/plain_tokenizer.py" "$work/hf-$tokens" "$work/odd.txt" $tokens >"$work/err" 2>&1 || fail "the vocabulary is another"
done
