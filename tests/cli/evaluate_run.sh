#!/usr/bin/env bash
# Evaluation tasks on the ranks of a run of their own: the same metrics as in one process, kept with both runs; by a recipe,
# too; and refused where they cannot run.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait "$work/tiny.yaml" --set schedule.steps=40
printf '%s\n' '{"prompt": "th", "choices": ["q", "e", "z"], "answer": 1, "delimiter": ""}' \
    '{"prompt": "t", "choices": ["z", "h"], "answer": 1, "delimiter": ""}' \
    '{"prompt": "qu", "choices": ["i", "z"], "answer": 0, "delimiter": ""}' \
    '{"prompt": "fo", "choices": ["z", "x"], "answer": 0, "delimiter": ""}' >"$work/letters.jsonl"
for i in 1 2 3 4 5; do printf '{"text": "the quick brown fox %s"}\n' "$(printf "jumps%.0s " $(seq $i))"; done >"$work/text.jsonl"
newest() { "$dtrun" show "$1" --json | python3 -c '
import json, sys
print(json.dumps(json.load(sys.stdin)["evaluations"][-1]["tasks"], sort_keys=True))'; }

expect 0 evaluate tiny -t "$work/letters.jsonl" -t "$work/text.jsonl" -o "$work/one.jsonl"
newest tiny >"$work/one"
expect 0 evaluate tiny -t "$work/letters.jsonl" -t "$work/text.jsonl" --ranks 2 --name shared --wait -o "$work/two.jsonl"
says "letters  acc" "tiny@40"
cmp "$work/one.jsonl" "$work/two.jsonl" || fail "the ranks made other results"
newest shared >"$work/two"
cmp "$work/one" "$work/two" || fail "the ranks made other metrics"
[ "$("$dtrun" show tiny --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["evaluations"]))')" = 1 ] || fail "steps"
expect 0 show shared
says "task             evaluate" "step 40"
expect 0 evaluate tiny -t "$work/letters.jsonl" --ranks 2 --json
json "o['state'] == 'finished'" "o['task'] == 'evaluate'"

cat >"$work/evaluate.yaml" <<YAML
task: evaluate
lines: {run: tiny@20}
evaluate: {tasks: [letters.jsonl, text.jsonl]}
ranks: 2
YAML
expect 0 validate "$work/evaluate.yaml"
expect 0 launch --wait "$work/evaluate.yaml" --set name=by_file
expect 0 show by_file
says "step 20"
expect 0 show tiny
says "step 20" "step 40"

expect 2 launch "$work/evaluate.yaml" --set lines.input=x
says "'lines.input' has no effect on 'task: evaluate'"
expect 2 launch "$work/evaluate.yaml" --set evaluate.tasks=[]
says "'evaluate.tasks' is missing"
echo '{"prompt": "a"}' >"$work/bad.jsonl"
expect 2 launch "$work/evaluate.yaml" --set "evaluate.tasks=[\"$work/bad.jsonl\"]"
says "evaluate.tasks: '$work/bad.jsonl', line 1: 'answer' is missing"
expect 2 evaluate tiny -t "$work/bad.jsonl" --ranks 2
says "'$work/bad.jsonl', line 1: 'answer' is missing"

# --- a folder: of weights, and a checkpoint
python3 tests/cli/evaluate_data.py "$work/data" llama || fail "no data"
folder=$work/data/model
all=(-t "$work/data/choice.jsonl" -t "$work/data/answer.jsonl" -t "$work/data/text.jsonl")
expect 0 evaluate "$folder" "${all[@]}" --json -o "$work/one.jsonl" --force
python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["models"][0]["tasks"], sort_keys=True))' "$work/out" >"$work/one"
expect 0 evaluate "$folder" "${all[@]}" --ranks 3 --name weights --wait -o "$work/two.jsonl" --force
says "choice  acc" "$folder"
cmp "$work/one.jsonl" "$work/two.jsonl" || fail "the ranks made other results"
newest weights | cmp - "$work/one" || fail "the ranks made other metrics: $(newest weights)"
expect 0 show weights
says "$folder"
expect 2 evaluate "$folder" tiny "${all[@]}" --ranks 2
says "need a single RUN or FOLDER"
cp -r "$("$dtrun" checkpoints tiny --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][0]["path"])')" "$work/saved"
expect 0 evaluate "$work/saved" -t "$work/letters.jsonl" -o "$work/one.jsonl" --force
expect 0 evaluate "$work/saved" -t "$work/letters.jsonl" --ranks 2 --wait --name saved -o "$work/two.jsonl" --force
cmp "$work/one.jsonl" "$work/two.jsonl" || fail "the ranks made other results of a checkpoint"
expect 2 evaluate tiny -t "$work/letters.jsonl" --wait
says "--wait requires --ranks, --nodes or --gpus"
expect 2 evaluate shared -t "$work/letters.jsonl"
says "is an evaluate run with a checkpoint of run" "name that run"
