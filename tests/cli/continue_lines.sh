#!/usr/bin/env bash
# The lines of a file as prompts: each gives the same text as alone, whatever else is in the batch; a line that cannot
# be continued is named before any text is generated.
. "$(dirname "$0")/lib.sh"
make_tiny
printf 'the\nthe quick\n\nq\nthe quick brown fox jumps\r\nbrown\nthe quick brow\nfox' >"$work/lines" # 16 tokens are seen

alone() { # run options...: generates from each line as a separate prompt
    local run=$1 seed=1337 line
    shift
    while IFS= read -r line || [ -n "$line" ]; do
        "$dtrun" generate "$run" --prompt "${line%$'\r'}" --seed $((seed++)) "$@" </dev/null >"$work/one" ||
            fail "generate --prompt '$line': exit $?"
        head -c -1 "$work/one" | tr '\n\r' '  '
        echo
    done <"$work/lines"
}
for kind in "model.kind=gpt2" "model.kind=llama --set model.ffn=40 --set model.kv_heads=1"; do
    expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=40 --set $kind
    run=$(field "o['run']")
    for options in "--tokens 5" "--tokens 40" "--tokens 30 --temperature 0" "--tokens 30 --stop e --stop ow" \
        "--tokens 12 --repetition-penalty 1.3 --top-k 5"; do
        alone "$run" $options >"$work/alone"
        for batch in 1 3 16 1000; do
            expect 0 generate "$run" --input "$work/lines" --batch $batch $options
            cmp "$work/alone" "$work/out" || fail "other text than alone: $(diff "$work/alone" "$work/out")"
        done
    done
done

expect 0 generate "$run" --input "$work/lines" --tokens 30 --stop e --json
json "len(o['lines']) == 8" "o['lines'][4]['prompt'] == 'the quick brown fox jumps'" "o['lines'][2]['prompt'] == ''" \
    "o['seed'] == 1337" "o['step'] == 40" "all(l['ended'] in ('stop', 'tokens') and 1 <= l['tokens'] <= 30 for l in o['lines'])" \
    "any(l['ended'] == 'stop' for l in o['lines'])" "all('e' not in l['text'] for l in o['lines'])"
"$dtrun" generate "$run" --input - --tokens 9 <"$work/lines" >"$work/stdin" || fail "nothing from stdin"
expect 0 generate "$run" --input "$work/lines" --tokens 9 --output "$work/file"
cmp "$work/stdin" "$work/file" || fail "stdin is continued otherwise"
expect 0 generate "$run" --input "$work/lines" --tokens 9 --precision bf16
is_lines() { [ "$(wc -l <"$work/out")" = "$1" ] || fail "$(wc -l <"$work/out") lines, wanted $1"; }
is_lines 8
: >"$work/empty"
expect 0 generate "$run" --input "$work/empty"
is_lines 0
expect 0 generate "$run" --input "$work/empty" --json
json "o['lines'] == []"

printf 'the\nfox\nthé\n' >"$work/strange"
expect 2 generate "$run" --input "$work/strange"
says "line 3"
is_lines 0

# Beam search: its score is the mean log-likelihood per token of the text, equal to that of `score` after a line break.
# It is not worse than that of greedy decoding.
for beam in 2 5 40; do
    : >"$work/found"
    : >"$work/texts"
    for prompt in the "fox j" q morning; do
        expect 0 generate "$run" --prompt $'\n'"$prompt" --tokens 6 --beam $beam --json
        json "o['tokens'] == 6" "o['ended'] == 'tokens'"
        field "o['score']" >>"$work/found"
        text=$(field "o['text']")
        expect 0 generate "$run" --prompt $'\n'"$prompt" --tokens 6 --temperature 0 --json
        printf '%s\n' "$prompt$text" "$prompt$(field "o['text']")" "$prompt" >>"$work/texts"
    done
    expect 0 score "$run" --input "$work/texts" --json
    python3 - "$work/found" "$work/out" <<'PY' || fail "$(cat "$work/found" "$work/texts")"
import json, sys
found, scores = [float(line) for line in open(sys.argv[1])], json.load(open(sys.argv[2]))["lines"]
for i, score in enumerate(found):
    searched, greedy, prompt = (line["log_likelihood"] for line in scores[3 * i : 3 * i + 3])
    assert abs(score * 6 - (searched - prompt)) < 1e-4, (i, score, searched - prompt)
    assert searched > greedy - 1e-5, (i, searched, greedy)
PY
done
printf 'the\nfox j\nq\nmorning\n' >"$work/short"
expect 0 generate "$run" --input "$work/short" --tokens 6 --beam 5
cp "$work/out" "$work/searched"
is_lines 4
expect 0 generate "$run" --prompt "fox j" --tokens 6 --beam 5
[ "$(cat "$work/out")" = "$(sed -n 2p "$work/searched")" ] || fail "the search alone finds another text"
expect 0 generate "$run" --input "$work/short" --tokens 6 --beam 5 --json
json "all(l['score'] < 0 for l in o['lines'])"
expect 2 generate "$run" --input "$work/lines" --beam 2
says "line 1: a prompt of 3 tokens and 300 more exceed the model's context of 16"
expect 2 generate "$run" --input "$work/short" --tokens 6 --beam 2 --stop x
says "--beam and --stop"
expect 2 generate "$run" --input "$work/lines" --batch 0
expect 3 generate "$run" --input "$work/nothing"

# A killed command leaves no engine process and no partial file.
setsid "$dtrun" generate "$run" --input "$work/lines" --tokens 1000000 --output "$work/half" >/dev/null 2>&1 &
asking=$!
until engine=$(pgrep -P "$asking" -f dtrun-engine); do sleep 0.05; done
kill -KILL "$asking"
wait "$asking" 2>/dev/null || true
until ! kill -0 "$engine" 2>/dev/null; do sleep 0.05; done
[ ! -e "$work/half" ] || fail "half a file"
