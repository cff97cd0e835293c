#!/usr/bin/env bash
# GGUF files of runs, read by a reader of our own (gguf_read.py): every tensor in each type, the keys and the tokenizer; and what
# such a file cannot have is refused.
. "$(dirname "$0")/lib.sh"
printf 'the quick brown fox jumps over the lazy dog\n%.0s' $(seq 300) >"$work/corpus.txt"
for kind in gpt2 llama qwen2 qwen3; do
    cp -r tests/golden/huggingface/$kind "$work/$kind"
    python3 tests/cli/gguf_read.py tokenizer "$work/$kind"
    cat >"$work/$kind.yaml" <<YAML
model: {from: $kind}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 2}
YAML
    expect 0 launch --wait "$work/$kind.yaml"
    expect 0 export $kind --to hf "$work/$kind-hf"
    for type in f32 q8_0 $([ $kind = llama ] && echo f16 bf16); do
        expect 0 export $kind --to gguf --type $type "$work/$kind-$type.gguf"
        python3 tests/cli/gguf_read.py check "$work/$kind-hf" "$work/$kind-$type.gguf" $type ||
            fail "$kind $type"
    done
done
ls "$work" | grep -q 'weights-\|partial' && fail "files are left: $(ls "$work")"

expect 0 export llama --to gguf "$work/default.gguf"
cmp "$work/default.gguf" "$work/llama-f16.gguf" || fail "f16 is not the default"
expect 2 export llama --to gguf "$work/default.gguf"
says "'$work/default.gguf' already exists (--force replaces it)"
expect 0 export llama --to gguf --type f32 --force "$work/default.gguf"
cmp "$work/default.gguf" "$work/llama-f32.gguf" || fail "--force did not replace the file"
expect 2 export llama --to gguf --type q4_0 "$work/other.gguf"
says "q4_0"
expect 2 export llama --to hf --type f16 "$work/other"
says "--type needs --to gguf"

# what a file cannot have: characters as tokens
make_tiny
expect 0 launch --wait "$work/tiny.yaml" --set schedule.steps=2
expect 3 export tiny --to gguf "$work/tiny.gguf"
says "--to gguf: unsupported tokenizer.json (expected BPE"
[ ! -e "$work/tiny.gguf" ] || fail "a file is left"
ls "$work" | grep -q 'weights-\|partial' && fail "files are left: $(ls "$work")"
true
