"""Trains a small model with PyTorch's DistributedDataParallel: the trainer of pytorch-ddp.yaml.

It reads the environment that torchrun also sets, prints metrics as JSON lines, saves its state every 50 steps and when
it is asked to stop, and continues from the file of --resume.
"""
import argparse
import json
import os
import signal

import torch
from torch import distributed, nn

EVERY, BATCH = 50, 32


def save(path, step, model, optimizer):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'step': step}, path + '.new')
    os.replace(path + '.new', path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', default='out')
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--steps', type=int, default=500)
    parser.add_argument('--resume')
    args = parser.parse_args()

    gpu = torch.cuda.is_available()
    device = torch.device('cuda', int(os.environ['LOCAL_RANK'])) if gpu else torch.device('cpu')
    if gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group('nccl' if gpu else 'gloo')
    rank = distributed.get_rank()
    stop = torch.zeros(1, device=device)
    signal.signal(signal.SIGTERM, lambda *_: stop.fill_(1))

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 1)).to(device)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    target = torch.randn(64, 1, device=device)
    state = [torch.load(args.resume, map_location='cpu') if args.resume and rank == 0 else None]
    distributed.broadcast_object_list(state)  # only the node of rank 0 needs the file
    step = 0
    if state[0]:
        model.load_state_dict(state[0]['model'])
        optimizer.load_state_dict(state[0]['optimizer'])
        step = state[0]['step']

    generator = torch.Generator(device=device).manual_seed(1000 + rank + step)
    while step < args.steps and not stop.item():
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
            save(os.path.join(args.out, f'step-{step}.pt'), step, model, optimizer)
    distributed.destroy_process_group()


if __name__ == '__main__':
    main()
