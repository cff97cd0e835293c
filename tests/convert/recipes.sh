#!/usr/bin/env bash
# Command lines of other programs give exactly the recipe (NAME.yaml) and the text (NAME.txt) next to them; validate
# accepts every recipe, and wrong command lines are named.
#   recipes.sh --update   rewrites both; read them before you commit them
set -uo pipefail
cd "$(dirname "$0")"
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(cd ../.. && realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
export WANDB_API_KEY=x LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-/lib} # for the command lines below
failed=0 count=0
complain() { printf '%s\n' "$*"; failed=1; }

for given in command/*.sh fairseq/*.sh llm.c/*.sh nanogpt/*.py slurm/*.sh; do
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
    *layer*) read -r -a recipe <<<"nanogpt/gpt2.yaml -f $work/recipe.yaml" ;; # the text has only the place
    *) recipe=("$work/recipe.yaml") ;;
    esac
    grep -q '^nodes:' "$work/recipe.yaml" || recipe+=(--set gpus=none) # this machine may have none
    ! grep -q '^tensor:' "$work/recipe.yaml" || recipe+=(--set ranks=8) # instead of its GPUs
    strict=(--strict) # an elastic job has no batch.total, which validate warns about
    grep -q '^nodes_min:' "$work/recipe.yaml" && strict=()
    "$dtrun" validate --no-data "${strict[@]}" "${recipe[@]}" >"$work/out" 2>&1 || complain "$given: $(cat "$work/out")"
    grep "^dtrun validate: " "$work/out" | grep -v "set 'batch.total' to keep the batch" >&2 && complain "$given: warns: $(cat "$work/out")"
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
wrong "already exists" fairseq -o "$work/new.yaml" -- $line
wrong "a command line is missing" fairseq
wrong "a single quote is not closed" fairseq "fairseq-train --adam-betas '(0.9, 0.98)"
wrong "cannot find a fairseq-train command" fairseq "echo hello there"
wrong "cannot find a fairseq-train command" fairseq "python train.py --lr 1"
wrong "--arch is missing" "${base[@]}"
wrong "did you mean 'transformer_lm_gpt2_small'" "${base[@]}" --arch transformer_lm_gpt2_smal
wrong "--max-update: expected a whole number, got 'ten'" "${base[@]}" --arch transformer_lm --max-update ten
wrong "--lr: expected a number" "${base[@]}" --arch transformer_lm --lr fast
wrong "--batch-size: its value is missing" "${base[@]}" --arch transformer_lm --batch-size --fp16
wrong "did you mean 'transformer'" fairseq -- fairseq-train d --task translation --arch transforme
wrong "supported: the transformer family" fairseq -- fairseq-train d --task translation --arch transformer_lm
wrong "unsupported --task translation_moe (expected language_modeling or translation)" fairseq -- fairseq-train d --task translation_moe --arch transformer
wrong "neither --max-tokens nor --batch-size" fairseq -- fairseq-train d --arch transformer
wrong "the converted recipe is invalid: 'model.heads'" "${base[@]}" --arch transformer_lm --decoder-attention-heads 7
wrong "is not a multiple of" llm.c -- ./train_gpt2cu -b 4 -t 64 -d 1000 -e d12
wrong "cannot be divided among 3 ranks" nanogpt -- torchrun --nproc_per_node 3 train.py
wrong "batch_size: expected a whole number" nanogpt -- --batch_size=much
wrong "expected csv, mlflow, tensorboard, fairseq" keras file
wrong "cannot find a command that torchrun" command -- ./train --lr 1
wrong "unsupported --as 'recipe' of 'import fairseq'" fairseq --as recipe -- $line
"$dtrun" import fairseq --as command -- $line >"$work/out" 2>/dev/null && grep -q '^command: "fairseq-train d' "$work/out" ||
    complain "fairseq as a command: $(cat "$work/out")"

# A typed flag that is none, one that is given twice.
says() {
    local text
    for text; do grep -qF -- "$text" "$work/err" || complain "does not say '$text': $(cat "$work/err")"; done
}
"$dtrun" import fairseq 'fairseq-train d --task language_modeling --arch transformer_lm --max-update 10 --max-updates 20 --seed 1 --seed 2' >"$work/out" 2>"$work/err" || complain "a line with faults"
says "--max-updates 20: unknown flag (did you mean '--max-update'?)" "--seed 1: it is given again, as --seed 2"
grep -q "seed: 2 " "$work/out" || complain "the last of two does not count"

# Languages: as they are given, by the files that are there, or not known. A folder's name says nothing.
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
touch "$work/bin/train.zh-cn-en.zh.idx"
languages ro hu "$work/bin"
languages SOURCE TARGET d/wmt.de-en/
languages SOURCE TARGET data-bin/wmt16_en_de_bpe32k
says "put the languages into"

# Scripts, from stdin.
gives() { # tool text lines-of-the-recipe...
    local tool=$1 text=$2 line
    shift 2
    printf '%b' "$text" | "$dtrun" import "$tool" - >"$work/out" 2>"$work/err" || complain "$text: $(cat "$work/err")"
    for line; do
        grep -qE "^ *$line( |\$)" "$work/out" || complain "$text: has no '$line': $(grep -v '^#' "$work/out")"
    done
}
train='fairseq-train d --task language_modeling --arch transformer_lm'
gives fairseq "cd x && LR=0.5\nsrun --nodes 2 --ntasks-per-node 4 $train --lr \$LR" 'lr: 0.5' 'nodes: "slurm:2"' 'gpus: 4'
gives fairseq "conda run -n env $train --lr 0.5 >log.txt 2>&1" 'lr: 0.5'
says "not carried: conda run -n env: " "not carried: >log.txt: " "not carried: 2>&1: "
gives fairseq "export CUDA_VISIBLE_DEVICES=0,1 OTHER=1\nOMP_NUM_THREADS=3\nexport OMP_NUM_THREADS\n$train" 'gpus: 2' 'threads: 3'
says "not carried: OTHER=1: "
gives fairseq "$train --lr-scheduler cosine --lr 1 --min-lr 0.25 --stop-min-lr 1e-9" 'min_lr: 0.25'
says "not carried: --stop-min-lr 1e-9: "

# Nodes and devices by what launches; converters compute with them.
gives llm.c 'mpirun -np 16 --host h1:8,h2:8 ./train_gpt2cu -e d12 -b 4 -t 64 -d 8192' 'nodes: \["h1", "h2"\]' 'gpus: 8' 'accumulate: 2'
gives llm.c 'mpirun -np 12 --host h1:8,h2:8 ./train_gpt2cu -e d12 -b 4 -t 64 -d 6144' 'nodes: \["h1 gpus=8", "h2 gpus=4"\]' 'accumulate: 2'
gives llm.c 'mpirun -np 4 -H h1,h2 ./train_gpt2cu -e d12' 'nodes: \["h1", "h2"\]' 'gpus: 2'
gives llm.c 'mpirun -np 4 -N 4 -H a,b ./train_gpt2cu -e d12' 'nodes: \["a"\]' 'gpus: 4 .*-np 4, -npernode 4'
wrong "expected hosts as in 'NAME:8'" llm.c 'mpirun -np 4 -H a:9223372036854775807,b:1 ./train_gpt2cu -e d12'
wrong "cannot be divided among these hosts" llm.c 'mpirun -np 5 -H a:2,b:2 ./train_gpt2cu -e d12'
gives llm.c './train_gpt2cu -b 4 \\\n  > out.log' 'sequences: 4'
says "not carried: > out.log: "
for gres in gpu:4,nvme:1 nvme:1,gpu:a100:4 gpu:a100:2,gpu:h100:2 '"gpu:a100:4(S:0-1)"'; do
    gives slurm "#SBATCH --nodes=2 --gres=$gres\nsrun $train" 'gpus: 4'
done
gives slurm "#SBATCH --nodes=2 --gres=gpu:a100\nsrun $train" 'gpus: 1'
gives slurm "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\nsrun $train --fp16 --batch-size 2 --tokens-per-sample 8" 'gpus: 4' 'loss_scale: 16384'
gives slurm "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n#SBATCH --gpus-per-task=1\nsrun $train" 'gpus: 4'
gives slurm "#SBATCH -N2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-task=4\nsrun torchrun --nnodes 2 --nproc_per_node 4 $train" 'gpus: 4'

# nanoGPT: its arithmetic, its vocabulary; other programs that are called train.py.
printf 'max_iters = 1010\nwarmup_iters = 0.03 * max_iters\nlearning_rate = 6e-4\nmin_lr = learning_rate / 10\n' >"$work/config.py"
gives nanogpt "python train.py $work/config.py" 'warmup_steps: 31' 'min_lr: 6e-5' 'vocab: 50304'
gives nanogpt "python train.py --dataset=shakespeare_char"
grep -q "^  vocab:" "$work/out" && complain "a vocabulary of characters is given"
wrong "other programs called train.py are not supported" nanogpt -- torchrun --nproc_per_node 4 train.py --epochs 10 --backend nccl
wrong "other programs called train.py are not supported" nanogpt "python train.py --epochs=10"

# Every part of random command lines is carried, listed or refused.
python3 account.py "$dtrun" 60 || complain "parts of command lines are lost"

# A folder of text is no command line, and init is named.
mkdir -p "$work/texts"
code=0
"$dtrun" import fairseq "$work/texts" >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] || complain "a folder ends with $code"
says "'$work/texts' is a folder, not a command line" "'dtrun init $work/texts'"
[ $failed -eq 0 ] && echo "good: $count command lines"
exit $failed
