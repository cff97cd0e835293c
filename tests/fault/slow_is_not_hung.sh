#!/usr/bin/env bash
# A slow run is never ended for being slow: it is halted nearly all of the time, from the beginning and in the middle,
# with a step far longer than hang_seconds and than the steps before. A run whose rank is stopped for good under the
# same settings is ended.
. "$(dirname "$0")/lib.sh"
real_engine
cat >"$XDG_STATE_HOME/slow.yaml" <<'YAML'
name: slow
ranks: 2
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 2, heads: 2, embed: 64}
data: {train: corpus.txt}
batch: {sequences: 4, tokens: 64, accumulate: 60}
schedule: {kind: cosine, warmup_steps: 2, steps: 1000000}
checkpoint: {every: 1000000}
log: {every: 1}
grace_seconds: 2
failure: {hang_seconds: 3}
YAML
pids() { value "$1" "*[r['pid'] for n in o['nodes'] for r in n['ranks'] if r['pid']]"; }
steps() { [ "$(value "$1" "o['step'] or 0")" -ge "$2" ]; }
has_pids() { [ "$(pids "$1" | wc -w)" = 2 ]; }
attempt_is() { [ "$(value "$1" "o['attempt']")" = "$2" ]; }
slow() { python3 "$(dirname "$0")/throttle.py" 0.02 600 "$@" & } # pids...
told() { # kind: messages of the run's events of this kind
    python3 - "$XDG_STATE_HOME/dtrun/store.db" "$1" "$2" <<'PY'
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT e.json FROM events e JOIN runs r USING (run) WHERE r.name = ? AND kind = ?", sys.argv[2:])
print("\n".join(json.loads(row[0])["message"] for row in rows))
PY
}

is_told() { [ -n "$(told "$1" slow)" ]; }
is_never_hung() { # run: once it is reported as slow, the machine is fast again
    await 200 is_told "$1"
    kill %%
    await 200 steps "$1" $(($(value "$1" "o['step'] or 0") + 3))
    is "its attempts ($(told "$1" hung))" "$(value "$1" "o['attempt']")" 1
    "$dtrun" stop "$1" >/dev/null
    is "state of $1 ($(value "$1" "o['reason']"))" "$(value "$1" "o['state']")" stopped
}

# How much work takes 0.6 s here. Five times that is just hang_seconds, so that a rank with a tenth of its processor
# time or less is slow enough to be examined, however fast the machine is.
"$dtrun" launch --wait "$XDG_STATE_HOME/slow.yaml" --set name=pace --set schedule.steps=10 \
    --set schedule.warmup_steps=1 --set failure.hang_seconds=60 >/dev/null 2>&1 || fail "pace: exit $?"
micro_steps=$("$dtrun" metrics pace --name step_seconds | python3 -c "import sys
seconds = sorted(float(line.split(',')[3]) for line in list(sys.stdin)[1:])
print(max(60, round(60 * 0.6 / seconds[len(seconds) // 2])))")
sed -i "s/accumulate: 60/accumulate: $micro_steps/" "$XDG_STATE_HOME/slow.yaml"

# a machine that becomes busy in the middle
"$dtrun" launch --detach "$XDG_STATE_HOME/slow.yaml" --set name=middle >/dev/null
await 120 steps middle 3
slow $(pids middle)
is_never_hung middle
like "what is said" "$(told middle slow)" "no step for * s while training: slow, not hung: rank * advanced * ago"

# a run that was slow from its first moment, including set-up
"$dtrun" launch --detach "$XDG_STATE_HOME/slow.yaml" --set name=always \
    --set failure.hang_seconds=1 --set batch.accumulate=$((4 * micro_steps)) >/dev/null
await 120 has_pids always
slow $(pids always)
is_never_hung always

# a rank that is stopped while another one is slow
"$dtrun" launch --detach "$XDG_STATE_HOME/slow.yaml" --set name=hung >/dev/null
await 120 steps hung 3
read -r first second <<<"$(pids hung)"
slow "$first"
kill -STOP "$second"
await 200 attempt_is hung 2
like "what is said" "$(told hung hung)" "no step for * s while training: rank * on localhost is in state T (*"
"$dtrun" stop --now hung >/dev/null
wait
await 20 nothing_left
