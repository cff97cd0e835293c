#!/usr/bin/env bash
# A small training from launch to generated text, and every command about it afterwards.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --wait --json "$work/tiny.yaml" --set name=small
json "o['state'] == 'finished'" "o['steps'] == 60" "o['seconds'] > 0" \
    "0 < o['loss'] < 4" "0 < o['valid_loss'] < 4" "o['name'] == 'small'" "o['exit_code'] == 0" \
    "len(o['run']) == 6" "o['checkpoint'].endswith('step-00000060')"
[ ! -s "$work/err" ] || fail "--wait --json wrote to stderr"
run=$(field "o['run']")
[ "$(stat -c %a "$work/state/dtrun/runs/$run")" = 700 ] || fail "the run's folder is not private"
cmp -s "$work/tiny.yaml" "$work/state/dtrun/runs/$run/recipe.yaml" || fail "the recipe is not kept"

expect 0 status "$run" --json
json "o['step'] == o['steps_total'] == 60" "o['attempt'] == 1" "o['eta_seconds'] == 0" \
    "o['tokens_per_second'] > 0" "o['nodes'][0]['host'] == 'localhost'" \
    "[r['rank'] for r in o['nodes'][0]['ranks']] == [0, 1]" \
    "all(r['pid'] > 0 and r['state'] for r in o['nodes'][0]['ranks'])"
expect 0 status
says "small $run finished" "100%  step 60 of 60"
expect 0 status --watch "$run"
expect 0 show "$run"
says "validation loss" "recipe as written" "step-00000060" "attempt"
expect 0 show "$run" --json
json "o['recipe']['schedule']['steps'] == 60" "o['recipe']['name'] == 'small'" "o['recipe_path'] == '$work/tiny.yaml'" \
    "'valid_loss' in o['metrics']" "len(o['attempts']) == 1"

expect 0 metrics "$run"
[ "$(head -n 1 "$work/out")" = "attempt,step,name,value,time" ] || fail "the header is another"
expect 0 metrics "$run" --name loss
python3 - "$work/out" <<'PY' || fail "the losses are not one a step"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [int(r["step"]) for r in rows] == list(range(1, 61)), [r["step"] for r in rows]
assert all(r["name"] == "loss" and float(r["value"]) > 0 and r["time"].endswith("Z") for r in rows)
assert float(rows[-1]["value"]) < float(rows[0]["value"])
PY
expect 0 metrics "$run" --name valid_loss --format jsonl
python3 - "$work/out" <<'PY' || fail "jsonl is not a JSON object a line"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [r["step"] for r in rows] == [20, 40, 60], rows
PY
expect 0 metrics "$run" --json
json "len(o['metrics']) > 120"
expect 2 metrics "$run" --name los
one_line
says "has no metric 'los'" "valid_loss"

# The memory of each rank at its start is kept, with every part.
held=$(sqlite3 "$work/state/dtrun/store.db" "SELECT rank, min(json_extract(json, '$.parameters_bytes'),
    json_extract(json, '$.gradients_bytes'), json_extract(json, '$.optimizer_bytes'),
    json_extract(json, '$.activations_bytes'), json_extract(json, '$.buffers_bytes'),
    json_extract(json, '$.free_bytes')) > 0 FROM events WHERE kind = 'memory' ORDER BY rank")
[ "$held" = $'0|1\n1|1' ] || fail "what the ranks hold is not kept: $held"

expect 0 checkpoints "$run" --json
json "[c['step'] for c in o['checkpoints']] == [60, 40, 20]" \
    "all(c['bytes'] > 0 and len(c['digest']) == 32 for c in o['checkpoints'])"
expect 0 checkpoints "$run"
says "step-00000040"
rm -rf "$work/state/dtrun/runs/$run/checkpoints/step-00000020"
expect 0 checkpoints "$run" --json
json "[c['step'] for c in o['checkpoints']] == [60, 40]"

