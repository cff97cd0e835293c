#!/bin/bash
SRC=en
torchrun --nproc_per_node 8 $(which fairseq-train) data-bin/wmt16_en_de_bpe32k/ \
    --task translation -s $SRC -t de --left-pad-source False \
    --arch transformer_vaswani_wmt_en_de_big --share-all-embeddings --encoder-normalize-before \
    --decoder-layers 4 --decoder-ffn-embed-dim 2048 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 0.0 \
    --lr 0.0005 --lr-scheduler inverse_sqrt --warmup-updates 4000 --warmup-init-lr 1e-07 \
    --dropout 0.3 --weight-decay 0.0 --max-source-positions 512 --max-target-positions 256 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens 3584 --batch-size 400 --update-freq 16 --max-update 30000 \
    --skip-invalid-size-inputs-valid-test --fp16
