#!/usr/bin/env bash
# BLEU of lines against references: the line of sacreBLEU, as JSON, from stdin; files with different numbers of lines,
# files that do not exist.
. "$(dirname "$0")/lib.sh"
printf 'the cat sat on a mat .\nHello , world !\n' >"$work/ours"
printf 'the cat sat on the mat.\r\nHello, world!' >"$work/theirs"
expect 0 score --hypothesis "$work/ours" --reference "$work/theirs"
says "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:dtrun-" \
    " = 63.40 90.9/77.8/57.1/40.0 (BP = 1.000 ratio = 1.000 hyp_len = 11 ref_len = 11)" # sacreBLEU 2.6.0
expect 0 score --hypothesis "$work/ours" --reference "$work/theirs" --json
json "abs(o['bleu'] - 63.40466277046863) < 1e-9" "o['lines'] == 2" "o['hypothesis_words'] == 11" \
    "len(o['precisions']) == 4" "o['brevity_penalty'] == 1"
"$dtrun" score --hypothesis - --reference "$work/theirs" <"$work/ours" >"$work/out" 2>"$work/err"
says " = 63.40 "
expect 0 score --hypothesis "$work/ours" --reference "$work/ours" --tokenize none
says "tok:none" " = 100.00 "
expect 0 score --hypothesis "$work/ours" --reference "$work/theirs" --tokenize char --json
json "o['hypothesis_words'] == 28" "abs(o['bleu'] - 83.2) < 0.05"

head -n 1 "$work/ours" >"$work/one"
expect 2 score --hypothesis "$work/one" --reference "$work/theirs"
says "has 1 lines" "has 2"
one_line
: >"$work/empty"
expect 2 score --hypothesis "$work/empty" --reference "$work/empty"
says "has no lines"
printf '\n\n' >"$work/blank"
expect 0 score --hypothesis "$work/blank" --reference "$work/theirs" --json
json "o['bleu'] == 0" "o['brevity_penalty'] == 0" "o['hypothesis_words'] == 0"
head -c 100000 /dev/urandom >"$work/noise"
expect 0 score --hypothesis "$work/noise" --reference "$work/noise" --json
json "abs(o['bleu'] - 100) < 1e-9"
expect 2 score --hypothesis "$work/ours"
says "--reference is missing"
one_line
expect 2 score --hypothesis - --reference -
says "both be stdin"
expect 2 score --hypothesis "$work/none" --reference "$work/ours"
says "$work/none"
expect 2 score --hypothesis "$work/ours" --reference "$work/ours" --tokenize moses
says "moses"
