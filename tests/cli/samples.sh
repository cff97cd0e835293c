#!/usr/bin/env bash
# evaluate.samples: texts of the model at each evaluation, those that `dtrun generate` makes of its checkpoints, without an
# effect on the training; in the history, exports and commands. Characters that control a terminal are not printed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/samples_lib.sh"

expect 0 "${common[@]}" --name plain --set 'evaluate.samples=[]'
expect 0 "${common[@]}" --name greedy
cmp <(losses plain) <(losses greedy) || fail "samples changed the training"
[ "$(texts greedy | cut -d, -f1 | uniq -c | xargs)" = "3 [20 3 [40 3 [60" ] || fail "$(texts greedy)"
like_generate greedy 60 1337 --temperature 0
expect 0 "${common[@]}" --name fsdp "${drawn[@]}" --set strategy.kind=fsdp
like_generate fsdp 20 7 "${options[@]}"

# each step is there once; commands and exports have the same texts
run=$("$dtrun" show greedy --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])')
expect 0 sql "SELECT step, place, prompt, text, tokens, ended FROM samples WHERE run = '$run' ORDER BY step, place" --json
json "len(o['rows']) == 9"
expect 0 show greedy --samples
says "step 60" "  the qu" "(empty prompt)" "24 tokens, cut at the limit"
lacks "step 40"
expect 0 show greedy --samples --step 40
says "step 40"
expect 2 show greedy --samples --step 41
says "no samples of step 41 (newest: 60)"
expect 2 show plain --samples
says "has no samples: its recipe needs 'evaluate.samples'"
expect 2 show greedy --step 40
says "--step needs --samples or --confusion"
expect 0 export greedy --to samples -o "$work/samples.csv"
expect 0 export greedy --to jsonl -o "$work/all.jsonl"
expect 0 export greedy --to html -o "$work/page.html"
texts greedy >"$work/want"
python3 - "$work" <<'PY' || fail "an export differs"
import csv, json, re, sys
work = sys.argv[1]
want = [json.loads(line) for line in open(work + "/want")]
rows = [[int(r["step"]), int(r["index"]), r["prompt"], r["text"], int(r["tokens"]), r["ended"]]
        for r in csv.DictReader(open(work + "/samples.csv", newline=""))]
unquote = lambda row: [v[1:] if isinstance(v, str) and re.match(r"'[=+\-@\t\r]", v) else v for v in row]
assert [unquote(r) for r in rows] == want, (rows, want)
lines = [json.loads(line) for line in open(work + "/all.jsonl")]
texts = [[o["step"], o["sample"], o["prompt"], o["text"], o["tokens"], o["ended"]] for o in lines if "sample" in o]
assert texts == want and any(o.get("name") == "valid_loss" for o in lines)
page = json.loads(re.search(r'id="answers"[^>]*>(.*?)</script>', open(work + "/page.html").read(), re.S).group(1))
key, = [k for k in page["answers"] if k.endswith("/samples")]
assert page["answers"][key]["steps"] == [20, 40, 60] and page["answers"][key + "?step=20"]["step"] == 20
PY

# a history that is rebuilt from the run's folder has them
mv "$db" "$work/lost.db"
rm -f "$db"-wal "$db"-shm
expect 0 store repair
texts greedy | cmp - "$work/want" || fail "the rebuilt history has other samples"

# wrong prompts are named
expect 1 "${common[@]}" --name wrong --set 'evaluate.samples=["the", "#"]'
says "'evaluate.samples': prompt 2: the character '#' (U+0023) is not in the vocabulary"
expect 2 launch "$work/samples.yaml" --set 'evaluate.samples=["a"]' --set evaluate.samples_tokens=0
says "'evaluate.samples_tokens' is 0: expected a whole number, 1 to 16384"

# a model of bytes writes what no terminal may get
expect 0 launch --wait "$work/samples.yaml" --name bytes --set data.tokenizer=byte --set schedule.steps=1 \
    --set evaluate.samples_temperature=3
expect 0 show bytes --samples
! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$work/out" || fail "control characters"
iconv -f UTF-8 -t UTF-8 "$work/out" >/dev/null || fail "not UTF-8"
