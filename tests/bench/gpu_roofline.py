#!/usr/bin/env python3
"""Predicts what a training step of GPT-2 costs on a card, kernel by kernel, from the shapes alone.

    tests/bench/gpu_roofline.py [--model 124m|xl] [--batch SEQUENCES] [--accumulate N] [--attention mma|wgmma]

Prints a Markdown table. For all calls of a kernel in a step it has the bytes to move (each operand once), the FLOPs,
the floor (the longer of both times at the data sheet's rates, with the whole card busy), the expected time on an H100
and an H200, and an empty column for the measured time. The expected time is the floor divided by the shares below,
which such kernels reach elsewhere. That of attention is the time to issue its instructions
(tests/gpu/instructions.txt); for wgmma it is that of its products where these take longer, over all tiles, with whole
tiles on the diagonal. The settings are bf16, no dropout, nothing recomputed except GELU, and T 1,024.
"""

import argparse
import pathlib

import gpu_tables

CARDS = [  # bytes/s of memory, FLOP/s of bf16, multiprocessors, Hz under load
    ("H100", 3.35e12, 989.4e12, 132, 1.755e9),
    ("H200", 4.8e12, 989.4e12, 132, 1.755e9),
]
PRODUCTS, MEMORY, ISSUE = 0.60, 0.85, 0.65  # shares of the limit; of a scheduler's cycles that issue
T, ACT, F32, SCHEDULERS = 1024, 2, 4, 4
LOGITS_BYTES, CHUNK = 64 << 20, 128  # recipes/architecture/decoder.c


WGMMA_ROWS, WGMMA_KEYS = 64, 128  # engine/ops/cuda/attention_wgmma.cu


