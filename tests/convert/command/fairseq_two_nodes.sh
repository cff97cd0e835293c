python -m torch.distributed.launch --nproc_per_node=8 \
    --nnodes=2 --node_rank=0 --master_addr="192.168.1.1" --master_port=12345 \
    $(which fairseq-train) data-bin/wikitext-103-roberta-bpe-bin \
    --ddp-backend fully_sharded --no-reshard-after-forward \
    --fp16 --fp16-init-scale 4 --checkpoint-activations \
    --task language_modeling --tokens-per-sample 1024 --batch-size 16 --update-freq 2 \
    --arch transformer_lm_gpt2_small \
    --optimizer adam --adam-betas "(0.9,0.98)" --weight-decay 1e-2 --clip-norm 1.0 \
    --lr 1.5e-4 --min-lr 1e-5 --lr-scheduler cosine --warmup-updates 3200 --lr-period-updates 96800 \
    --max-update 100000 --keep-last-epochs 3 \
    --save-interval-updates 1000 --keep-interval-updates 100 \
    --log-format json --log-interval 1 --save-dir checkpoints/small
