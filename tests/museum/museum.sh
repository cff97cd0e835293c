#!/usr/bin/env bash
# museum.sh NAME: the current build lists, shows, generates from, resumes and supervises the runs of a released build
# (make.sh), and reaches the same losses.
. "$(dirname "$0")/../cli/lib.sh"
museum=tests/museum
tar -xJf "$museum/runs/$1.tar.xz" -C "$work"
about=$work/state/about.json
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$about" "$1"; }
python3 "$museum/move.py" "$work/state" "$(of root)" "$work"
python3 "$museum/corpus.py" >"$work/corpus.txt"
ln -s "$(dirname "$dtrun")" "$work/bin" # the programs of the current build, in place of the old ones
dtrun=$work/bin/dtrun

# Losses on another processor differ by at most this much (tests/dist/golden_losses.sh). The difference is not 0 on a
# processor with the same instruction set either, because oneDNN also divides its sums by the size of the caches.
bound=1.2e-7
ends_like() { # run whole: both runs have the same curves of loss and validation loss
    local name
    for name in loss valid_loss; do
        expect 0 metrics "$1" --name $name
        cp "$work/out" "$work/got.csv"
        expect 0 metrics "$2" --name $name
        python3 - "$work/got.csv" "$work/out" "$bound" <<'PY' || fail "$1: the curve of $name is not that of $2"
import csv, sys
got, want = ([(int(r["step"]), float(r["value"])) for r in csv.DictReader(open(p))] for p in sys.argv[1:3])
got, want = dict(got), dict(want)
assert got.keys() == want.keys(), (got, want)
assert all(abs(got[s] - want[s]) <= float(sys.argv[3]) * abs(want[s]) for s in got), (got, want)
PY
    done
}

# `dtrun list` shows what the released build showed.
expect 0 list --json --limit 0
cp "$work/out" "$work/today.json"
python3 - "$work/state/list.json" "$work/today.json" <<'PY' || fail "list says otherwise than it did"
import json, sys
then, now = ({r["run"]: r for r in json.load(open(p))["runs"]} for p in sys.argv[1:3])
for run, row in then.items():
    assert {key: now[run].get(key) for key in ("name", "state", "step", "loss", "valid_loss", "exit_code")} == \
           {key: row.get(key) for key in ("name", "state", "step", "loss", "valid_loss", "exit_code")}, (row, now[run])
PY
kinds="plain epochs fsdp" # trained by the engine
[ ! -e "$work/state/tensor.txt" ] || kinds+=" tensor"
whole_and_stopped=$kinds
[ ! -d "$work/state/work" ] || whole_and_stopped+=" command"
version=$(python3 -c "import sqlite3; print(*sqlite3.connect('$work/state/dtrun/store.db').execute('PRAGMA user_version').fetchone())")
[ "$version" = 1 ] || fail "the history has version $version"
for kind in $whole_and_stopped; do
    for run in "$kind"-{whole,stopped}; do
        expect 0 show "$run"
        says "$run"
        expect 0 checkpoints "$run" --json
        json "len(o['checkpoints']) > 0"
    done
done

# The crashed run is still running according to its history: it continues by itself.
for kind in $kinds; do
    expect 0 generate "$kind-whole" --seed 1 --tokens 40 --prompt the
    cmp -s "$work/out" "$work/state/$kind.txt" || fail "$kind-whole generates another text"
    expect 0 resume "$kind-stopped" --wait --json
    json "o['state'] == 'finished'" "o['attempt'] == 2"
    ends_like "$kind-stopped" "$kind-whole"
done
if [ -d "$work/state/work" ]; then # continues from the checkpoint of step 5
    expect 0 resume command-stopped --wait --json
    json "o['state'] == 'finished'" "o['attempt'] == 2" "o['step'] == 20"
fi
within 120 state_is plain-crashed finished
expect 0 show plain-crashed --json
json "len(o['attempts']) == 2"
ends_like plain-crashed plain-whole
expect 0 resume plain-whole --wait --json --set schedule.steps=22
json "o['state'] == 'finished'" "o['steps'] == 22"
