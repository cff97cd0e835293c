#!/bin/bash
#SBATCH --job-name=gpt2-small
#SBATCH -N 2
#SBATCH --gpus-per-node=a100:4 --ntasks-per-node=1   # four each
#SBATCH -p gpu --time=12:00:00
#SBATCH --output=log-%j.txt
# it's a comment
MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
DATA=data-bin/wikitext-103
ARGS="--task language_modeling --arch transformer_lm_gpt --lr 1e-4"
srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=$SLURM_GPUS_ON_NODE --rdzv_endpoint=$MASTER:29500 \
    $(which fairseq-train) $DATA $ARGS --optimizer adam --lr-scheduler fixed \
    --tokens-per-sample 512 --batch-size 4 --max-update 1000 --bf16 2>&1 | tee log.txt
