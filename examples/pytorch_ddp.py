"""Trains a small model with PyTorch's DistributedDataParallel: the trainer of pytorch-ddp.yaml.

It reads the environment that torchrun also sets, prints metrics as JSON lines, saves its state every 50 steps, and
continues from there when it is started again.
"""
import json
import os
import signal
import sys

import torch
from torch import distributed, nn

STEPS, EVERY, BATCH = 500, 50, 32
FOLDER = os.environ.get('OUT', 'out')


def main():
    gpu = torch.cuda.is_available()
    device = torch.device('cuda', int(os.environ['LOCAL_RANK'])) if gpu else torch.device('cpu')
    distributed.init_process_group('nccl' if gpu else 'gloo')
    rank = distributed.get_rank()
    stop = torch.zeros(1, device=device)
    signal.signal(signal.SIGTERM, lambda *_: stop.fill_(1))

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1)).to(device)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=float(os.environ.get('LR', '1e-3')))
    target = torch.randn(64, 1, device=device)

    step, path = 0, os.path.join(FOLDER, 'state.pt')
    if int(os.environ.get('DTRUN_ATTEMPT', '1')) > 1 and os.path.exists(path):
        state = torch.load(path, map_location=device)
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
        step = state['step']

    generator = torch.Generator(device=device).manual_seed(1000 + rank + step)
    while step < STEPS:
        x = torch.randn(BATCH, 64, device=device, generator=generator)
        loss = nn.functional.mse_loss(model(x), torch.tanh(x @ target))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        distributed.all_reduce(stop, op=distributed.ReduceOp.MAX)  # all ranks stop after the same step
        if rank == 0 and step % 10 == 0:
            print(json.dumps({'step': step, 'loss': loss.item()}))
        if rank == 0 and (step % EVERY == 0 or stop.item()):
            os.makedirs(FOLDER, exist_ok=True)
            torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'step': step},
                       path + '.new')
            os.replace(path + '.new', path)
        if stop.item():
            break
    distributed.destroy_process_group()


if __name__ == '__main__':
    sys.exit(main())
