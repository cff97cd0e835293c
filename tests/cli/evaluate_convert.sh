#!/usr/bin/env bash
# dtrun evaluate --convert: the rows of published benchmarks become rows of tasks, and wrong rows are refused with file,
# line and field. (tests/peers/evaluate.py compares prompts and metrics with lm_eval.)
. "$(dirname "$0")/lib.sh"
export LC_ALL=C.UTF-8

converted() { # benchmark, JSON lines that are expected; stdin: the file
    local benchmark=$1
    shift
    cat >"$work/in.${ending:-jsonl}"
    expect 0 evaluate --convert "$benchmark" "$work/in.${ending:-jsonl}"
    printf '%s\n' "$@" >"$work/want"
    python3 - "$work/out" "$work/want" <<'PY' || fail "$benchmark: $(cat "$work/out")"
import json, sys
got, want = ([json.loads(line) for line in open(path, encoding="utf-8")] for path in sys.argv[1:])
assert got == want, (got, want)
PY
}

# --- HellaSwag: capital letter, marks in brackets, double spaces
converted hellaswag \
    '{"id": 24, "prompt": "Roof: A man. He is there", "choices": ["goes. Up now.", "[no\nend] x"], "answer": 1}' \
    '{"prompt": "Cook: One. Ǆ? no: A Élan", "choices": ["a", "b", "c"], "answer": 2}' <<'EOF'
{"ind": 24, "activity_label": "Roof", "ctx_a": "A man.", "ctx_b": "he IS there ", "ctx": "x", "endings": [" goes [title] Up [step] now.\n", "[no\nend] x"], "label": 1, "split": "val"}

{"activity_label": "Cook", "ctx_a": "One [title] Ǆ? no: A", "ctx_b": "éLAN", "endings": ["a", "b", "c"], "label": "2"}
EOF

# --- ARC: all three of its shapes, labels of letters and digits
converted arc \
    '{"id": "M1", "prompt": "Question: Why?\nAnswer:", "choices": ["p", "q", "r"], "answer": 1}' \
    '{"prompt": "Question: Why?\nAnswer:", "choices": ["p", "q"], "answer": 0}' \
    '{"prompt": "Question: Why?\nAnswer:", "choices": ["p", "q"], "answer": 1}' <<'EOF'
{"id": "M1", "question": "Why?", "choices": {"text": ["p", "q", "r"], "label": ["A", "B", "C"]}, "answerKey": "B"}
{"question": {"stem": "Why?", "choices": [{"text": "p", "label": "1"}, {"text": "q", "label": "2"}]}, "answerKey": "1"}
{"question": "Why?", "choices": [{"text": "p", "label": "1"}, {"text": "q", "label": "2"}], "answerKey": 2}
EOF

# --- PIQA, GSM8K
converted piqa '{"prompt": "Question: Open it\nAnswer:", "choices": ["pull", "push"], "answer": 1}' <<'EOF'
{"goal": "Open it", "sol1": "pull", "sol2": "push", "label": 1}
EOF
defaults='"until": ["Question:", "</s>", "<|im_end|>"], "ignore_case": true, "remove": [",", "\\$", "\\.$"]'
row='{"prompt": "Question: How many?\nAnswer:", "answer": "1,234"}'
printf '{"question": "How many?", "answer": "a #### 1\\nb\\n#### 1,234"}' >"$work/math.jsonl"
converted gsm8k "{\"defaults\": {$defaults, \"extract\": \"#### (-?[0-9.,]+)\"}}" "$row" <"$work/math.jsonl"
converted gsm8k-flexible \
    "{\"defaults\": {$defaults, \"extract\": \"(-?[\$0-9.,]{2,})|(-?[0-9]+)\", \"extract_last\": true}}" \
    "$row" <"$work/math.jsonl"

# --- MMLU: .jsonl with index or letter, and .csv with its subject in the name
about='The following are multiple choice questions (with answers) about world religions.\n\n'
rest='Who?\nA. w\nB. x\nC. y\nD. z\nAnswer:'
letters='"choices": ["A", "B", "C", "D"]'
converted mmlu "{\"prompt\": \"$about$rest\", $letters, \"answer\": 2}" "{\"prompt\": \"$rest\", $letters, \"answer\": 3}" <<'EOF'
{"question": " Who?\n", "choices": ["w", "x", "y", "z"], "answer": 2, "subject": "world_religions"}
{"question": "Who?", "choices": ["w", "x", "y", "z"], "answer": "D"}
EOF
says "1 of 2 rows have no 'subject'"
ending=csv converted mmlu "{\"prompt\": \"$rest\", $letters, \"answer\": 1}" <<'EOF'
question,A,B,C,D,answer
Who?,w,x,y,z,B
EOF
printf '"Who, ""he""\nor she?",w,"x,",y,z,A\r\nWho?,w,x,y,z,D' >"$work/world_religions_test.csv"
cp "$work/in.jsonl" "$work/two.jsonl"
expect 0 evaluate --convert mmlu "$work/world_religions_test.csv" "$work/two.jsonl" -o "$work/mmlu.jsonl" --json
json "o == {'version': 1, 'benchmark': 'mmlu', 'file': '$work/mmlu.jsonl', 'rows': 4}"
head -1 "$work/mmlu.jsonl" | grep -qF 'religions.\n\nWho, \"he\"\nor she?\nA. w\nB. x,\nC. y' || fail "$(cat "$work/mmlu.jsonl")"
expect 2 evaluate --convert mmlu "$work/two.jsonl" -o "$work/mmlu.jsonl"
says "exists"
expect 0 evaluate --convert mmlu "$work/two.jsonl" -o "$work/mmlu.jsonl" --force
says "wrote 2 rows to $work/mmlu.jsonl"

