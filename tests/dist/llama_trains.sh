#!/usr/bin/env bash
# llama_trains: resumes a model of kind llama (grouped keys, wide heads, biases and norms of q and k, an odd width). A
# resumed run has the bits of a run that was not stopped, dropout included. A run that resumes on another number of
# ranks follows it. The checkpoint generates text, past the context too. strategies_agree.sh compares the strategies.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(model.kind=llama model.heads=6 model.kv_heads=2 model.embed=33 model.head_width=10 model.ffn=50
        model.qkv_bias=true model.qk_norm=true model.rope_scaling=llama3 model.rope_factor=4
        model.rope_original_tokens=64 model.tied=false evaluate.every=10 evaluate.sequences=33 batch.accumulate=2)
dropped=(model.dropout=0.1 model.attention_dropout=0.1)
fsdp=strategy.kind=fsdp

train 2 cut "${common[@]}" "${dropped[@]}" batch.sequences=6 $fsdp checkpoint.every=10
train 2 rest "${common[@]}" "${dropped[@]}" batch.sequences=6 $fsdp "resume=$work/cut.ck/step-00000010"
same_bits cut rest 20
train 2 start "${common[@]}" batch.sequences=6 $fsdp checkpoint.every=10
train 3 elsewhere "${common[@]}" batch.sequences=4 strategy.kind=ddp "resume=$work/start.ck/step-00000010"
for metric in loss valid_loss; do
    same_metric $metric start elsewhere 1e-5
done

"$bin/dtrun-engine" generate --checkpoint "$work/elsewhere.ck/step-00000020" --prompt "the ship" --tokens 80 \
    --temperature 0 > "$work/text.out" || fail "generate: exit $?"
[ "$(wc -c < "$work/text.out")" -ge 80 ] || fail "generate wrote only: $(cat "$work/text.out")"
