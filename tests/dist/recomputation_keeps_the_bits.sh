#!/usr/bin/env bash
# Activations that are computed again are the same bits as those that were kept, dropout included:
# after 20 steps parameters, moments and losses are identical, in every precision, alone and sharded.
. "$(dirname "$0")/lib.sh"
make_text 40
common=(model.dropout=0.1 model.attention_dropout=0.1 batch.accumulate=2)
for precision in fp32 bf16 fp16; do
    for ranks in 1 2; do
        kind=fsdp
        [ $ranks = 2 ] || kind=ddp
        for again in none selective full; do
            train $ranks $precision-$ranks-$again "${common[@]}" strategy.kind=$kind \
                precision.kind=$precision activation_checkpointing=$again
        done
        for again in selective full; do
            same_metric loss $precision-$ranks-none $precision-$ranks-$again 0
            same_bits $precision-$ranks-none $precision-$ranks-$again 20
        done
    done
done
