#!/usr/bin/env python3
"""The peer on a card: GPT-2 in PyTorch with torch.compile, bf16, flash attention and fused AdamW.

    gpu_peer_torch.py step --layers 12 --heads 12 --embed 768 --batch 32   a training step
    gpu_peer_torch.py attention --batch 32 --heads 12 --tokens 1024        flash attention alone
    gpu_peer_torch.py copy                                                 what the memory can do

Prints one JSON line; every time is a median by the card's own events.
"""

import argparse
import json
import math
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

VOCAB, PADDED = 50257, 50304  # rows that no token has make the head's product faster


def milliseconds(work, warmup, runs):
    for _ in range(warmup):
        work()
    times = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


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
        q, k, v = self.qkv(self.norm_1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.wte = torch.nn.Embedding(PADDED, args.embed)
        self.wpe = torch.nn.Embedding(args.tokens, args.embed)
        self.blocks = torch.nn.ModuleList(Block(args.embed, args.heads) for _ in range(args.layers))
        self.norm = torch.nn.LayerNorm(args.embed)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                scale = 2 * args.layers if name.endswith(("out.weight", "down.weight")) else 1
                torch.nn.init.normal_(p, std=0.02 / math.sqrt(scale))

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def step(args):
    torch.manual_seed(1337)
    torch.set_float32_matmul_precision("high")
    model = Gpt(args).cuda()
    compiled = model if args.eager else torch.compile(model)
    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) == matrix], "weight_decay": 0.1 * matrix}
        for matrix in (True, False)
    ]
    adamw = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
    stream = torch.randint(VOCAB, (args.batch, args.tokens + 1), device="cuda")
    inputs, targets = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()

    def once():
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    ms = milliseconds(once, args.warmup, args.runs)
    return {
        "tokens_per_second": args.batch * args.tokens / ms * 1e3,
        "step_ms": ms,
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def attention(args):
    shape = (args.batch, args.heads, args.tokens, args.size)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        forward = milliseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), args.warmup, args.runs)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        dout = torch.randn_like(out)
        backward = milliseconds(
            lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True), args.warmup, args.runs
        )
    return {"forward_ms": forward, "backward_ms": backward}


def copy(args):
    x, y = (torch.empty(1 << 28, dtype=torch.float32, device="cuda") for _ in range(2))
    ms = milliseconds(lambda: y.copy_(x), args.warmup, args.runs)
    return {"bytes_per_second": 2 * x.numel() * 4 / ms * 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["step", "attention", "copy"])
    for name, value in {"layers": 12, "heads": 12, "embed": 768, "batch": 32, "tokens": 1024, "size": 64,
                        "warmup": 10, "runs": 30}.items():  # fmt: skip
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    args = parser.parse_args()
    result = {"step": step, "attention": attention, "copy": copy}[args.what](args)
    print(json.dumps({"torch": torch.__version__, "card": torch.cuda.get_device_name(), **result}))


main()