# --- the files are accepted: only the model is wrong
for benchmark in gsm8k gsm8k-flexible; do
    expect 0 evaluate --convert $benchmark "$work/math.jsonl" -o "$work/$benchmark.jsonl"
done
expect 2 evaluate ./nosuch -t "$work/mmlu.jsonl" -t "$work/gsm8k.jsonl" -t "$work/gsm8k-flexible.jsonl"
says "cannot open the folder './nosuch'"

# --- wrong rows: file, line and field
bad() { # benchmark message rows...
    local benchmark=$1 message=$2
    shift 2
    printf '%s\n' "$@" >"$work/bad.${ending:-jsonl}"
    expect 2 evaluate --convert "$benchmark" "$work/bad.${ending:-jsonl}" -o "$work/none.jsonl"
    says "$message"
    one_line
    [ ! -e "$work/none.jsonl" ] || fail "wrote a file"
}
good='{"goal": "Open it", "sol1": "pull", "sol2": "push", "label": 1}'
bad piqa "'$work/bad.jsonl', line 2: 'label' is missing, empty or -1: add the labels" "$good" '{"goal": "a", "sol1": "b", "sol2": "c"}'
bad piqa "line 1: 'label' is missing, empty or -1" '{"goal": "a", "sol1": "b", "sol2": "c", "label": -1}'
bad piqa "line 1: 'label': expected 0 to 1" '{"goal": "a", "sol1": "b", "sol2": "c", "label": 2}'
bad piqa "line 2: 'sol2' is missing" "$good" '{"goal": "a", "sol1": "b", "label": 1}'
bad piqa "line 1: 'sol1': the text of a choice is empty" '{"goal": "a", "sol1": "", "sol2": "c", "label": 1}'
bad piqa "line 1: 'goal': expected text" '{"goal": 3, "sol1": "b", "sol2": "c", "label": 1}'
bad piqa "line 2: not a JSON object" "$good" '{"goal": '
bad piqa "line 1: expected a JSON object" '[1]'
bad piqa "has no rows" ''
bad piqa "is a Parquet file" 'PAR1....'
ending=csv bad piqa "files of piqa are .jsonl" 'a,b,c'
bad hellaswag "line 1: 'label' is missing, empty or -1: the test file" \
    '{"activity_label": "a", "ctx_a": "a", "ctx_b": "b", "endings": ["a", "b"], "label": ""}'
bad hellaswag "line 1: 'endings': the text of a choice is empty" \
    '{"activity_label": "a", "ctx_a": "a", "ctx_b": "b", "endings": ["a", "[b]"], "label": 0}'
bad hellaswag "line 1: 'endings': expected a list" '{"activity_label": "a", "ctx_a": "a", "ctx_b": "b", "endings": "c", "label": 0}'
bad hellaswag "line 1: 'ctx_b' is missing" '{"activity_label": "a", "ctx_a": "a", "endings": ["b", "c"], "label": 0}'
bad arc "line 1: 'answerKey': expected the label of one of the choices" \
    '{"question": "a", "choices": {"text": ["b", "c"], "label": ["A", "B"]}, "answerKey": "E"}'
bad arc "line 1: 'answerKey' is missing" '{"question": "a", "choices": {"text": ["b", "c"], "label": ["A", "B"]}}'
bad arc "line 1: 'choices': expected" '{"question": "a", "choices": {"text": ["b", "c"], "label": ["A"]}, "answerKey": "A"}'
bad arc "line 1: 'question': expected text" '{"question": {"stem": 3, "choices": []}, "answerKey": "A"}'
bad arc "line 1: 'question': expected text" '{"question": {"choices": []}, "answerKey": "A"}'
bad mmlu "line 1: 'choices': expected a list of four texts" '{"question": "a", "choices": ["b"], "answer": 0}'
bad mmlu "line 1: 'answer': expected A to D, or 0 to 3" '{"question": "a", "choices": ["b", "c", "d", "e"], "answer": "E"}'
bad mmlu "line 1: 'subject': expected text" '{"question": "a", "choices": ["b", "c", "d", "e"], "answer": 1, "subject": 3}'
ending=csv bad mmlu "line 3: 'answer': expected A to D" '"a' 'b",w,x,y,z,A' 'c,w,x,y,z,e'
ending=csv bad mmlu "line 1: 5 fields (expected question,A,B,C,D,answer)" 'a,w,x,y,z'
ending=csv bad mmlu "line 2: more than 6 fields" 'a,w,x,y,z,A' 'a,w,x,y,z,A,'
ending=csv bad mmlu "line 1: field 2 is not UTF-8" $'a,\xff,x,y,z,A'
bad gsm8k "line 1: 'answer': expected text that ends in '#### '" '{"question": "a", "answer": "so 3"}'
bad gsm8k "line 1: 'answer' is missing" '{"question": "a"}'

# --- wrong calls
expect 2 evaluate --convert swag "$work/math.jsonl"
says "hellaswag"
expect 2 evaluate --convert gsm8k "$work/math.jsonl" --task "$work/mmlu.jsonl"
says "--convert and --task cannot be combined"
expect 2 evaluate --convert gsm8k "$work/math.jsonl" --ranks 2
says "--convert and --ranks cannot be combined"
expect 2 evaluate --convert gsm8k "$work/math.jsonl" --json
says "needs --output FILE"
expect 2 evaluate --convert gsm8k "$work/nosuch.jsonl"
one_line
