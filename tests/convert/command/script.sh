#!/bin/bash
set -e
cd /data/project
source venv/bin/activate
export DATA=/data/set MASTER_PORT=1234
echo "starting on $(hostname)"
CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py "$@"
