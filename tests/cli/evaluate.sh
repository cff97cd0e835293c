#!/usr/bin/env bash
# Evaluation tasks: the metrics of a folder of weights equal those of lm_eval, a run's are stored and shown, and wrong
# files of tasks are refused with their line.
. "$(dirname "$0")/lib.sh"
export LC_ALL=C.UTF-8

# --- as lm_eval 0.4.13 (tests/peers/evaluate.py --given)
for kind in gpt2 llama; do
    python3 tests/cli/evaluate_data.py "$work/$kind" $kind || fail "no data"
done
all() { printf -- '--task %s/%s.jsonl ' "$work/$1" choice "$work/$1" answer "$work/$1" text; }
expect 0 evaluate "$work/gpt2/model" "$work/llama/model" $(all gpt2) --json
json "o['tasks'][1] == {'task': 'answer', 'file': '$work/gpt2/answer.jsonl', 'kind': 'answer', 'rows': 24}"
python3 - "$work/out" <<'PY' || fail "not as lm_eval: $(cat "$work/out")"
import json, sys
wanted = [
    {"choice": {"acc": (0.375, 0.10094660663590604), "acc_norm": (0.291666667, 0.09477598811252415),
                "acc_bytes": (0.291666667, 0.09477598811252415)},
     "answer": {"exact_match": (1 / 3, 0.0982946374365981)},
     "text": {"word_perplexity": (6195509.87, None), "byte_perplexity": (116.882439, None),
              "bits_per_byte": (6.86891437, None)}},
    {"choice": {"acc": (0.375, 0.10094660663590604), "acc_norm": (0.375, 0.10094660663590604),
                "acc_bytes": (0.375, 0.10094660663590604)},
     "answer": {"exact_match": (0, 0)},
     "text": {"word_perplexity": (11569464.9, None), "byte_perplexity": (141.358912, None),
              "bits_per_byte": (7.14321903, None)}}]
for model, want in zip(json.load(open(sys.argv[1]))["models"], wanted):
    assert model["tasks"].keys() == want.keys(), model
    for task, metrics in want.items():
        for name, (value, error) in metrics.items():
            got = model["tasks"][task]["metrics"][name]
            assert abs(got["value"] - value) <= 4e-6 * value, (model["model"], task, name, got, value)
            assert error is None or abs(got["stderr"] - error) < 1e-12, (task, name, got, error)
PY
expect 0 evaluate "$work/gpt2/model" $(all gpt2) -o "$work/rows"
says "choice  acc " "0.3750 ± 0.1009" "1 of 24 rows of 'answer' exceed the model's context"
python3 - "$work/rows" <<'PY' || fail "$(head -3 "$work/rows")"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == 72 and [r["row"] for r in rows[:3]] == [1, 2, 3] and rows[24]["row"] == 2, rows[24]
assert rows[0]["task"] == "choice" and len(rows[0]["log_likelihoods"]) == 3
best = max(range(3), key=lambda i: rows[0]["log_likelihoods"][i])
assert rows[0]["choice"] == best and {"text", "exact_match"} <= rows[24].keys()
PY
expect 2 evaluate "$work/gpt2/model" $(all gpt2) -o "$work/rows"
says "exists"

# --- a run: the best of the choices is what it learned
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=200 --set checkpoint.every=100
run=$(field "o['run']")
printf '%s\n' '{"prompt": "th", "choices": ["q", "e", "z"], "answer": 1, "delimiter": ""}' \
    '{"prompt": "t", "choices": ["h", "z"], "answer": 0, "delimiter": ""}' >"$work/letters.jsonl"
expect 0 evaluate "$run" -t "$work/letters.jsonl" --json
json "o['models'][0]['run'] == '$run'" "o['models'][0]['step'] == 200" \
    "o['models'][0]['tasks']['letters']['metrics']['acc'] == {'value': 1.0, 'stderr': 0.0}"
printf '{"text": "%s"}\n' 'the quick brown' 'fox jumps' >"$work/text.jsonl"
expect 0 evaluate "$run@100" "$run" -t "$work/text.jsonl" -t "$work/letters.jsonl"
says "tiny@100" "tiny@200" "byte_perplexity"
expect 0 show "$run"
says "task     metric            rows" "step 100" "step 200"
expect 0 show "$run" --json
json "[e['step'] for e in o['evaluations']] == [100, 200]" \
    "o['evaluations'][1]['tasks'].keys() == {'letters', 'text'}" \
    "o['evaluations'][1]['tasks']['text']['metrics']['byte_perplexity']['value'] < o['evaluations'][0]['tasks']['text']['metrics']['byte_perplexity']['value']"
expect 0 fork "$run@100" --wait --set schedule.steps=150 --name other
expect 0 compare "$run" other
says "$run@200" "letters  acc"
expect 0 compare "$run" other --json
json "o['runs'][0]['tasks']['letters']['rows'] == 2" "o['runs'][1]['tasks'] == {}"
expect 0 sql "SELECT count(*) AS n FROM evaluations WHERE run = '$run' AND metric = 'acc' AND step = 200" --json
json "o['rows'] == [[1]]" # it was evaluated twice

