#!/usr/bin/env python3
"""Writes MODEL_start.safetensors and MODEL_expect.safetensors next to itself, for two models:

gpt2        GPT-2: learned positions, the head is the token embedding
fairseq_lm  as fairseq's transformer_lm_gpt2_small: sinusoidal positions, token embeddings times
            sqrt(embed), a head of its own, GELU by the error function (gpt2 has the tanh
            approximation), an odd width

Two layers with odd sizes, computed by PyTorch in double precision from fp32 start values: logits,
loss and every gradient of the first batch, then twenty AdamW steps with clipping and a cosine
learning rate. The numbers come from modules and autograd, so that they share only the published definition with the
engine.

    python3 tests/golden/make_gpt2_fixture.py      (PyTorch 2.x, safetensors)

start   parameters F32 by GPT-2's names, weights (out,in), wte and lm_head without padding;
        tokens, targets I32 (20,B,T), a target of -1 is not counted
expect  logits F32 (B,T,V), loss F64 (1): sum over counted tokens / their number,
        grad.NAME F32, losses F64 (20), norms F64 (20), rates F64 (20);
        positions F32 (context,C) if they are sinusoidal;
        BF16.* and F16.* F64 (1): the errors of PyTorch's half precision (half_precision.py)
Hyperparameters are in both files' metadata.
"""

import copy
import math

import torch
import torch.nn.functional as F

import half_precision
import training

LAYERS, HEADS, VOCAB, CONTEXT, B, T = 2, 3, 61, 16, 3, 13


class Block(torch.nn.Module):
    def __init__(self, embed, gelu):
        super().__init__()
        self.gelu = gelu
        self.ln_1 = torch.nn.LayerNorm(embed)
        self.attn = torch.nn.ModuleDict(
            {"c_attn": torch.nn.Linear(embed, 3 * embed), "c_proj": torch.nn.Linear(embed, embed)}
        )
        self.ln_2 = torch.nn.LayerNorm(embed)
        self.mlp = torch.nn.ModuleDict(
            {
                "c_fc": torch.nn.Linear(embed, 4 * embed),
                "c_proj": torch.nn.Linear(4 * embed, embed),
            }
        )

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        q, k, v = map(split, self.attn["c_attn"](self.ln_1(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).flatten(2))
        y = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate=self.gelu)
        return x + self.mlp["c_proj"](y)


def sinusoidal(first, count, embed):
    """Returns the table of positions of fairseq's SinusoidalPositionalEmbedding, in fp32."""
    half = embed // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
    angle = torch.arange(first, first + count, dtype=torch.float)[:, None] * frequency
    return F.pad(torch.cat([torch.sin(angle), torch.cos(angle)], dim=1), (0, embed % 2))


class Gpt2(torch.nn.Module):
    GELU = "tanh"

    def __init__(self, embed):
        super().__init__()
        self.wte = torch.nn.Embedding(VOCAB, embed)
        self.wpe = torch.nn.Embedding(CONTEXT, embed)
        self.h = torch.nn.ModuleList(Block(embed, self.GELU) for _ in range(LAYERS))
        self.ln_f = torch.nn.LayerNorm(embed)

    def embedded(self, tokens):
        return self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))

    def head(self, x):
        return x @ self.wte.weight.T

    def forward(self, tokens):
        x = self.embedded(tokens)
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class FairseqLm(Gpt2):
    GELU = "none"

    def __init__(self, embed):
        super().__init__(embed)
        del self.wpe
        # the padding token is 1, positions count from 2
        self.register_buffer("positions", sinusoidal(2, CONTEXT, embed))
        self.scale = math.sqrt(embed)
        self.lm_head = torch.nn.Linear(embed, VOCAB, bias=False)

    def embedded(self, tokens):
        return self.scale * self.wte(tokens) + self.positions[: tokens.shape[1]]

    def head(self, x):
        return self.lm_head(x)


def loss_of(model, tokens, targets):
    logits = model(tokens)
    loss = F.cross_entropy(half_precision.widened(logits).flatten(0, 1), targets.flatten().long(), ignore_index=-1)
    return logits, loss


def write(name, model, embed):
    random = torch.Generator().manual_seed(7)
    training.start_values(model, random, matrix=0.15, bias=0.05)
    tokens, targets = training.batches(random, VOCAB, B, T)
    named = dict(model.named_parameters())
    start = {n: p.detach().clone() for n, p in named.items()} | {"tokens": tokens, "targets": targets}

    positions = {n: b.clone() for n, b in model.named_buffers()}
    single = copy.deepcopy(model)
    model.double()
    logits, loss = loss_of(model, tokens[0], targets[0])
    loss.backward()
    expect = {"logits": logits.detach().float(), "loss": loss.detach()[None]}
    expect |= positions
    expect |= {f"grad.{n}": p.grad.float().clone() for n, p in named.items()}
    expect |= half_precision.errors(
        single, lambda m: loss_of(m, tokens[0], targets[0]),
        lambda m: {n: p.grad for n, p in m.named_parameters()}, expect,
    )  # fmt: skip

    expect |= training.train(model, lambda step: loss_of(model, tokens[step], targets[step])[1])
    about = {
        "layers": LAYERS, "embed": embed, "heads": HEADS, "vocab": VOCAB, "context": CONTEXT, "batch": B, "tokens": T,
    }  # fmt: skip
    training.save(name, start, expect, about)


def main():
    torch.set_num_threads(1)
    write("gpt2", Gpt2(36), 36)
    write("fairseq_lm", FairseqLm(21), 21)


main()
