#!/usr/bin/env bash
# The ranks of a run continue, translate or score lines: the file is the same for 1, 2 and 3 ranks and for one process,
# to the byte; what cannot be divided, and what such a run cannot do, is reported.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set ranks=1
run=$(field "o['run']")
python3 - "$work" <<'PY'
import random, sys
random.seed(2)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
with open(sys.argv[1] + "/lines", "w") as out:
    for i in range(57):
        out.write(" ".join(random.choice(words) for _ in range(random.randint(0, 4))) + ("\r\n" if i % 5 == 0 else "\n"))
    out.write("fox") # no line break at the end
PY

same() { # ranks options...: generates with the run `run`, and compares with the output of one process
    local ranks=$1
    shift
    rm -f "$work/shared"
    expect 0 generate "$run" --input "$work/lines" --ranks "$ranks" --threads 1 --output "$work/shared" "$@"
    cmp "$work/one" "$work/shared" || fail "$ranks ranks write something else: $(diff "$work/one" "$work/shared" | head -n 4)"
}
for options in "--tokens 20" "--tokens 9 --temperature 0 --batch 3" "--tokens 12 --seed 7 --top-k 5 --stop ow"; do
    expect 0 generate "$run" --input "$work/lines" --threads 1 $options
    cp "$work/out" "$work/one"
    for ranks in 1 2 3; do same $ranks $options; done
done
[ "$(wc -l <"$work/shared")" -eq 58 ] || fail "$(wc -l <"$work/shared") lines of 58"
cp "$work/lines" "$work/all"
cut -c 1-8 "$work/all" >"$work/lines" # a beam search is limited to the 16 tokens that the model sees
expect 0 generate "$run" --input "$work/lines" --threads 1 --tokens 6 --beam 3
cp "$work/out" "$work/one"
same 2 --tokens 6 --beam 3
cp "$work/all" "$work/lines"

# Without --output the lines are printed; more ranks than lines; from stdin.
head -n 2 "$work/lines" >"$work/two"
expect 0 generate "$run" --input "$work/two" --threads 1 --tokens 5
cp "$work/out" "$work/one"
expect 0 generate "$run" --input "$work/two" --threads 1 --tokens 5 --ranks 3 --wait
cmp "$work/one" "$work/out" || fail "not what one process prints"
"$dtrun" generate "$run" --input - --tokens 5 --ranks 2 --threads 1 <"$work/two" >"$work/out" 2>"$work/err" || fail "stdin"
cmp "$work/one" "$work/out" || fail "not what one process prints"
subject="the last run"
expect 0 generate "$run" --input "$work/two" --tokens 5 --ranks 2 --json --name mine --tag a --note b
json "o['task'] == 'generate'" "o['state'] == 'finished'" "o['step'] == 2 == o['steps_total']" "o['name'] == 'mine'" \
    "o['tags'] == ['a']" "open(o['output']).read().count('\\n') == 2"
shared=$(field "o['run']")

# Scores: every digit, and their total.
expect 0 score "$run" --input "$work/lines" --threads 1
cp "$work/out" "$work/scores"
expect 0 score "$run" --input "$work/lines" --ranks 3 --threads 1 --wait
cmp "$work/scores" "$work/out" || fail "other scores: $(diff "$work/scores" "$work/out" | head -n 4)"
grep -q '^line [0-9]*/58  [0-9.k]* lines/s' "$work/err" || fail "no progress: $(cat "$work/err")"
expect 0 score "$run" --input "$work/lines" --ranks 2 --threads 1 --output "$work/scored" --json
cmp "$work/scores" "$work/scored" || fail "other scores"
json "o['task'] == 'score'" "abs(o['loss'] - $(tail -n 1 "$work/scores" | sed 's/.*loss \([0-9.]*\),.*/\1/')) < 1e-5"
scored=$(field "o['run']")
expect 0 metrics "$scored"
says "lines_per_second" "tokens_per_second" "loss"

# It is shown as a task, and nothing of it remains except the requested output.
expect 0 show "$scored"
says "task" "score" "of run $run" "$work/scored"
expect 0 list
says "tiny-score" "tiny-generate"
expect 0 list --json
json "[r['task'] for r in o['runs'] if r['run'] == '$scored'] == ['score']" \
    "[r['task'] for r in o['runs'] if r['run'] == '$run'] == ['train']"
folder=$work/state/dtrun/runs/$scored
for gone in parts input.txt checkpoints; do
    [ ! -e "$folder/$gone" ] || fail "$folder has $gone"
done

# What such a run cannot do, and what cannot be divided.
for command in "generate $shared --prompt x" "score $shared --input $work/two" "fork $shared" \
    "export $shared --to hf $work/hf"; do
    expect 2 $command
    says "is a generate run with a checkpoint of run '$run'"
