#!/usr/bin/env bash
# Sweeps: grid, zip and random; a group that survives Ctrl-C and the death of its driver; a failed point ends no other;
# no point runs twice; early stops; stop, status, list and compare of the group.
. "$(dirname "$0")/lib.sh"
make_tiny
cat >"$work/sweep.yaml" <<'YAML'
extends: tiny.yaml
name: lr
sweep: {optimizer.lr: [1e-3, 3e-3], seed: [1, 2]}
schedule: {steps: 30}
YAML
values() { printf "[p['values'] for p in o['points']]"; }
group_ended() { "$dtrun" status "$1" --json 2>/dev/null | python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin)["ended"])'; }
driver_of() { pgrep -f "^dtrun drive $1\$" | while read -r pid; do grep -qzxF "XDG_STATE_HOME=$XDG_STATE_HOME" "/proc/$pid/environ" && echo "$pid"; done; }

# Each value combined with each other, as runs with names and a group.
expect 0 validate "$work/sweep.yaml"
expect 0 launch "$work/sweep.yaml" --wait --json --tag night
json "o['group'] == 'lr' and o['ended']" "all(p['state'] == 'finished' and p['step'] == 30 for p in o['points'])" \
    "$(values) == ['optimizer.lr=1e-3 seed=1', 'optimizer.lr=1e-3 seed=2', 'optimizer.lr=3e-3 seed=1', 'optimizer.lr=3e-3 seed=2']" \
    "[p['name'] for p in o['points']] == ['lr-1', 'lr-2', 'lr-3', 'lr-4']"
expect 0 list --group lr --tag night --json
json "len(o['runs']) == 4"
expect 0 compare --group lr
says "optimizer.lr" "seed"
expect 0 show lr-3 --json
json "o['recipe']['optimizer']['lr'] == 3e-3" "o['recipe']['search']['at_once'] == 1"
expect 0 status lr
says "lr-4" "optimizer.lr=3e-3 seed=2"

# Points at the same time; the command is detached and the driver killed: the next command restarts it, and no point
# runs twice.
ever=1000000000
expect 0 launch "$work/sweep.yaml" --detach --set search=zip --set search.at_once=2 --set schedule.steps=$ever --group two --name pair
says two
both_run() { [ "$("$dtrun" list --group two --state running --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["runs"]))')" = 2 ]; }
within 20 both_run
driver=$(driver_of two)
kill -9 "$driver"
DTRUN_TERMINAL=file:80x24 expect 0 status two # run as by a server: the processes that it started would end with it
[ -z "$(driver_of two)" ] || fail "what is run for others starts a driver"
expect 0 status two --json
json "[p['values'] for p in o['points']] == ['optimizer.lr=1e-3 seed=1', 'optimizer.lr=3e-3 seed=2']"
driven() { "$dtrun" status two >/dev/null; [ -n "$(driver_of two)" ]; }
within 20 driven
[ "$(driver_of two)" != "$driver" ] || fail "the killed driver is there"
expect 0 stop two --json
json "o['ended']" "all(p['state'] == 'stopped' for p in o['points'])"
expect 0 list --group two --json
json "sorted(r['name'] for r in o['runs']) == ['pair-1', 'pair-2']" # --group does not name the runs
json "len(o['runs']) == 2"
expect 0 stop two
[ -z "$(driver_of two)" ] || fail "a driver is left"

# Unfinished points continue; a point that somebody finished or removed by hand is left alone.
expect 2 resume two --set schedule.steps=9
says "--set does not apply to 'two', which is a sweep"
expect 0 show pair-1 --json
expect 0 resume pair-1 --wait --json --set schedule.steps=$(($(field "o['step']") + 5))
expect 0 resume two --detach
says "1 of 2 runs resumed or started"
within 20 state_is pair-2 running
expect 2 resume two
says "sweep 'two' continues"
expect 0 stop two --json
json "[p['state'] for p in o['points']] == ['finished', 'stopped']"
expect 0 rm pair-2 --yes
expect 0 resume two --json
json "[p['state'] for p in o['points']] == ['finished', 'removed']" "o['ended']"

