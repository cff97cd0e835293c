#!/bin/bash -l
#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=8 --mem=0 --time 2:00:00
export OMP_NUM_THREADS=8
srun torchrun --standalone --nproc_per_node=${SLURM_GPUS_ON_NODE} train.py ../nanogpt/gpt2.py --compile=False --dtype=float16
