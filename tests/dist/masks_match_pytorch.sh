#!/usr/bin/env bash
# masks_match_pytorch: one step on conversations, of which some tokens are trained and some have other weights, has the
# loss and the gradients of PyTorch (tests/golden/make_chat_fixture.py), in fp32 within 1e-5: packed and not, for each
# division of the batch into micro-steps and ranks, and each strategy. A run that is resumed has the bits of one that was
# not stopped.
. "$(dirname "$0")/lib.sh"
golden=$(cd "$(dirname "$0")/../golden/chat" && pwd)
model=(model.kind=llama model.layers=2 model.heads=4 model.kv_heads=2 model.embed=24 model.ffn=40 model.norm_eps=1e-6
    model.tied=false model.vocab=272)

# step NAME DATA SEQUENCES ACCUMULATE RANKS [FIELD=VALUE...]: a step over all rows of the data; compares loss and gradients
# with those of NAME.
step() {
    local name=$1 data=$2 run
    run=$1-$3-$4-$5-$(echo "${*:6}" | md5sum | cut -c1-6)
    train "$5" "$run" "from=$golden/model" "${model[@]}" data.format=chat data.tokens=chats data.split=0 \
        "data.train=[\"$golden/$data.chats\"]" "data.tokenizer=$golden/model/tokenizer.json" batch.tokens=20 \
        batch.sequences="$3" batch.accumulate="$4" optimizer.kind=sgd optimizer.momentum=0 optimizer.weight_decay=0 \
        optimizer.lr=100 clip=0 schedule.kind=constant schedule.warmup_steps=0 schedule.steps=1 "${@:6}"
    "$bin/dist_compare" metrics loss "$golden/$name.events" "$work/$run.0" 1e-5 || fail "$run: another loss"
    "$bin/dtrun-engine" export --checkpoint "$work/$run.ck/step-00000001" --output "$work/$run.hf" >/dev/null ||
        fail "$run: export"
    "$bin/dist_compare" tensors "" "$golden/$name.safetensors" "$work/$run.hf/model.safetensors" 1e-5 ||
        fail "$run: other gradients"
}

packed=data.pack=true
mean=data.loss=conversation
step plain plain 24 1 1
step plain plain 2 4 3
step plain plain 12 1 1 $packed
step plain plain 3 4 1 $packed
step plain plain 2 2 3 $packed strategy.kind=fsdp
step plain plain 3 2 4 $packed tensor.size=2
step weighted weighted 4 3 2
step weighted weighted 2 3 2 $packed strategy.kind=fsdp strategy.shard=gradients
step weighted weighted 6 2 2 $packed tensor.size=2
step weighted weighted 3 1 4 $packed strategy.kind=dp
step conversation weighted 6 4 1 $mean
step conversation weighted 3 2 2 $packed $mean
step conversation weighted 1 6 2 $packed $mean strategy.kind=fsdp
step conversation weighted 3 2 4 $packed $mean tensor.size=2 strategy.kind=fsdp
step cut plain 4 3 2 batch.tokens=12 data.too_long=cut

common=("from=$golden/model" "${model[@]}" data.format=chat data.tokens=chats data.split=0.25
    "data.train=[\"$golden/weighted.chats\"]" "data.tokenizer=$golden/model/tokenizer.json" batch.tokens=20
    batch.sequences=2 data.pack=true data.loss=conversation evaluate.every=2 checkpoint.every=4 schedule.steps=8)
train 2 whole "${common[@]}"
train 2 rest "${common[@]}" "resume=$work/whole.ck/step-00000004"
same_bits whole rest 8
for metric in loss valid_loss; do
    same_metric $metric whole rest 0
done
train 4 elsewhere "${common[@]}" batch.sequences=1 strategy.kind=fsdp "resume=$work/whole.ck/step-00000004"
for metric in loss valid_loss; do
    same_metric $metric whole elsewhere 1e-5
done
