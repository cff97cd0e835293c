#!/usr/bin/env bash
# Command lines of other programs give exactly the recipe (NAME.yaml) and the text (NAME.txt) beside them; every
# recipe is one that validate takes, and what is wrong is named.
#   recipes.sh --update   writes what is said now; read it before it is committed
set -uo pipefail
cd "$(dirname "$0")"
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(cd ../.. && realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
failed=0 count=0
complain() { printf '%s\n' "$*"; failed=1; }

for given in fairseq/*.sh llm.c/*.sh nanogpt/*.py slurm/*.sh; do
    count=$((count + 1))
    read -r -a more <<<"$(sed -n 's/^# import: //p' "$given")"
    "$dtrun" import "${given%%/*}" "$given" "${more[@]}" >"$work/recipe.yaml" 2>"$work/said" </dev/null ||
        complain "$given: exit code $?"
    for kind in recipe.yaml:yaml said:txt; do
        wanted=${given%.*}.${kind#*:}
        if [ "${1:-}" = --update ]; then
            cp "$work/${kind%:*}" "$wanted"
        else
            diff -u --label "$wanted" --label said "$wanted" "$work/${kind%:*}" || failed=1
        fi
    done
    case $given in
    *layer*) read -r -a recipe <<<"nanogpt/gpt2.yaml -f $work/recipe.yaml" ;; # says only where
    *) recipe=("$work/recipe.yaml") ;;
    esac
    grep -q '^nodes:' "$work/recipe.yaml" || recipe+=(--set gpus=none) # this machine may have none
    "$dtrun" validate --no-data --strict "${recipe[@]}" >"$work/out" 2>&1 || complain "$given: $(cat "$work/out")"
done
[ $count -ge 10 ] || complain "only $count command lines"

# What a word may hold becomes no line of YAML: a carriage return ends one there.
"$dtrun" import fairseq "fairseq-train 'da"$'\r'"ta' --task language_modeling --arch transformer_lm_gpt --max-update 10 --batch-size 2" \
    >"$work/recipe.yaml" 2>/dev/null || complain "a carriage return in a word"
grep -qF 'train: "da\x0dta/train.bin"' "$work/recipe.yaml" || complain "the file's name: $(cat "$work/recipe.yaml")"

# The same from stdin, in quotes, split by the shell, and into a file that was not there.
line="fairseq-train d --task language_modeling --arch transformer_lm_gpt --max-update 10 --batch-size 2"
"$dtrun" import fairseq -- $line >"$work/split" 2>/dev/null || complain "split by the shell"
"$dtrun" import fairseq "$line" 2>/dev/null | cmp - "$work/split" || complain "in quotes"
printf '%s\n' "${line/ --arch/ \\$'\r\n' --arch}" | "$dtrun" import fairseq - 2>/dev/null | cmp - "$work/split" || complain "from stdin"
"$dtrun" import fairseq -o "$work/new.yaml" -- $line >"$work/out" 2>"$work/err" || complain "into a file"
cmp "$work/new.yaml" "$work/split" && [ ! -s "$work/out" ] || complain "what is in the file"
grep -q "dtrun validate" "$work/err" || complain "it does not say that data were not looked at"
"$dtrun" import fairseq --json -- $line >"$work/out" 2>"$work/err" || complain "as JSON"
python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
assert o["version"] == 1 and o["recipe"] == open(sys.argv[2]).read() and o["not_carried"] == [] and o["notes"]' "$work/out" "$work/split" || complain "JSON"
for tool in fairseq llm.c nanogpt slurm; do
    [ "$("$dtrun" import $tool --flags | wc -l)" -ge 20 ] || complain "--flags of $tool"
done

# What is wrong: exit code 2, the reason, and no recipe.
wrong() { # text arguments...
    local text=$1 got=0
    shift
    "$dtrun" import "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ $got -eq 2 ] || complain "import $*: exit code $got"
    grep -qF -- "$text" "$work/err" || complain "import $*: does not say '$text': $(cat "$work/err")"
    [ ! -s "$work/out" ] || complain "import $*: a recipe was written"
}
base=(fairseq -- fairseq-train d --task language_modeling --max-update 10)
wrong "is there already" fairseq -o "$work/new.yaml" -- $line
wrong "a command line is missing" fairseq
wrong "a single quote is not closed" fairseq "fairseq-train --adam-betas '(0.9, 0.98)"
wrong "there is no fairseq-train command" fairseq "echo hello there"
wrong "--arch is missing" "${base[@]}"
wrong "did you mean 'transformer_lm_gpt2_small'" "${base[@]}" --arch transformer_lm_gpt2_smal
wrong "--max-update: expected a whole number, got 'ten'" "${base[@]}" --arch transformer_lm --max-update ten
wrong "--lr: expected a number" "${base[@]}" --arch transformer_lm --lr fast
wrong "--batch-size: its value is missing" "${base[@]}" --arch transformer_lm --batch-size --fp16
wrong "did you mean 'transformer'" fairseq -- fairseq-train d --task translation --arch transforme
wrong "of fairseq's models of translation" fairseq -- fairseq-train d --task translation --arch transformer_lm
wrong "--task translation_moe: dtrun has language_modeling and translation" fairseq -- fairseq-train d --task translation_moe --arch transformer
wrong "neither --max-tokens nor --batch-size" fairseq -- fairseq-train d --arch transformer
wrong "makes no recipe" "${base[@]}" --arch transformer_lm --decoder-attention-heads 7
wrong "is not a multiple of" llm.c -- ./train_gpt2cu -b 4 -t 64 -d 1000 -e d12
wrong "cannot be divided among 3 ranks" nanogpt -- torchrun --nproc_per_node 3 train.py
wrong "batch_size: expected a whole number" nanogpt -- --batch_size=much
wrong "expected csv, mlflow, tensorboard, fairseq" keras file

# A typed flag that is none, one that is given twice, one whose value only a shell knows.
says() {
    local text
    for text; do grep -qF -- "$text" "$work/err" || complain "does not say '$text': $(cat "$work/err")"; done
}
"$dtrun" import fairseq 'fairseq-train d --task language_modeling --arch transformer_lm --max-update 10 --max-updates 20 --seed 1 --seed 2 --lr $LR' >"$work/out" 2>"$work/err" || complain "a line with faults"
says "--max-updates 20: this flag is not known (did you mean '--max-update'?)" "--seed 1: it is given again, as --seed 2" \
    "--lr \$LR: only a shell knows this value"
grep -q "seed: 2 " "$work/out" || complain "the last of two does not count"

# Languages: as they are given, by the files that are there, by the folder's name, or not known.
languages() { # source target arguments...
    local source=$1 target=$2
    shift 2
    "$dtrun" import fairseq -- fairseq-train "$@" --arch transformer --max-tokens 512 >"$work/out" 2>"$work/err" || complain "$*: $(cat "$work/err")"
    grep -q "source: $source " "$work/out" && grep -q "target: $target " "$work/out" || complain "$*: not $source and $target"
}
mkdir -p "$work/bin"
touch "$work/bin"/train.ro-hu.{ro,hu}.{bin,idx}
languages ro hu "$work/bin"
languages ro hu "$work/bin/"
languages cs en "$work/bin" -s cs -t en
languages ro en "$work/bin" --target-lang en
languages de en d/wmt.de-en/
languages SOURCE TARGET d-/x
says "put the languages into"

# A folder of text is no command line, and init is named.
mkdir -p "$work/texts"
code=0
"$dtrun" import fairseq "$work/texts" >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] || complain "a folder ends with $code"
says "'$work/texts' is a folder, not a command line" "'dtrun init $work/texts'"
[ $failed -eq 0 ] && echo "good: $count command lines"
exit $failed
