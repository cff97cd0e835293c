#!/usr/bin/env bash
# Evaluation tasks in a recipe: evaluated during training, on all ranks and with each strategy as by `dtrun evaluate`, without
# an effect on the training.
. "$(dirname "$0")/lib.sh"
make_tiny
printf '%s\n' '{"prompt": "th", "choices": ["q", "e", "z"], "answer": 1, "delimiter": ""}' \
    '{"prompt": "t", "choices": ["z", "h"], "answer": 1, "delimiter": ""}' \
    '{"prompt": "qu", "choices": ["i", "z"], "answer": 0, "delimiter": ""}' \
    '{"prompt": "", "choices": ["the", "zzz"], "answer": 0, "delimiter": ""}' \
    '{"prompt": "fo", "choices": ["z", "x"], "answer": 0, "delimiter": ""}' >"$work/letters.jsonl"
printf '{"text": "%s"}\n' 'the quick brown' 'fox jumps' 'over the lazy dog and the quick brown fox' >"$work/text.jsonl"
printf '%s\n' '{"prompt": "the qu", "answer": "ick", "tokens": 3}' '{"prompt": "o", "answer": "zzz", "tokens": 3}' \
    >"$work/words.jsonl"
tasks="evaluate.tasks=[\"$work/letters.jsonl\", \"$work/text.jsonl\", \"$work/words.jsonl\"]"

results() { "$dtrun" show "$1" --json | python3 -c '
import json, sys
for e in json.load(sys.stdin)["evaluations"]:
    print(e["step"], json.dumps(e["tasks"], sort_keys=True))'; }
losses() { "$dtrun" metrics "$1" --name loss --format csv | cut -d, -f2-4; }

# The last results of training are those of its checkpoint.
like_checkpoint() { # run file
    expect 0 evaluate "$1" -t "$work/letters.jsonl" -t "$work/text.jsonl" -t "$work/words.jsonl" --json
    python3 - "$work/out" "$work/$2" <<'PY' || fail "$1: $(tail -1 "$work/$2")"
import json, sys
after = json.load(open(sys.argv[1]))["models"][0]["tasks"]
step, during = open(sys.argv[2]).read().splitlines()[-1].split(" ", 1)
during = json.loads(during)
assert {"letters", "text"} <= during.keys() <= after.keys() and after["letters"]["rows"] == 5
for task, result in during.items():
    for name, metric in result["metrics"].items():
        assert abs(metric["value"] - after[task]["metrics"][name]["value"]) <= 1e-5 * metric["value"], (task, name)
PY
}

common=(launch --wait --json "$work/tiny.yaml" --set schedule.steps=60 --set evaluate.every=20 --set log.every=1)
expect 0 "${common[@]}" --name plain
expect 0 "${common[@]}" --name tasks --set "$tasks" --set evaluate.tasks_every=30
run=$(field "o['run']")
cmp <(losses plain) <(losses tasks) || fail "tasks changed the training"
results tasks >"$work/one"
[ "$(cut -d' ' -f1 "$work/one" | paste -sd' ')" = "30 60" ] || fail "evaluated at: $(cat "$work/one")"
like_checkpoint tasks one
expect 0 metrics tasks --name letters/acc --format csv
says "30,letters/acc," "60,letters/acc,"

# the ranks share the rows; the parameters, and so the results, are those of other trainings
for strategy in ddp fsdp; do
    expect 0 "${common[@]}" --name "$strategy" --set "$tasks" --set ranks=2 --set strategy.kind=$strategy
    results $strategy >"$work/$strategy"
    [ "$(cut -d' ' -f1 "$work/$strategy" | paste -sd' ')" = "20 40 60" ] || fail "$(cat "$work/$strategy")"
    like_checkpoint $strategy $strategy
done

# layers that ranks divide: the same, but without generated answers
expect 2 launch "$work/tiny.yaml" --set "$tasks" --set tensor=2
says "evaluate.tasks: '$work/words.jsonl' has generated answers" "cannot be combined with 'tensor' 2"
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20 --name divided --set tensor=2 \
    --set "evaluate.tasks=[\"$work/letters.jsonl\", \"$work/text.jsonl\"]"
results divided >"$work/divided"
like_checkpoint divided divided

# wrong files are refused before the run, at their line of the recipe
echo '{"prompt": "t", "choices": ["h"], "answer": 0}' >"$work/bad.jsonl"
cat >"$work/bad.yaml" <<YAML
extends: tiny.yaml
evaluate:
  tasks:
    - letters.jsonl
    - bad.jsonl
YAML
expect 2 launch "$work/bad.yaml"
says "bad.yaml:5:" "evaluate.tasks: '$work/bad.jsonl', line 1: 'choices' has 1 texts"
expect 2 validate "$work/tiny.yaml" --set "evaluate.tasks=[\"$work/none.jsonl\"]"
says "evaluate.tasks: cannot open '$work/none.jsonl'"
