#!/usr/bin/env bash
# A busy loop takes the processor of one of four ranks: status names the rank, and says that it lacks a processor, and
# how other processes use it. Needs two processors. What counts is who is named, not how fast: eight loops, and a lower
# priority of the rank than of the loops, slow it down by far more than a busy machine does.
. "$(dirname "$0")/lib.sh"
[ "$(nproc)" -ge 2 ] && command -v taskset >/dev/null || { echo "skipped: needs two processors and taskset"; exit 77; }
mapfile -t allowed < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep="\n")')
export DTRUN_TEST_TIMES=${DTRUN_TEST_TIMES:-0.5}
real_engine
cat >"$XDG_STATE_HOME/slow.yaml" <<'YAML'
name: slow
ranks: 4
threads: 1
strategy: ddp
model: {kind: gpt2, layers: 2, heads: 4, embed: 64, dropout: 0}
data: {train: corpus.txt}
batch: {sequences: 8, tokens: 64}
schedule: {kind: cosine, warmup_steps: 5, steps: 10000000}
evaluate: {every: 10000000}
checkpoint: {every: 10000000}
log: 1
grace_seconds: 2
YAML
loops=()
clean_more() { for loop in "${loops[@]}"; do kill -9 "$loop" 2>/dev/null || true; done; }
find_rank_3() {
    "$dtrun" status slow --json | python3 -c '
import json, sys
for f in json.load(sys.stdin)["slow"]:
    if (f["cause"], f["rank"]) == ("shared_processor", 3):
        print(f["text"], "| evidence:", f["evidence"])' | grep .
}
"$dtrun" launch --detach "$XDG_STATE_HOME/slow.yaml" >/dev/null
await 60 past slow 5
for rank in 0 1 2 3; do
    pid=$(value slow "[r['pid'] for r in o['nodes'][0]['ranks'] if r['rank'] == $rank][0]")
    taskset -acp "${allowed[$((rank == 3))]}" "$pid" >/dev/null
done
# A session is one group for the scheduler, so each loop gets its own; the rank's priority is that of its group.
renice -n 10 -p "$pid" >/dev/null
{ echo 10 >"/proc/$pid/autogroup"; } 2>/dev/null || true
before=$(value slow "o['step']")
for _ in 1 2 3 4 5 6 7 8; do
    setsid taskset -c "${allowed[1]}" bash -c 'while [ $SECONDS -lt 200 ]; do :; done' &
    loops+=($!)
    disown
done
await 60 find_rank_3 >"$XDG_STATE_HOME/found"
figure - "steps until status names the rank with the busy processor" 20 $(($(value slow "o['step']") - before))
cat "$XDG_STATE_HOME/found"
like "the finding" "$(cat "$XDG_STATE_HOME/found")" "*rank 3 on localhost *lacks a processor*"
like "its evidence" "$(cat "$XDG_STATE_HOME/found")" "*may use only processor ${allowed[1]}, of which it uses * and other processes *"
clean_more
loops=()
"$dtrun" stop slow >/dev/null
await 20 nothing_left