expect 0 generate "$run" --tokens 40 --prompt "the " --seed 5
cp "$work/out" "$work/first"
grep -q '^the ' "$work/out" || fail "the prompt does not stand first"
[ "$(wc -m <"$work/out")" -eq 45 ] || fail "$(wc -m <"$work/out") characters, wanted 4 + 40 + 1"
expect 0 generate "$run" --tokens 40 --prompt "the " --seed 5
cmp -s "$work/out" "$work/first" || fail "the same seed gave another text"
expect 0 generate "$run" --tokens 7 --prompt "fox" --json --checkpoint 40
json "o['step'] == 40" "len(o['text']) == 7" "o['run'] == '$run'" "o['prompt'] == 'fox'"
expect 0 generate "$run" --tokens 7 --checkpoint best --json --stop "e" --top-p 0.9 --repetition-penalty 1.2
json "'e' not in o['text']" "o['ended'] in ('stop', 'tokens')" "o['checkpoint'].startswith('$work')"
expect 0 generate "$run" --tokens 7 --json --checkpoint "$work/state/dtrun/runs/$run/checkpoints/step-00000040"
json "o['step'] == 40"
echo "fox" | "$dtrun" generate "$run" --prompt - --tokens 3 >"$work/out" || fail "no prompt from stdin"
grep -q '^fox' "$work/out" || fail "the prompt of stdin does not stand first"
expect 2 generate "$run" --prompt a --prompt-file b
one_line
expect 2 generate "$run" --checkpoint 41
one_line
says "no checkpoint of step 41" "40, 60"
expect 2 generate "$run" --prompt "Ω"
one_line
says "Ω"

expect 0 logs "$run"
expect 0 logs "$run" --rank 1 --json
json "all(line['rank'] == 1 for line in o['lines'])"
expect 0 logs -f "$run" --rank 0
expect 2 logs "$run" --rank 7
one_line
says "has no rank 7 (it has 2)"

expect 0 list
says "$run" "small" "finished" "60/60"
expect 0 list --state finished --json
json "len(o['runs']) == 1" "'version' not in o['runs'][0]"
expect 0 list --state running --json
json "o['runs'] == []"
expect 0 stop "$run"
says "has already ended: finished"
expect 2 resume "$run"
one_line
says "has completed all its 60 steps" "--set schedule.steps=120"
expect 0 resume "$run" --set schedule.steps=80 --wait --json
json "o['steps'] == 80" "o['attempt'] == 2" "o['state'] == 'finished'"

# Followed without a terminal: plain lines, then a summary on stdout.
state_told() { grep -qE " (preparing|starting|running)$" "$work/err"; }
: >"$work/err"
halted_until state_told &
expect 0 launch "$work/tiny.yaml"
wait
grep -q 'finished at step 60' "$work/out" || fail "no summary on stdout"
says "validation loss" "checkpoint saved" "Next:"
state_told || fail "states are not told on stderr"
grep -q " finished$" "$work/err" || fail "the end is not told on stderr"
! grep -q $'\x1b' "$work/out" "$work/err" || fail "escape sequences without a terminal"

# A model of token ids reads and prints numbers, as the summary says.
python3 -c 'import random, struct, sys
random.seed(1)
sys.stdout.buffer.write(b"".join(struct.pack("<H", random.randrange(50)) for _ in range(4000)))' >"$work/ids.bin"
expect 0 launch --wait "$work/tiny.yaml" --set "data.train=$work/ids.bin" --set schedule.steps=20
says "generate"
expect 0 generate last --prompt "12 7" --tokens 3
grep -Eqx '12 7( [0-9]+){3} *' "$work/out" || fail "no five numbers"
expect 0 generate last --prompt 7 --tokens 3 --json
json "all(0 <= int(word) < 50 for word in o['text'].split())" "len(o['text'].split()) == 3"
expect 2 generate last --prompt "O Romeo"
says "not a list of tokens"

# Norms and biases decay only if requested.
losses=()
for decays in matrices all; do
    expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=10 --set evaluate.every=0 --set checkpoint.keep_best=0 \
        --set optimizer.lr=0.02 --set optimizer.weight_decay=5 --set optimizer.decays=$decays
    losses+=("$(field "o['loss']")")
done
[ "${losses[0]}" != "${losses[1]}" ] || fail "'decays: all' is the same as 'matrices'"
