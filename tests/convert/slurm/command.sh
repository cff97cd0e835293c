#!/bin/bash
#SBATCH --job-name=finetune
#SBATCH --nodes=2 --gpus-per-node=4 --cpus-per-task=8 --partition=long
export HF_HOME=/scratch/hf
srun --ntasks-per-node=4 python train.py --model llama
