#!/usr/bin/env bash
# A run as lines: every logged step, evaluations, checkpoints and restarts among the output of the ranks; as objects;
# and on stdout during a launch.
. "$(dirname "$0")/lib.sh"
make_tiny

expect 0 launch --log-steps "$work/tiny.yaml" --set log.every=2
cp "$work/out" "$work/told"
run=$(sed -n 's/^\([a-z0-9]*\) .*/\1/p' "$work/err" | head -1)
[ "$(grep -cE '^step [0-9]+/60  loss [0-9.]+  learning rate [0-9.e-]+  gradient norm [0-9.e-]+  .* tokens/s$' "$work/told")" -eq 31 ] ||
    fail "not a line for every logged step" # every second step, and the first
[ "$(grep -cE '^step (20|40|60)/60  validation loss' "$work/told")" -eq 3 ] || fail "not 3 evaluations"
[ "$(grep -cE '^step (20|40|60)/60  checkpoint saved, ' "$work/told")" -eq 3 ] || fail "not 3 checkpoints"
expect 0 launch --log-steps --json "$work/tiny.yaml" --set schedule.steps=10
python3 - "$work/out" <<'PY' || fail "not these objects"
import json, sys
objects = [json.loads(line) for line in open(sys.argv[1])]
steps = [o for o in objects if o.get("kind") == "step"]
assert [o["step"] for o in steps] == list(range(1, 11)), steps
assert all({"loss", "learning_rate", "gradient_norm", "tokens_per_second"} <= o["values"].keys() for o in steps)
assert objects[-1]["version"] == 1 and objects[-1]["state"] == "finished"
assert objects[-1]["loss"] == steps[-1]["values"]["loss"]
PY
expect 2 launch --log-steps --detach "$work/tiny.yaml"
one_line

run=$("$dtrun" list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][1]["run"])')
expect 0 logs "$run" -n 0
grep -E ' step [0-9]+/60  ' "$work/out" | sed 's/^[^ ]* //' >"$work/again"
diff <(sort "$work/told" | grep ^step) <(sort "$work/again") >/dev/null || fail "not what launch told"
grep -q '^\[rank 1\] ' "$work/out" || fail "the ranks say nothing"
cut -d' ' -f1 <(sed 's/^\[rank [0-9]*\] //' "$work/out") >"$work/times"
sort -c "$work/times" || fail "not in the order of times"
expect 0 logs "$run" --steps -n 3
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "not 3 lines"
says "step 60/60"
lacks "rank"
expect 0 logs "$run" --rank 0 -n 0
lacks "learning rate 0"
expect 2 logs "$run" --rank 0 --steps
one_line

expect 0 logs "$run" -n 0 --format jsonl
python3 - "$work/out" <<'PY' || fail "not these objects"
import json, sys
objects = [json.loads(line) for line in open(sys.argv[1])]
kinds = [o["kind"] for o in objects]
assert kinds.count("step") == 31 and kinds.count("evaluation") == 3 and kinds.count("checkpoint") == 3, kinds
assert {o["rank"] for o in objects if o["kind"] == "log"} == {0, 1}
assert [o["time"] for o in objects] == sorted(o["time"] for o in objects)
PY
expect 0 logs "$run" --json -n 0
json "len(o['lines']) > 0 and all('rank' in l for l in o['lines'])" "len([h for h in o['history'] if h['kind'] == 'step']) == 31"
expect 0 logs -f "$run" --format jsonl
expect 2 logs -f "$run" --json
says "use --format jsonl"

# A restart is shown once with its cause, also with --follow.
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 
run=$(cat "$work/out")
"$dtrun" logs -f --format jsonl "$run" >"$work/followed" 2>/dev/null &
follower=$!
within 60 step_reached "$run" 30
kill -9 "$("$dtrun" status "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["nodes"][0]["ranks"][1]["pid"])')"
attempt_is() { [ "$("$dtrun" status "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["attempt"])')" -eq "$1" ]; }
within 60 attempt_is 2
step_now=$("$dtrun" status "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["step"])')
within 60 step_reached "$run" $((step_now + 1))
expect 0 stop "$run"
wait $follower
expect 0 logs "$run" --steps -n 0
[ "$(grep -c 'attempt 2 continues from step .*SIGKILL' "$work/out")" -eq 1 ] || fail "the restart is not told once with its cause"
grep -q '"kind":"restart".*SIGKILL' "$work/followed" || { cp "$work/followed" "$work/out"; fail "the followed log lacks the restart"; }

# Names and values that an imported run can have.
python3 - "$work/state/dtrun/store.db" "$run" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
number, = db.execute("SELECT run FROM runs WHERE id = ?", (sys.argv[2],)).fetchone()
db.execute("UPDATE metrics SET value = NULL WHERE series = (SELECT series FROM series WHERE run = ? AND name = 'loss')", (number,))
db.execute("UPDATE series SET name = 'a' || char(27) || '[2J' WHERE run = ? AND name = 'step_seconds'", (number,))
db.commit()
PY
expect 0 logs "$run" --steps
says "loss nan"
expect 0 logs "$run" --steps --format jsonl
python3 - "$work/out" <<'PY' || fail "not JSON"
import json, sys
def refuse(word): raise ValueError(word)
steps = [json.loads(line, parse_constant=refuse) for line in open(sys.argv[1])]
assert any(s["kind"] == "step" and s["values"]["loss"] is None and "a\x1b[2J" in s["values"] for s in steps), steps[-1]
PY
grep -q $'\x1b' "$work/out" && fail "an escape sequence is printed"
true