# --- wrong files
bad() { # message rows...
    local message=$1
    shift
    printf '%s\n' "$@" >"$work/bad.jsonl"
    expect 2 evaluate "$work/gpt2/model" -t "$work/bad.jsonl"
    says "$message"
    one_line
}
good='{"prompt": "a", "choices": ["b", "c"], "answer": 1}'
bad "'$work/bad.jsonl', line 2: 'choices' has 1 texts (expected 2 to 1000)" "$good" '{"prompt": "a", "choices": ["b"], "answer": 0}'
bad "line 1: 'answer' is missing" '{"prompt": "a", "choices": ["b", "c"]}'
bad "line 1: 'answer' is 2, and the indices of the 2 choices are 0 to 1" '{"prompt": "a", "choices": ["b", "c"], "answer": 2}'
bad "line 1: 'answer' is -1" '{"prompt": "a", "choices": ["b", "c"], "answer": -1}'
bad "expected the index of the right choice" '{"prompt": "a", "choices": ["b", "c"], "answer": "B"}'
bad "'choices': text 2 of 2 is empty" '{"prompt": "a", "choices": ["b", ""], "answer": 0}'
bad "line 2: not a JSON object: " "$good" '{"prompt": "a", "choi'
bad "'$work/bad.jsonl' is a JSON list: write an object a line" '[1, 2]'
bad "line 1: not a JSON object" '"text"'
bad "'choices' has 0 texts (expected 2 to 1000)" '{"prompt": "a", "choices": [], "answer": 0}'
bad "'choices': expected text, or a list of texts" '{"prompt": "a", "choices": {"a": "b"}, "answer": 0}'
bad "'choices': expected text, or a list of texts" '{"prompt": "a", "choices": ["b", 2], "answer": 0}'
bad "'prompt': expected text" '{"prompt": null, "choices": ["b", "c"], "answer": 0}'
bad "'answer' is an empty list" '{"prompt": "a", "choices": ["b", "c"], "answer": []}'
bad "with the defaults of the first line: '$work/bad.jsonl', line 2: unknown field 'tokns'" '{"defaults": {"tokns": 3}}' '{"prompt": "a", "answer": "b"}'
bad "unknown field 'anser'" '{"prompt": "a", "anser": "b"}'
bad "expected 'prompt' with 'choices'" '{"question": "a"}'
bad "line 2: this row is of kind 'text', and the rows before are of kind 'choice'" "$good" '{"text": "a"}'
bad "has no rows" '{"defaults": {"tokens": 3}}'
bad "'defaults' are allowed in the first line only" "$good" '{"defaults": {}}'
bad "'tokens': expected a whole number" '{"prompt": "a", "answer": "b", "tokens": 0}'
bad "'tokens' is 16, and the model's context has 16 tokens" '{"prompt": "a", "answer": "b", "tokens": 16}'
bad "'extract': '(' is not a POSIX extended regular expression" '{"prompt": "a", "answer": "b", "extract": "("}'
bad "'text' is empty" '{"text": ""}'
bad "unknown field 'row'" '{"text": "a", "row": 3}'
bad "task 'bad', line 1: choice 1 has 18 tokens, and the model reads at most 16" \
    '{"prompt": "a", "choices": ["b", "bbbbbbbbbbbbbbbbb"], "answer": 1}'
: >"$work/bad.jsonl"
expect 2 evaluate "$work/gpt2/model" -t "$work/bad.jsonl"
says "has no rows"
printf '%s\n' "$good" | gzip >"$work/bad.jsonl"
expect 2 evaluate "$work/gpt2/model" -t "$work/bad.jsonl"
says "'$work/bad.jsonl' is compressed: unpack it with 'gunzip'"
printf '%s\n' "$good" | iconv -f utf-8 -t utf-16 >"$work/bad.jsonl"
expect 2 evaluate "$work/gpt2/model" -t "$work/bad.jsonl"
says "is in UTF-16"
expect 2 evaluate "$run" -t "$work/letters.jsonl" -t "$work/letters.jsonl"
says "'$work/letters.jsonl' is given twice"

# --- files of other systems and programs: a byte order mark, CR LF, no line feed at the end, the same id twice
for lines in '\xef\xbb\xbf%s\n%s' '%s\r\n%s\r\n' '\xef\xbb\xbf{"defaults": {"id": 7}}\r\n\r\n%s\n%s'; do
    printf "$lines" "$good" "$good" >"$work/lines.jsonl"
    expect 0 evaluate "$work/gpt2/model" -t "$work/lines.jsonl" --json
    json "o['tasks'][0]['rows'] == 2"
done
mkdir "$work/other"
cp "$work/letters.jsonl" "$work/other"
expect 2 evaluate "$run" -t "$work/letters.jsonl" -t "$work/other/letters.jsonl"
says "are both the task 'letters': rename one of the files"
cp "$work/letters.jsonl" "$work/a b.jsonl"
expect 2 evaluate "$run" -t "$work/a b.jsonl"
says "rename the file"
expect 2 evaluate "$run"
says "--task is missing"
expect 2 evaluate "$run" -t "$work/none.jsonl"
one_line
expect 2 evaluate "$work/none/model" -t "$work/letters.jsonl"
says "cannot open the folder '$work/none/model'"
expect 2 evaluate nosuchrun -t "$work/letters.jsonl"
one_line
rm "$work/gpt2/model/tokenizer.json"
expect 2 evaluate "$work/gpt2/model" -t "$work/letters.jsonl"
says "has no tokenizer.json"
