#!/usr/bin/env bash
# Log-likelihoods of lines under a run: the probabilities of the next tokens add up to one, lines are summed, and lines
# that cannot be scored are named. For sentence pairs see cli.translate.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=300
run=$(field "o['run']")

grep -o . "$work/corpus.txt" | sort -u >"$work/letters"
expect 0 score "$run" --input "$work/letters" --json
json "len(o['lines']) == $(wc -l <"$work/letters")" "all(l['tokens'] == 1 and l['log_likelihood'] < 0 for l in o['lines'])" \
    "0.95 < sum(math.exp(l['log_likelihood']) for l in o['lines']) < 1 + 1e-5" \
    "abs(o['log_likelihood'] - sum(l['log_likelihood'] for l in o['lines'])) < 1e-9" "o['tokens'] == len(o['lines'])"

# after "th" only "e" can follow: a line's likelihood is the product over its letters, one after another
printf 'th\nthe\nthq\n\nthe\r\nthe' >"$work/lines"
expect 0 score "$run" --input "$work/lines"
python3 - "$work/out" <<'PY' || fail "$(cat "$work/out")"
import sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
assert len(rows) == 7 and rows[6][2].startswith("all: loss "), rows
numbers = [(float(row[0]), int(row[1])) for row in rows]
assert [tokens for _, tokens in numbers] == [2, 3, 3, 0, 3, 3, 14], numbers
assert 0 > numbers[0][0] > numbers[1][0] > numbers[2][0] + 2 and numbers[3][0] == 0, numbers
assert numbers[1] == numbers[4] == numbers[5], numbers
assert abs(numbers[6][0] - sum(score for score, _ in numbers[:6])) < 1e-5, numbers
PY
"$dtrun" score "$run" --input - <"$work/lines" >"$work/stdin" || fail "nothing from stdin"
cmp "$work/stdin" "$work/out" || fail "stdin is scored otherwise"
: >"$work/empty"
expect 0 score "$run" --input "$work/empty" --json
json "o['lines'] == []" "o['tokens'] == 0" "o['loss'] is None" "o['perplexity'] is None"
expect 0 score "$run" --input "$work/empty"
says "no token was scored"

expect 2 score "$run" --input "$work/lines" --reference "$work/lines"
says "cannot be combined with RUN"
expect 2 score --input "$work/lines"
says "RUN is missing"
expect 2 score "$run"
says "--input is missing"
expect 2 score "$run" --input "$work/lines" --target "$work/lines"
says "leave out --target"
expect 3 score "$run" --input "$work/nothing"
one_line
# the model sees 16 tokens: the last 8 of a longer line are scored in a second window, after the 8 before them
printf '%s\n' 'the quick brown ' 'the quick brown fox jumps' 'he quick brown fox jumps' >"$work/long"
expect 0 score "$run" --input "$work/long" --json
json "[l['tokens'] for l in o['lines']] == [16, 25, 24]" \
    "o['lines'][0]['log_likelihood'] > o['lines'][1]['log_likelihood']" "o['loss'] < 3"
printf 'the\n\xff\xfe\n' >"$work/bytes"
expect 2 score "$run" --input "$work/bytes"
says "line 2"
expect 0 score "$run" --input "$work/lines" --checkpoint best
expect 2 score "$run" --input "$work/lines" --checkpoint 7

# The score of a line by a model of bytes is the validation loss of this line after a line break.
printf '\nthe quick brown ' >"$work/valid"
tail -c 16 "$work/valid" >"$work/line"
expect 0 launch --wait --json "$work/tiny.yaml" --set data.tokenizer=byte --set data.validation="$work/valid" \
    --set schedule.steps=20
loss=$(field "o['valid_loss']")
expect 0 score "$(field "o['run']")" --input "$work/line" --json
json "o['tokens'] == 16" "abs(o['loss'] / $loss - 1) < 1e-5"
