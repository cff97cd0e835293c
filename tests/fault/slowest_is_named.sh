#!/usr/bin/env bash
# A rank that is halted for half of the time is the one that status names; the others wait for that time.
. "$(dirname "$0")/lib.sh"
real_engine
cat >"$XDG_STATE_HOME/slow.yaml" <<'YAML'
name: slow
ranks: 2
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {kind: cosine, warmup_steps: 5, steps: 10000000}
grace_seconds: 2
YAML
is_known() { [ "$(value slow "o['slowest'] is not None")" = True ]; }
is_told() { [[ $("$dtrun" status slow) == *"slowest: rank 1; the others wait "*" ms a step"* ]]; }
is_rank_1() { [ "$(value slow "o['slowest']['rank']")" = 1 ]; }

"$dtrun" launch --detach "$XDG_STATE_HOME/slow.yaml" >/dev/null
await 60 is_known
pid=$(value slow "[r['pid'] for r in o['nodes'][0]['ranks'] if r['rank'] == 1][0]")
while kill -STOP "$pid"; do sleep 0.05; kill -CONT "$pid"; sleep 0.05; done 2>/dev/null &
halting=$!
await 60 is_rank_1
await 60 is_told # a busy machine may delay the other rank for a moment
kill $halting
kill -CONT "$pid"
"$dtrun" stop slow >/dev/null
await 10 nothing_left
