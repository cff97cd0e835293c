#!/usr/bin/env python3
"""The peer: the same GPT-2 in plain PyTorch, timed or trained; prints one JSON line.

    peer_torch.py --mode speed --layers 12 --heads 12 --embed 768 --vocab 50257 --tokens 1024 \
        --batch 4 --dtype bf16 --threads 2
    peer_torch.py --mode train --data shakespeare.txt --threads 2

speed  tokens/s, median over steps after warm-up (forward, backward, clip, AdamW), eager and
       torch.compile; random tokens unless --data is given
train  characters of a text, 90/10 split, warm-up and cosine; wall time without start-up and
       compilation; curve: step, validation loss and seconds
save   seconds of each step, one of which begins with an async_save of model and optimizer by
       torch.distributed.checkpoint; the settings are those of speed, and the first step is not reported

peak_bytes is that of the process: choose one mode, eager or compile, to measure it.
"""

import argparse
import json
import math
import pathlib
import resource
import statistics
import tempfile
import time

import torch
import torch.nn.functional as F


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--mode", choices=["speed", "train", "save"], required=True)
    add("--data", help="UTF-8 text (train); its characters are the tokens")
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=4)
    add("--embed", type=int, default=128)
    add("--vocab", type=int, default=65, help="without data")
    add("--batch", type=int, default=12)
    add("--tokens", type=int, default=64, help="per sequence")
    add("--accumulate", type=int, default=1)
    add("--dtype", choices=["fp32", "bf16"], default="fp32")
    add("--threads", type=int, default=2)
    add("--steps", type=int, help="speed: 10 measured, train: 2000")
    add("--warmup", type=int, help="speed: steps before measuring (3), train: of the rate (100)")
    add("--compile", choices=["eager", "compile", "both"], default="both")
    add("--lr", type=float, default=1e-3)
    add("--min-lr", type=float, default=1e-4)
    add("--beta2", type=float, default=0.99)
    add("--weight-decay", type=float, default=0.1)
    add("--clip", type=float, default=1.0)
    add("--every", type=int, default=250, help="train: steps between evaluations")
    add("--save-at", type=int, default=5, help="save: the step that begins with it")
    add("--seed", type=int, default=1337)
    args = parser.parse_args()
    if args.mode == "train" and not args.data:
        parser.error("train needs '--data'")
    steps, warmup = (2000, 100) if args.mode == "train" else (10, 3)
    args.steps, args.warmup = args.steps or steps, args.warmup or warmup
    return args


class Block(torch.nn.Module):
    def __init__(self, embed, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(embed), torch.nn.LayerNorm(embed)
        self.qkv = torch.nn.Linear(embed, 3 * embed)
        self.out = torch.nn.Linear(embed, embed)
        self.up = torch.nn.Linear(embed, 4 * embed)
        self.down = torch.nn.Linear(4 * embed, embed)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.qkv(self.norm_1(x)).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, args, vocab):
        super().__init__()
        # Rows that belong to no token make the product faster, and change what is learnt: only for timing.
        rows = -(-vocab // 64) * 64 if args.mode != "train" else vocab
        self.wte = torch.nn.Embedding(rows, args.embed)
        self.wpe = torch.nn.Embedding(args.tokens, args.embed)
        blocks = (Block(args.embed, args.heads) for _ in range(args.layers))
        self.blocks = torch.nn.ModuleList(blocks)
        self.norm = torch.nn.LayerNorm(args.embed)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                scale = 2 * args.layers if name.endswith(("out.weight", "down.weight")) else 1
                torch.nn.init.normal_(p, std=0.02 / math.sqrt(scale))
            elif name.endswith("bias"):
                p.data.zero_()

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Run:
    def __init__(self, args, vocab, compiled):
        torch.manual_seed(args.seed)
        self.args = args
        self.model = Gpt(args, vocab)
        self.loss = torch.compile(self.model) if compiled else self.model
        groups = [
            {"params": [p for p in self.model.parameters() if (p.ndim >= 2) == matrix],
             "weight_decay": args.weight_decay if matrix else 0.0}
            for matrix in (True, False)
        ]  # fmt: skip
        self.adamw = torch.optim.AdamW(groups, betas=(0.9, args.beta2), fused=True)

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=self.args.dtype == "bf16")

    def step(self, lr, next_batch):
        for group in self.adamw.param_groups:
            group["lr"] = lr
        for _ in range(self.args.accumulate):
            with self.autocast():
                loss = self.loss(*next_batch()) / self.args.accumulate
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.adamw.step()
        self.adamw.zero_grad(set_to_none=True)
        return loss


