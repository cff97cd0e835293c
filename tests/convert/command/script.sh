#!/bin/bash
set -e
cd /data/project
export DATA=/data/set MASTER_PORT=1234
echo "starting on $(hostname)"
export NCCL_DEBUG=WARN WANDB_API_KEY=abcdef
ARGS="--nnodes 2:4 --node_rank $RANK" # on the node
OMP_NUM_THREADS=4 nohup conda run -n train /opt/venv/bin/torchrun $ARGS --nproc_per_node gpu --max_restarts 3 \
    --rdzv_backend c10d --rdzv_endpoint head:29500 --rdzv_id 17 train.py --config "my config.json" --lr 1e-4 > log.txt 2>&1