done
expect 2 resume "$shared"
says "is finished: its lines are in"
printf 'model: {from: "run:%s"}\n' "$shared" >"$work/from.yaml"
expect 2 validate "$work/from.yaml"
echo 'task: score' | cat - "$work/tiny.yaml" >"$work/task.yaml"
expect 2 validate "$work/task.yaml"
says "has no effect on 'task: score'" "'lines.run' is missing"
: >"$work/empty"
expect 2 generate "$run" --input "$work/empty" --ranks 2
says "has no lines to distribute"
expect 2 generate "$run" --prompt x --ranks 2
says "--ranks, --nodes and --gpus require --input"
expect 2 generate "$run" --input "$work/two" --prompt x --ranks 2
says "--input cannot be combined"
expect 2 generate "$run" --input "$work/two" --ranks 2 --device cpu
says "use --gpus"
expect 2 generate "$run" --input "$work/two" --detach
says "--detach requires"
expect 2 score "$run" --input "$work/two" --output "$work/x"
says "--output needs"
expect 2 score "$run" --input "$work/two" --target "$work/two" --ranks 2
says "leave out the translations"
expect 2 generate "$run" --input "$work/two" --ranks 2 --output "$work/scored"
says "exists; use --force to replace it"
cmp "$work/scores" "$work/scored" || fail "it was replaced"
expect 0 generate "$run" --input "$work/two" --ranks 2 --tokens 5 --threads 1 --output "$work/scored" --force
cmp "$work/one" "$work/scored" || fail "it was not replaced"
# A line that cannot be continued ends the run, with its number in the file, and without a restart.
printf 'the\nfox\nthé\nfox\n' >"$work/strange"
expect 1 generate "$run" --input "$work/strange" --ranks 2 --json --output "$work/strange.out"
json "'line 3' in o['reason']" "o['attempt'] == 1" "o['state'] == 'failed'"
[ ! -e "$work/strange.out" ] || fail "there is an output"

# A Llama in Hugging Face's files, with its tokenizer: four ranks write the same as one.
mkdir "$work/llama"
cp tests/golden/huggingface/llama/* "$work/llama"
python3 - "$work" <<'PY'
import json, random, sys
letters = [*"XĠĊabcdefghijklmnopqrstuvwxyz"]
with open(sys.argv[1] + "/llama/tokenizer.json", "w") as out:
    json.dump({"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
               "decoder": {"type": "ByteLevel"},
               "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate([*letters, "th", "the"])},
                         "merges": ["t h", "th e"]}}, out)
random.seed(3)
words = "the quick brown fox jumps over a lazy dog".split()
with open(sys.argv[1] + "/prompts", "w") as out:
    for i in range(90): # the long prompts come first
        out.write(" ".join(random.choice(words) for _ in range(60 if i < 20 else i % 4)) + "\n")
PY
cat >"$work/llama.yaml" <<YAML
model: {from: llama}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 2}
evaluate: {every: 0}
YAML
expect 0 launch --wait --json "$work/llama.yaml"
llama=$(field "o['run']")
for options in "--tokens 30" "--tokens 12 --temperature 0 --batch 5"; do
    expect 0 generate "$llama" --input "$work/prompts" --ranks 1 --threads 1 --output "$work/one" --force $options
    expect 0 generate "$llama" --input "$work/prompts" --ranks 4 --threads 1 --output "$work/four" --force $options
    cmp "$work/one" "$work/four" || fail "four ranks continue otherwise: $(diff "$work/one" "$work/four" | head -n 4)"
done
[ "$(wc -l <"$work/four")" -eq 90 ] || fail "$(wc -l <"$work/four") lines of 90"
[ "$("$dtrun" logs last | sed -n 's/.*this rank processes \([0-9]*\) of 90 lines.*/\1/p' | sort -n | head -n 1)" -ge 20 ] ||
    fail "a rank has hardly any lines: $("$dtrun" logs last | grep processes)"

# A checkpoint with overflowed numbers is refused, without a restart: each step multiplies the embedding of X, which the
# corpus lacks, by -999.
python3 - "$work/llama/model.safetensors" <<'PY'
import json, struct, sys
with open(sys.argv[1], "r+b") as file:
    length, = struct.unpack("<Q", file.read(8))
    begin, end = json.loads(file.read(length))["model.embed_tokens.weight"]["data_offsets"]
    file.seek(8 + length + begin)
    count = (end - begin) // 4 // 61
    file.write(struct.pack(f"<{count}f", *[1e37] * count))
PY
expect 0 launch --wait --json "$work/llama.yaml" --set schedule.steps=1 --set schedule.warmup_steps=0 \
    --set optimizer.lr=100 --set optimizer.weight_decay=10
diverged=$(field "o['run']")
printf 'the\nXfo\n' >"$work/two"
for command in "generate $diverged --prompt X" "generate $diverged --input $work/two" \
    "generate $diverged --input $work/two --beam 2 --tokens 4" "score $diverged --input $work/two"; do
    expect 3 $command
    says "outputs are not finite: the run diverged before this checkpoint"
done
says "line 2:"
for command in generate score; do
    expect 1 $command "$diverged" --input "$work/two" --ranks 2 --json --output "$work/diverged.out"
    json "'line ' in o['reason']" "'the run diverged before this checkpoint' in o['reason']" "o['attempt'] == 1" "o['state'] == 'failed'"
    [ ! -e "$work/diverged.out" ] || fail "there is an output"
done
