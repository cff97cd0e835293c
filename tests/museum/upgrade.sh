#!/usr/bin/env bash
# upgrade.sh NAME: the programs of a released build are replaced by those of DTRUN_BIN while runs are active, as a package
# manager replaces them. The runs continue, also without their old supervisor, after a killed rank, and after a stop.
# On demand: `make.sh NAME --build` builds the release (a line of `versions`) in $MUSEUM_BUILDS.
builds=${MUSEUM_BUILDS:-${TMPDIR:-/tmp}/dtrun-museum-builds}
. "$(dirname "$0")/../cli/lib.sh"
old=$builds/${1:?a name of tests/museum/versions}/build/release/bin
[ -x "$old/dtrun" ] || { echo "skipped: no build in '$old': run 'tests/museum/make.sh $1 --build'"; exit 77; }
new=$(dirname "$dtrun")
mkdir "$work/bin"
place() { # folder: each file is complete at once, and processes keep the files that they have open
    local program
    for program in dtrun-agent dtrun-engine dtrun-reach dtrun; do
        cp "$1/$program" "$work/bin/.$program.new" && mv "$work/bin/.$program.new" "$work/bin/$program" ||
            { echo "cannot copy '$1/$program'"; exit 1; }
    done
}
place "$old"
dtrun=$work/bin/dtrun
make_tiny
steps=20000
launch() { # name option...
    local name=$1
    shift
    expect 0 launch "$work/tiny.yaml" --set name="$name" --set schedule.steps=$steps --set log.every=100 \
        --set evaluate.every=2000 --set checkpoint.every=2000 "$@"
}
supervisor() { pgrep -f "dtrun supervise $1\$"; }
field_of() { "$dtrun" status "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"; }
attempt_is() { [ "$(field_of "$1" attempt)" = "$2" ]; }
loss_of() { # run: "step,value" of every point; each step once
    expect 0 metrics "$1" --name loss
    python3 - "$work/out" "$steps" <<'PY' || fail "$1: a step is missing, or is there twice"
import csv, sys
rows = [(int(r["step"]), r["value"]) for r in csv.DictReader(open(sys.argv[1]))]
assert [step for step, _ in rows] == sorted({step for step, _ in rows} | set(range(100, int(sys.argv[2]) + 1, 100))), rows
print("\n".join(f"{step},{value}" for step, value in rows))
PY
}

# --- the release: one run to its end, and four that are active
launch whole --wait
loss_of whole >"$work/whole.csv"
for name in kept orphan killed stopped; do
    launch $name --detach
    declare "$name=$(head -n 1 "$work/out")"
done
for name in kept orphan killed stopped; do within 120 step_reached "${!name}" 100; done
expect 0 list --json --limit 0
cp "$work/out" "$work/list.json"

# --- the upgrade
place "$new"
subject="the upgrade"
expect 0 list --json --limit 0
json "{r['run'] for r in o['runs']} == {r['run'] for r in json.load(open('$work/list.json'))['runs']}"
json "all(r['attempt'] == 1 for r in o['runs'])" "sorted(r['state'] for r in o['runs']) == ['finished'] + 4 * ['running']"

# A run whose supervisor is killed gets one of the new version, and continues in the same attempt.
kill -9 "$(supervisor "$orphan")"
expect 0 status "$orphan"
subject="the supervisor of a run of the release"
within 30 supervisor "$orphan" >/dev/null

# A rank is killed: the old supervisor starts the next attempt, with the new agent and engine.
kill -9 "$(field_of "$killed" nodes | python3 -c 'import ast, sys; print(ast.literal_eval(sys.stdin.read())[0]["ranks"][1]["pid"])')"
within 120 attempt_is "$killed" 2
# The new version stops and resumes a run of the release.
expect 0 stop "$stopped" --json
json "o['state'] == 'stopped'"
expect 0 resume "$stopped" --wait --json
json "o['state'] == 'finished'" "o['attempt'] == 2"

# --- every run ends well, with every step once; ranks of the release have the losses of an undisturbed run
for name in kept orphan killed stopped; do
    within 300 state_is "${!name}" finished
    loss_of "${!name}" >"$work/$name.csv"
done
for name in kept orphan; do
    attempt_is "${!name}" 1 || fail "$name is in attempt $(field_of "${!name}" attempt)"
    cmp -s "$work/$name.csv" "$work/whole.csv" || fail "the losses of '$name' are not those of 'whole'"
done
