#!/usr/bin/env bash
# GGUF files of the families of kind llama, read by a reader of our own (gguf_read.py), and of a tokenizer with tokens for bytes;
# what llama.cpp cannot compute is refused by its name.
#   gguf_families.sh FAMILY...     these; without, all
. "$(dirname "$0")/lib.sh"
wanted=" $* "
printf 'the quick brown fox jumps over the lazy dog\n%.0s' $(seq 40) >"$work/corpus.txt"

train() { # name folder
    cat >"$work/$1.yaml" <<YAML
name: $1
model: {from: $2}
data: {train: corpus.txt}
batch: {sequences: 1, tokens: 16}
schedule: {steps: 1}
evaluate: {every: 0}
YAML
    expect 0 launch --wait "$work/$1.yaml"
}

take() { # family folder: with a tokenizer
    cp -r "tests/golden/families/$1" "$work/$2"
    python3 tests/cli/gguf_read.py tokenizer "$work/$2"
}

# a change of the configuration, for what llama.cpp does not compute (unit.gguf_settings)
while IFS='|' read -r family changes; do
    [[ $wanted = "  " || $wanted = *" $family "* ]] || continue
    take "$family" "$family"
    if [ "$family" = gemma2 ]; then
        train "$family-as-it-is" "$family"
        expect 3 export "$family-as-it-is" --to gguf "$work/refused.gguf"
        says "--to gguf: 'query_pre_attn_scalar'" "llama.cpp computes"
        ls "$work" | grep -q 'refused\.gguf' && fail "files are left: $(ls "$work")"
    fi
    # shellcheck disable=SC2086
    python3 tests/cli/gguf_read.py set "$work/$family" $changes
    train "$family" "$family"
    expect 0 export "$family" --to hf "$work/$family-hf"
    for type in f32 $([ "$family" = phi3 ] && echo q8_0); do
        expect 0 export "$family" --to gguf --type "$type" "$work/$family-$type.gguf"
        python3 tests/cli/gguf_read.py check "$work/$family-hf" "$work/$family-$type.gguf" "$type" || fail "$family $type"
    done
done <<'FAMILIES'
granite|
phi3|sliding_window=16
olmo2|rope_parameters.truncate=true tie_word_embeddings=true
stablelm|
gemma|
smollm3|no_rope_layers=[1,1] use_sliding_window=false sliding_window=null layer_types=["full_attention","full_attention"]
gemma2|query_pre_attn_scalar=8 layer_types=["full_attention","sliding_attention"]
gemma3_text|query_pre_attn_scalar=8
FAMILIES
expect 0 export phi3 --to gguf "$work/again.gguf"
says "long factors of longrope" "names the model 'phi_3'"
ls "$work" | grep -q 'weights-\|partial' && fail "files are left: $(ls "$work")"

# tokens for bytes
python3 tests/cli/gguf_read.py pieces "$work/pieces"
python3 tests/cli/gguf_read.py pieces "$work/unlike" "$(printf '\u2581 th')"
for kind in pieces unlike; do
    cat >"$work/$kind.yaml" <<YAML
name: $kind
model: {kind: llama, layers: 1, heads: 2, embed: 16, ffn: 32}
data: {train: corpus.txt, tokenizer: $kind/tokenizer.json}
batch: {sequences: 1, tokens: 16}
schedule: {steps: 1}
evaluate: {every: 0}
YAML
    expect 0 launch --wait "$work/$kind.yaml"
done
expect 0 export pieces --to gguf "$work/pieces.gguf"
python3 tests/cli/gguf_read.py check-pieces "$work/pieces.gguf" || fail "pieces"
expect 3 export unlike --to gguf "$work/unlike.gguf"
says "does not merge" "not those of a SentencePiece model"