def instructions(width):
    """Returns {name: count} of the instructions of each attention kernel, for a warp and tile."""
    lines = (pathlib.Path(__file__).parents[1] / "gpu/instructions.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if line.startswith("sm_90")]
    return {words[1]: int(words[3]) for words in rows if words[2] == str(width)}


def chunk_rows(tokens, embed, padded, keep_all):
    quarter = -(-tokens // 4) * padded * ACT if keep_all else 0
    most = max(LOGITS_BYTES, quarter, 5 * tokens * embed * ACT) // (padded * ACT)
    most = min(tokens, most - most % CHUNK)
    chunks = -(-tokens // most)
    return min(most, -(-(-(-tokens // chunks)) // CHUNK) * CHUNK)


class Step:
    """Returns rows (kernel, calls, bytes, FLOPs, expected seconds or None: by the shares)."""

    def __init__(self, model, batch, accumulate, attention="mma", keep_all=False, moments=F32):
        self.keep_all, self.moments = keep_all, moments
        self.wgmma = attention == "wgmma"
        self.L, self.H, self.C, own = gpu_tables.MODELS[model]
        self.B, self.accumulate = batch or own, accumulate
        self.N, self.Vp = self.B * T, -(-gpu_tables.VOCAB // 128) * 128
        self.parameters = 12 * self.L * self.C**2 + self.Vp * self.C + T * self.C + 13 * self.L * self.C + 2 * self.C
        self.rows = []

    def add(self, kernel, calls, moved, flops=0.0, issue=None):
        self.rows.append((kernel, calls, calls * moved, calls * flops, issue))

    def product(self, kernel, calls, m, n, k, extra=0, out=ACT):
        self.add(kernel, calls, ACT * (m * k + n * k) + out * m * n + extra, 2.0 * m * n * k)

    def attention(self, kernels, width, products, moved):
        """products: number of products of 64 x 64 tiles that the kernel computes for a tile."""
        tiles = self.B * self.H * (T // 64) * (T // 64 + 1) // 2
        issue = sum(instructions(width)[kernel] for kernel in kernels) * 4 * tiles * self.L * self.accumulate
        self.add("attention, " + ("forward" if kernels == ["forward"] else "backward: queries; keys, values"), self.L * self.accumulate,
                 moved, products * 2.0 * 64 * 64 * width * tiles, issue)  # fmt: skip

    def attention_by_wgmma(self, width, moved):
        tiles = self.B * self.H * sum((row + WGMMA_ROWS - 1) // WGMMA_KEYS + 1 for row in range(0, T, WGMMA_ROWS))
        self.add("attention, forward, by wgmma", self.L * self.accumulate, moved, 2 * 2.0 * WGMMA_ROWS * WGMMA_KEYS * width * tiles,
                 instructions(width)["wgmma_forward"] * 4 * tiles * self.L * self.accumulate)  # fmt: skip

    def make(self):
        N, C, L, Vp, A = self.N, self.C, self.L, self.Vp, self.accumulate
        row, width = N * C * ACT, C // self.H
        chunk = chunk_rows(N, C, Vp, self.keep_all)
        chunks = -(-N // chunk)
        self.add("embedding, forward and backward", A, 3 * row + 2 * F32 * N * C)
        self.add("layer norm, forward", (2 * L + 1) * A, 2 * row)
        self.product("products, forward: q k v", L * A, N, 3 * C, C)
        self.product("products, forward: projections of attention, onto the stream", L * A, N, C, C, extra=row)
        self.product("products, forward: fc, with GELU", L * A, N, 4 * C, C, extra=4 * row)
        self.product("products, forward: projections of the MLP, onto the stream", L * A, N, C, 4 * C, extra=row)
        if self.wgmma:
            self.attention_by_wgmma(width, 4 * row)
        else:
            self.attention(["forward"], width, 2, 4 * row)
        self.product(f"head: logits, {chunks} chunks of {chunk} rows", chunks * A, chunk, Vp, C)
        self.add("head: cross entropy and its gradient", chunks * A, 2 * chunk * Vp * ACT)
        self.product("head: gradient of the weight", chunks * A, Vp, C, chunk, extra=F32 * Vp * C, out=F32)
        self.product("head: gradient of the input", chunks * A, chunk, C, Vp)
        if not self.keep_all:
            self.add("GELU again", L * A, 8 * row)
        self.add("layer norm, backward", (2 * L + 1) * A, 4 * row)
        for name, out, into in (("q k v", 3 * C, C), ("projections of attention", C, C), ("fc", 4 * C, C), ("projections of the MLP", C, 4 * C)):
            read = F32 * out * into * (A - 1) / A  # the first one overwrites
            self.product(f"products, gradient of the weight: {name}", L * A, out, into, N, extra=read, out=F32)
            self.product(f"products, gradient of the input: {name}", L * A, N, into, out, extra=4 * row if into > C else 0)
        self.add("sums of the gradient of fc: its bias", L * A, 4 * row)
        self.add("attention, backward: sums of rows", L * A, 2 * row)
        self.attention(["backward_queries", "backward_keys"], width, 5, 8 * row)
        self.add("gradients to zero, and their norm", 1, F32 * (2 * self.parameters - 12 * L * C**2))
        self.add("AdamW", 1, (3 * F32 + 4 * self.moments + ACT) * self.parameters)
        return self.rows


def seconds(row, card):
    """(floor, expected)"""
    _, memory, peak, processors, clock = card
    _, _, moved, flops, issue = row
    floor = max(moved / memory, flops / peak)
    if issue:
        products = flops / peak / PRODUCTS if "wgmma" in row[0] else 0
        return floor, max(moved / memory / MEMORY, issue / (processors * SCHEDULERS * clock * ISSUE), products)
    return floor, max(moved / memory / MEMORY, flops / peak / PRODUCTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["124m", "xl"], default="124m")
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--attention", choices=["mma", "wgmma"], default="mma")
    parser.add_argument("--keep-all", action="store_true", help="with activation_checkpointing: keep_all")
    parser.add_argument("--moments", choices=["fp32", "bf16"], default="fp32", help="optimizer.moments")
    args = parser.parse_args()
    moments = ACT if args.moments == "bf16" else F32
    step = Step(args.model, args.batch, args.accumulate, args.attention, args.keep_all, moments)
    rows = step.make()
    times = [[[1e3 * ms for ms in seconds(row, card)] for card in CARDS] for row in rows]
    columns = [f"{card[0]} {what}, ms" for card in CARDS for what in ("floor", "expected")]
    print(f"| kernel | calls | GB | TFLOP | {' | '.join(columns)} | measured, ms |")
    print("|---" * (5 + len(columns)) + "|")
    for row, of in zip(rows, times):
        cells = " | ".join(f"{ms:.2f}" for card in of for ms in card)
        print(f"| {row[0]} | {row[1]} | {row[2] / 1e9:.2f} | {row[3] / 1e12:.2f} | {cells} | |")
    totals = [[sum(of[c][i] for of in times) for i in (0, 1)] for c in range(len(CARDS))]
    cells = " | ".join(f"{ms:.1f}" for card in totals for ms in card)
    print(f"| all | {sum(row[1] for row in rows)} | {sum(row[2] for row in rows) / 1e9:.1f} | {sum(row[3] for row in rows) / 1e12:.2f} | {cells} | |")
    rates = [step.N * step.accumulate / card[1] * 1e3 for card in totals]
    print("\nExpected, " + f"{step.B} x {T}{f', accumulate {step.accumulate}' if step.accumulate > 1 else ''}: " + "; ".join(
        f"{card[0]} {rate:,.0f} tokens/s, {gpu_tables.mfu(rate, args.model, card[2] / 1e12):.0%} MFU" for card, rate in zip(CARDS, rates)))  # fmt: skip


if __name__ == "__main__":
    main()
