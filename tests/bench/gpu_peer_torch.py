#!/usr/bin/env python3
"""The peer on a card: GPT-2 in PyTorch with bf16, fused AdamW, and the fastest of torch.compile's modes and of flash
and cuDNN's attention.

    gpu_peer_torch.py step --layers 12 --heads 12 --embed 768 --batch 32   a training step
    gpu_peer_torch.py attention --batch 32 --heads 12 --tokens 1024        flash attention alone
    gpu_peer_torch.py copy                                                 the rate of the memory

Prints a JSON line whenever a setting is the best so far; the last one counts. Times are medians of series of launches
between two events of the card.
"""

import argparse
import json
import math
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

VOCAB, PADDED = 50257, 50304  # rows that belong to no token make the head's product faster


def train_ms(work, runs):
    """Returns the milliseconds of each of `runs` runs, one after the other between two events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(runs):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / runs


def milliseconds(work, args, train=0):
    """Returns the median of series, after a warm-up. train: runs in each series; 0: as many as take some 5 ms, as in
    bench_ops."""
    for _ in range(args.warmup):
        work()
    train = train or int(5 / max(train_ms(work, 3), 1e-3)) + 1
    return statistics.median(train_ms(work, train) for _ in range(args.runs))


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


FLASH, CUDNN = SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION
NAMES = {FLASH: "flash", CUDNN: "cudnn"}


def one_step(args, mode, attention):
    torch._dynamo.reset()
    torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(1337)
    model = Gpt(args).cuda()
    compiled = model if mode == "eager" else torch.compile(model, mode=mode)
    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) == matrix], "weight_decay": 0.1 * matrix}
        for matrix in (True, False)
    ]
    adamw = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
    stream = torch.randint(VOCAB, (args.batch, args.tokens + 1), device="cuda")
    inputs, targets = stream[:, :-1].contiguous(), stream[:, 1:].contiguous()

    def once():
        if mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast("cuda", torch.bfloat16), sdpa_kernel([attention]):
            loss = compiled(inputs, targets)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    ms = milliseconds(once, args, train=10)  # as the engine reports: ten steps at a time
    return {
        "way": f"{mode}, {NAMES[attention]}",
        "tokens_per_second": args.batch * args.tokens / ms * 1e3,
        "step_ms": ms,
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def step(args):
    """Measures each setting and prints the best. The caller ends this process when its time is up, so that the settings
    that compile fastest come first."""
    torch.set_float32_matmul_precision("high")
    tried, best = {}, None
    ways = [("eager", CUDNN), ("default", CUDNN), ("default", FLASH), ("reduce-overhead", CUDNN),
            ("max-autotune-no-cudagraphs", CUDNN), ("max-autotune-no-cudagraphs", FLASH)]  # fmt: skip
    for mode, attention in ways:
        torch.cuda.empty_cache()
        try:
            one = one_step(args, mode, attention)
        except Exception as problem:  # any error of the compiler
            tried[f"{mode}, {NAMES[attention]}"] = f"failed: {str(problem).splitlines()[0][:150] if str(problem) else problem!r}"
            continue
        tried[one["way"]] = one["tokens_per_second"]
        best = one if best is None or one["tokens_per_second"] > best["tokens_per_second"] else best
        tell({**best, "tried": tried})
    if best is None:
        raise SystemExit(f"no way worked: {tried}")
    return {**best, "tried": tried}


def attention(args):
    """Measures flash and cuDNN separately, and prints the faster one."""
    shape = (args.batch, args.heads, args.tokens, args.size)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    best = {"tried": {}}
    for backend in (FLASH, CUDNN):
        try:
            with sdpa_kernel([backend]):
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                dout = torch.randn_like(out)
                with torch.no_grad():
                    forward = milliseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), args)
                backward = milliseconds(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True), args)
        except RuntimeError as problem:
            best["tried"][NAMES[backend]] = f"failed: {str(problem).splitlines()[0][:150]}"
            continue
        best["tried"][NAMES[backend]] = [forward, backward]
        for name, ms in (("forward", forward), ("backward", backward)):
            if ms < best.get(f"{name}_ms", math.inf):
                best.update({f"{name}_ms": ms, f"{name}_way": NAMES[backend]})
    if "forward_ms" not in best:
        raise SystemExit(f"no way worked: {best['tried']}")
    return best


def copy(args):
    x, y = (torch.empty(1 << 28, dtype=torch.float32, device="cuda") for _ in range(2))
    ms = milliseconds(lambda: y.copy_(x), args)
    return {"bytes_per_second": 2 * x.numel() * 4 / ms * 1e3}


def tell(result):
    print(json.dumps({"torch": torch.__version__, "card": torch.cuda.get_device_name(), **result}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["step", "attention", "copy"])
    for name, value in {"layers": 12, "heads": 12, "embed": 768, "batch": 32, "tokens": 1024, "size": 64,
                        "warmup": 5, "runs": 5}.items():  # fmt: skip
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    tell({"step": step, "attention": attention, "copy": copy}[args.what](args))


main()
