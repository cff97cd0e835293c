torchrun --standalone --nproc_per_node=4 -m package.train --steps 100