def read_data(args):
    """Returns (train, validation, vocab) of the text's characters, or of random tokens."""
    if not args.data:
        length = max(args.batch * args.tokens * 4, 1 << 16)
        stream = torch.randint(args.vocab, (length,))
        return stream, stream, args.vocab
    text = pathlib.Path(args.data).read_text(encoding="utf-8")
    places = {c: i for i, c in enumerate(sorted(set(text)))}
    stream = torch.tensor([places[c] for c in text])
    cut = int(len(stream) * 0.9)
    return stream[:cut], stream[cut:], len(places)


def batch_of(stream, args):
    at = torch.randint(len(stream) - args.tokens, (args.batch,)).tolist()
    rows = torch.stack([stream[i : i + args.tokens + 1] for i in at])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def measure_speed(args, data, compiled):
    train, _, vocab = data
    run = Run(args, vocab, compiled)
    seconds = []
    for step in range(args.warmup + args.steps):
        start = time.perf_counter()
        run.step(args.lr, lambda: batch_of(train, args))
        seconds.append(time.perf_counter() - start)
    tokens = args.batch * args.tokens * args.accumulate
    return {"tokens_per_second": round(tokens / statistics.median(seconds[args.warmup :]), 1)}


def measure_save(args, data, compiled):
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    stream, _, vocab = data
    run = Run(args, vocab, compiled)
    seconds, saved = [], None
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, args.steps + 1):
            start = time.perf_counter()
            if step == args.save_at:
                model, optimizer = get_state_dict(run.model, run.adamw)
                saved = dcp.async_save({"model": model, "optimizer": optimizer}, checkpoint_id=folder)
                call = time.perf_counter() - start
            run.step(args.lr, lambda: batch_of(stream, args))
            seconds.append(time.perf_counter() - start)
        saved.result()
    dist.destroy_process_group()
    return {"seconds": seconds[1:], "call_seconds": call}


def train(args, data, compiled):
    stream, held, vocab = data
    steps, warmup, run = args.steps, args.warmup, Run(args, vocab, compiled)

    @torch.no_grad()
    def validation_loss():
        """Validates every held-out token once, in adjacent windows."""
        count, total = (len(held) - 1) // args.tokens, 0.0
        inputs = held[: count * args.tokens].view(count, -1)
        targets = held[1 : count * args.tokens + 1].view(count, -1)
        for i in range(0, count, 64):
            with run.autocast():
                part = run.model(inputs[i : i + 64], targets[i : i + 64])
            total += part.item() * len(inputs[i : i + 64])
        return total / count

    with run.autocast():
        first = run.loss(*batch_of(stream, args))  # the first call compiles
    first.backward()
    run.adamw.zero_grad(set_to_none=True)
    curve, start = [], time.perf_counter()
    for step in range(steps):
        done = (step - warmup) / max(1, steps - warmup)
        rate = args.min_lr + (args.lr - args.min_lr) * (1 + math.cos(math.pi * done)) / 2
        if step < warmup:
            rate = args.lr * (step + 1) / warmup
        run.step(rate, lambda: batch_of(stream, args))
        if (step + 1) % args.every == 0 or step + 1 == steps:
            loss = round(validation_loss(), 4)
            curve.append([step + 1, loss, round(time.perf_counter() - start, 2)])
    seconds = round(time.perf_counter() - start, 2)
    return {"valid_loss": curve[-1][1], "seconds": seconds, "curve": curve}


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    data = read_data(args)
    result = {"peer": "torch " + torch.__version__, "settings": {**vars(args), "vocab": data[2]}}
    for name in ["eager", "compile"] if args.compile == "both" else [args.compile]:
        work = {"speed": measure_speed, "train": train, "save": measure_save}[args.mode]
        result[name] = work(args, data, name == "compile")
        peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result[name]["peak_bytes"] = 1024 * peak_kilobytes
    print(json.dumps(result))


main()