# A failed point ends no other; a random draw is reproducible; a list can be a value.
cp "$work/corpus.txt" "$work/other.txt"
cat >"$work/data.yaml" <<'YAML'
extends: tiny.yaml
sweep: {data.train: [corpus.txt, [corpus.txt, other.txt], absent.txt]}
schedule: {steps: 10, warmup_steps: 1}
YAML
expect 1 launch "$work/data.yaml" --wait --json
json "[p['state'] for p in o['points']] == ['finished', 'finished', 'refused']" "'absent.txt' in o['points'][2]['problem']"
cp "$work/corpus.txt" "$work/absent.txt"
expect 0 resume tiny --wait --json
json "[p['state'] for p in o['points']] == ['finished'] * 3" "[p['problem'] for p in o['points']] == [''] * 3"
# A point that failed before its first checkpoint is launched again: here it fails again, as a separate run.
cat >"$work/far.yaml" <<'YAML'
extends: tiny.yaml
name: far
sweep: {optimizer.lr: [100]}
optimizer: {kind: sgd}
clip: 0
failure: {max_restarts: 0}
YAML
expect 1 launch "$work/far.yaml" --wait --json --set search.at_once=0
grep -q '"at_once": [1-9]' "$XDG_STATE_HOME/dtrun/sweeps/far/sweep.json" || fail "nobody counted processors"
first=$(field "o['points'][0]['run']")
expect 1 resume far --wait --json
json "o['points'][0]['state'] == 'failed'" "o['points'][0]['run'] != '$first'"
drawn() { "$dtrun" launch "$work/sweep.yaml" --set search='{kind: random, count: 3, seed: 7}' --set schedule.steps=6 --set schedule.warmup_steps=1 --wait --json; }
drawn >"$work/out" 2>"$work/err"
json "len(o['points']) == 3 == len(set($(values)))"
first=$(field "$(values)")
drawn >"$work/out" 2>"$work/err"
json "o['group'] == 'lr.3'" "$(values) == $first" "o['points'][0]['name'] == 'lr.3-1'"

# The worse half is stopped when it is found to be worse, with a checkpoint.
cat >"$work/halving.yaml" <<'YAML'
extends: tiny.yaml
sweep: {optimizer.lr: [3e-3, 1e-9]}
early_stop: {metric: loss, after: 20}
schedule: {steps: 20000, warmup_steps: 1, period_steps: 100}
evaluate: 0
checkpoint: {every: 0}
YAML
expect 0 launch "$work/halving.yaml" --wait --json --set schedule.steps=3000
json "o['points'][0]['state'] == 'finished'" "o['points'][1]['state'] in ('cut', 'finished')" "o['points'][1]['cut'] >= 20"

# A run with the name of an ended sweep: the name means the run, which is reported.
expect 0 launch "$work/tiny.yaml" --wait --json --set name=two --set schedule.steps=2 --set schedule.warmup_steps=1
run=$(field "o['run']")
expect 0 status two
says "'two' is run $run, and a sweep that has ended ('dtrun list --group two')" "run $run"
expect 0 status two --json
json "o['run'] == '$run'"

# Folders of ended sweeps are removed; their runs stay.
expect 0 gc sweeps --older 1d --yes
says "nothing to remove"
expect 0 gc sweeps --older 0h --yes --json
json "{i['path'].split('/')[-1] for i in o['items']} >= {'lr', 'two', 'tiny'}" "all(i['removed'] for i in o['items'])"
[ -z "$(ls -A "$XDG_STATE_HOME/dtrun/sweeps")" ] || fail "sweeps are left"
expect 0 list --group lr --json
json "len(o['runs']) == 4"

# Errors are reported with their position.
wrong() { # text expected-messages...
    printf 'extends: tiny.yaml\n%s\n' "$1" >"$work/wrong.yaml"
    shift
    expect 2 validate "$work/wrong.yaml"
    says "$@"
}
wrong 'sweep: {optimizer.rl: [1, 2]}' "wrong.yaml:2:9: 'sweep': 'optimizer.rl' is not a field (did you mean 'optimizer.lr'?)"
wrong 'sweep: {optimizer: [adamw, sgd]}' "'optimizer' is a map: sweep one of its fields"
wrong 'sweep: {seed: 3}' "'seed' takes a list of values"
wrong 'sweep: {seed: []}' "'seed' has no values"
wrong 'sweep: {name: [a, b]}' "'name' cannot be swept"
wrong 'sweep: [1]' "expected a map of fields with a list of values each"
wrong 'sweep: {seed: [1, 2], optimizer.lr: [1, 2, 3]}
search: zip' "has a different number of values than the first"
wrong 'sweep: {seed: [1, x]}' "wrong.yaml:2:19: 'seed' is 'x'"
wrong 'sweep: {seed: [1, 2]}
search: random' "requires 'search.count'"
expect 2 validate "$work/sweep.yaml" --set seed=3
says "'seed' is also set by --set: remove one"
