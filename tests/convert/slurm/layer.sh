#!/bin/bash
#SBATCH -N 2-4 --exclusive -A project -J "a job"
#SBATCH --gres=gpu:8 -c 8 -t 1-0
# no command
