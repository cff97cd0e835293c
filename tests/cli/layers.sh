#!/usr/bin/env bash
# A recipe from several sources: extends, -f, --set, stdin and the environment. The run keeps the origin of each value,
# also through a resume, and a secret by reference appears nowhere.
. "$(dirname "$0")/lib.sh"
make_tiny
mkdir "$work/experiments"
cat >"$work/experiments/short.yaml" <<'YAML'
extends: ../tiny.yaml
name: short
schedule: {steps: "${env:STEPS:-20}", warmup_steps: 2}
YAML
printf 'optimizer: {lr: 1e-3}\nnotify: "${env:HOOK:-}"\n' >"$work/slow.yaml"

# Relative paths start at the file that contains them.
cd "$work/experiments" || exit 1
expect 0 launch --wait --json short.yaml -f ../slow.yaml --set seed=7
json "o['state'] == 'finished' and o['steps'] == 20" "o['name'] == 'short'"
run=$(field "o['run']")
expect 0 show "$run" --json
json "[c['value'] for c in o['origins']['optimizer.lr']] == ['1e-3', '3e-3']" \
    "o['origins']['optimizer.lr'][0]['source'] == '../slow.yaml'" \
    "o['origins']['optimizer.lr'][1]['source'].endswith('../tiny.yaml')" \
    "o['origins']['schedule.steps'][0] == {'value': '\${env:STEPS:-20}', 'source': 'short.yaml', 'line': 3, 'column': 19}" \
    "o['origins']['seed'][0]['source'] == '--set seed=7'" \
    "o['recipe']['seed'] == 7 and o['recipe']['optimizer']['lr'] == 1e-3"
expect 0 show "$run" --origins
says "short.yaml:3:19" "over" "--set seed=7"

# A resume is layered over the recipe of the run.
expect 0 resume "$run" --wait --set schedule.steps=24
expect 0 show "$run" --json
json "[c['source'] for c in o['origins']['schedule.steps']][:2] == ['--set schedule.steps=24', 'short.yaml']" \
    "len(o['origins']['optimizer.lr']) == 2"

# A fork has the layers of its parent.
expect 0 fork "$run" --wait --json --set schedule.steps=30 --set seed=7
fork=$(field "o['run']")
expect 0 show "$fork" --json
json "[c['source'] for c in o['origins']['schedule.steps']][:2] == ['--set schedule.steps=30', '--set schedule.steps=24']" \
    "len(o['origins']['optimizer.lr']) == 2"

# From stdin, by a pipe; a variable sets the length.
cd "$work" || exit 1
sed 's/^name: .*/name: piped/; s/steps: 60/steps: "${env:STEPS}"/' tiny.yaml >piped.yaml
subject="dtrun launch -"
cat piped.yaml | STEPS=12 "$dtrun" launch --wait --json - >"$work/out" 2>"$work/err" ||
    fail "exit code $?"
json "o['steps'] == 12 and o['name'] == 'piped'"
expect 2 validate - # stdin is empty
says "empty"
expect 2 validate piped.yaml
says "the environment lacks 'STEPS'"

# Data that do not exist here.
sed 's/corpus.txt/elsewhere.txt/' tiny.yaml >elsewhere.yaml
expect 2 validate elsewhere.yaml
expect 0 validate --no-data elsewhere.yaml
says "not read"
expect 0 validate --no-data --json elsewhere.yaml
json "o['recipes'][0]['valid'] and not o['recipes'][0]['data_checked']"

# Values that may be secret are in no chain of origins, whatever overrides them.
export HOOK="http://127.0.0.1:1/a1B2c3D4e5F6g7H8i9J0k1L2"
expect 0 validate experiments/short.yaml -f slow.yaml --origins --json
json "o['recipes'][0]['origins']['notify.webhook'][0]['value'] == '\${env:HOOK:-}'"
lacks a1B2c3D4
printf 'notify: "%s"\n' "$HOOK" >told.yaml
expect 0 validate tiny.yaml -f told.yaml -f slow.yaml --origins
lacks a1B2c3D4

# A point of a sweep names the place where its values were written, not the file that the sweep generated, and numbers
# have the digits that they need. A launch does not change the modification time of the build's programs.
cat >"$work/rates.yaml" <<YAML
extends: tiny.yaml
name: rates
schedule: {steps: 8, warmup_steps: 0}
evaluate: 0
checkpoint: {every: 0}
sweep: {optimizer.lr: [3e-3, 7e-4]}
YAML
before=$(stat -c %y "$DTRUN_BIN/dtrun-agent")
expect 0 launch --wait "$work/rates.yaml" --set seed=7
expect 0 doctor
subject="launch and doctor"
[ "$(stat -c %y "$DTRUN_BIN/dtrun-agent")" = "$before" ] || fail "the build's agent has another time"
expect 0 show rates-1 --origins
says "rates.yaml:3:19" "tiny.yaml:" "--set seed=7" "rates.yaml:6:24" "3e-3" "rates-1  "
lacks "point-1.yaml"
lacks "0.0030000000000000001"
expect 0 show rates-1 --json
says '"lr":0.003,'
grep -q '"lr": 0.003,*$' "$work/state/dtrun/sweeps/rates/point-1.yaml" || fail "the point has other digits"

# A preset of a later layer replaces the dimensions of earlier layers; dimensions in its own layer and in later ones
# count.
printf 'model: {layers: 2, heads: 4, embed: 64}\ndata: corpus.txt\nschedule: {steps: 5, warmup_steps: 1}\n' >"$work/dims.yaml"
printf 'extends: dims.yaml\nmodel: {preset: gpt2-small, heads: 6}\n' >"$work/preset.yaml"
dims() { # wanted recipe options...
    local wanted=$1
    shift
    expect 0 validate "$@" --origins --json
    subject="dimensions of $*"
    [ "$(field "' '.join(o['recipes'][0]['origins'][k][0]['value'] for k in ('model.layers', 'model.heads'))")" = "$wanted" ] ||
        fail "$(field "{k: v[0]['value'] for k, v in o['recipes'][0]['origins'].items()}"), wanted $wanted"
}
dims "2 4" "$work/dims.yaml"
dims "12 12" "$work/dims.yaml" --set model=gpt2-small
dims "12 12" "$work/dims.yaml" --set model.preset=gpt2-small
dims "3 12" "$work/dims.yaml" --set model=gpt2-small --set model.layers=3
dims "12 6" "$work/preset.yaml"
dims "5 6" "$work/preset.yaml" --set model.layers=5
dims "12 12" "$work/preset.yaml" --set model=gpt2-small
