# A script with variables, an elastic number of nodes and older flag names.
set -e
LR=${LR:-3e-4}
EXTRA="--memory-efficient-fp16 --min-loss-scale 0.5 --fp16-scale-window 128"
torchrun --nnodes=1:4 --nproc-per-node gpu --rdzv_backend c10d --rdzv_endpoint $HEAD:29400 --max_restarts 5 \
    $(which fairseq-train) /data/a:/data/b --task language_modeling -a transformer_lm_gpt3_small \
    --max-sentences 4 --max-tokens 16384 --tokens-per-sample 512 --update-freq '[2]' \
    --optimizer adam --lr $LR --lr-scheduler inverse_sqrt --wd 0.1 --zero-sharding os --max-epoch 4 \
    --stop-time-hours 1.5 --no-epoch-checkpoints --disable-validation --frobnicate 7 $EXTRA > log.txt 2>&1
