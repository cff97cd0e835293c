#!/usr/bin/env python3
"""The peer: DDP of a small model by gloo, for torchrun; each rank prints a line for its first and its last step.

    torchrun --nproc_per_node 2 peer_ddp.py --steps 20

The model is that of measures_start.py: 2 layers, 2 heads, 64 wide, 4 sequences of 32 tokens for each rank.
"""

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=20)
steps = parser.parse_args().steps
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
embedding = torch.nn.Embedding(96, 64)
layer = torch.nn.TransformerEncoderLayer(64, 2, 256, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
model = torch.nn.Sequential(embedding, torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(64, 96))
model = torch.nn.parallel.DistributedDataParallel(model)
adamw = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
for step in range(1, steps + 1):
    tokens = torch.randint(96, (4, 33))
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    adamw.step()
    adamw.zero_grad(set_to_none=True)
    if step in (1, steps):
        print(f"rank {rank} step {step} at {time.time():.3f} loss {loss.item():.3f}", flush=True)
dist.destroy_process_group()
