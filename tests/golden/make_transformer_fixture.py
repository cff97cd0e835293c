#!/usr/bin/env python3
"""Writes transformer_NAME_start.safetensors and transformer_NAME_expect.safetensors next to itself, for two tiny models
that translate:

post    norms after the sums, sinusoidal positions, scaled embeddings, relu, separate vocabularies and embeddings for
        source, target and head, more blocks in the decoder
pre     norms before, learned positions, gelu, one matrix for source, target and head; no size is a
        multiple of 16

The blocks are torch.nn.TransformerEncoderLayer and TransformerDecoderLayer with masks of padding; the parts before and
after them are written as in fairseq: positions count from the padding's id + 1,
label smoothing is (1 - e) nll + e / V * the sum of all negative log-probabilities.
Computed in double precision from fp32 start values: logits, loss and every gradient of the first batch,
then twenty AdamW steps with clipping and a cosine learning rate.

    python3 tests/golden/make_transformer_fixture.py      (PyTorch 2.x, safetensors)

start   parameters F32 by fairseq's names, without padding; source I32 (20,B,S), previous and targets
        I32 (20,B,T)
expect  logits F32 (B,T,V), 0 if the target is not counted, loss F64 (1): sum over counted targets / their number, nll
        F64 (1): the
        same without smoothing, grad.NAME F32, losses F64 (20), norms F64 (20), rates F64 (20),
        BF16.* and F16.* F64 (1): the errors of PyTorch's half precision (half_precision.py)
The configuration in the fields of a recipe, and hyperparameters, are in both files' metadata.
"""

import copy
import math

import torch
import torch.nn.functional as F

import half_precision
import training

CONTEXT, B, S, T, PAD, EOS = 16, 5, 11, 11, 1, 2

MODELS = {
    "post": {
        "layers": 2, "decoder_layers": 3, "heads": 4, "embed": 24, "ffn": 40, "pre": 0, "relu": 1,
        "sinusoidal": 1, "scale_embedding": 1, "shared": 0, "own_lm_head": 1, "source_vocab": 53,
        "vocab": 61, "smoothing": 0.1,
    },
    "pre": {
        "layers": 2, "decoder_layers": 2, "heads": 3, "embed": 21, "ffn": 19, "pre": 1, "relu": 0,
        "sinusoidal": 0, "scale_embedding": 0, "shared": 1, "own_lm_head": 0, "source_vocab": 61,
        "vocab": 61, "smoothing": 0.0,
    },
}  # fmt: skip


def sinusoids(count, embed):
    """Returns fairseq's SinusoidalPositionalEmbedding.get_embedding, in fp32."""
    half = embed // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / (half - 1)))
    angles = torch.arange(count, dtype=torch.float)[:, None] * rates[None]
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


class Side(torch.nn.Module):
    def __init__(self, m, decoder):
        super().__init__()
        kind = torch.nn.TransformerDecoderLayer if decoder else torch.nn.TransformerEncoderLayer
        self.m, self.embed = m, m["embed"]
        self.tokens = torch.nn.Embedding(m["vocab" if decoder else "source_vocab"], m["embed"])
        self.positions = torch.nn.Parameter(torch.zeros(CONTEXT, m["embed"]))
        self.layers = torch.nn.ModuleList(
            kind(m["embed"], m["heads"], m["ffn"], dropout=0.0, batch_first=True, norm_first=bool(m["pre"]),
                 activation="relu" if m["relu"] else "gelu")
            for _ in range(m["decoder_layers" if decoder else "layers"])
        )  # fmt: skip
        self.norm = torch.nn.LayerNorm(m["embed"]) if m["pre"] else torch.nn.Identity()

    def start(self, ids):
        there = (ids != PAD).long()
        positions = there.cumsum(1) * there + PAD
        scale = math.sqrt(self.embed) if self.m["scale_embedding"] else 1.0
        if self.m["sinusoidal"]:
            table = sinusoids(CONTEXT + PAD + 1, self.embed).to(self.positions.dtype)
        else:
            table = torch.cat([torch.zeros(PAD + 1, self.embed).to(self.positions), self.positions])
        return scale * self.tokens(ids) + table[positions] * there[..., None]


class Model(torch.nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m, self.encoder, self.decoder = m, Side(m, False), Side(m, True)
        self.head = torch.nn.Linear(m["embed"], m["vocab"], bias=False)
        if m["shared"]:
            self.encoder.tokens.weight = self.decoder.tokens.weight
            self.head.weight = self.decoder.tokens.weight

    def forward(self, source, previous):
        source, previous = source.long(), previous.long()
        padding = source == PAD
        x = self.encoder.start(source)
        for layer in self.encoder.layers:
            x = layer(x, src_key_padding_mask=padding)
        encoded = self.encoder.norm(x)
        later = torch.triu(torch.ones(previous.shape[1], previous.shape[1], dtype=torch.bool), 1)
        x = self.decoder.start(previous)
        for layer in self.decoder.layers:
            x = layer(x, encoded, tgt_mask=later, memory_key_padding_mask=padding)
        return self.head(self.decoder.norm(x))

    def published(self, of):
        """Yields (fairseq's name, tensor) of each parameter; of: the parameter itself, or its gradient."""
        out = {"decoder.embed_tokens.weight": of(self.decoder.tokens.weight)}
        if not self.m["shared"]:
            out["encoder.embed_tokens.weight"] = of(self.encoder.tokens.weight)
        if self.m["own_lm_head"]:
            out["decoder.output_projection.weight"] = of(self.head.weight)
        for side, name in (self.encoder, "encoder"), (self.decoder, "decoder"):
            if not self.m["sinusoidal"]:
                out[f"{name}.embed_positions.weight"] = of(side.positions)
            if self.m["pre"]:
                put(out, f"{name}.layer_norm", side.norm, of)
            for i, layer in enumerate(side.layers):
                at = f"{name}.layers.{i}"
                norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
                if name == "encoder":
                    del norms[1]
                for j, norm in enumerate(norms):
                    put(out, f"{at}.{norm}", getattr(layer, f"norm{j + 1}"), of)
                put_attention(out, f"{at}.self_attn", layer.self_attn, of)
                if name == "decoder":
                    put_attention(out, f"{at}.encoder_attn", layer.multihead_attn, of)
                put(out, f"{at}.fc1", layer.linear1, of)
                put(out, f"{at}.fc2", layer.linear2, of)
        return {k: v.detach().float().contiguous().clone() for k, v in out.items()}


def put(out, name, module, of):
    out[f"{name}.weight"], out[f"{name}.bias"] = of(module.weight), of(module.bias)


def put_attention(out, name, module, of):
    for kind, weight, bias in zip("qkv", of(module.in_proj_weight).chunk(3), of(module.in_proj_bias).chunk(3)):
        out[f"{name}.{kind}_proj.weight"], out[f"{name}.{kind}_proj.bias"] = weight, bias
    put(out, f"{name}.out_proj", module.out_proj, of)


def loss_of(model, batch, smoothing):
    source, previous, targets = batch
    logits = model(source, previous)
    scores = F.log_softmax(half_precision.widened(logits), dim=-1)[targets >= 0]
    nll = -scores.gather(1, targets[targets >= 0].long()[:, None]).sum()
    loss = (1 - smoothing) * nll - smoothing / model.m["vocab"] * scores.sum()
    return logits, loss / len(scores), nll / len(scores)


def batches(m, random):
    """Returns sentences from two tokens to the largest length; a target mostly follows from its source."""
    source = torch.full((training.STEPS, B, S), PAD)
    previous, targets = torch.full((training.STEPS, B, T), PAD), torch.full((training.STEPS, B, T), -1)
    for step in range(training.STEPS):
        for b in range(B):
            words = int(torch.randint(1, S, (1,), generator=random))
            answer = min(max(1, words + int(torch.randint(-2, 3, (1,), generator=random))), T - 1)
            sentence = torch.randint(3, m["source_vocab"], (words,), generator=random)
            said = (sentence.repeat(3)[:answer] * 7) % (m["vocab"] - 3) + 3
            source[step, b, : words + 1] = torch.cat([sentence, torch.tensor([EOS])])
            targets[step, b, : answer + 1] = torch.cat([said, torch.tensor([EOS])])
            previous[step, b, : answer + 1] = torch.cat([torch.tensor([EOS]), said])
    return source.int(), previous.int(), targets.int()


def write(name, m):
    random = torch.Generator().manual_seed(7)
    model = Model(m)
    training.start_values(model, random, matrix=0.2, bias=0.3)
    data = batches(m, random)
    start = model.published(lambda p: p) | dict(zip(("source", "previous", "targets"), data))

    single = copy.deepcopy(model)
    model.double()

    def forward(model):
        logits, loss, nll = loss_of(model, [x[0] for x in data], m["smoothing"])
        return logits * (data[2][0] >= 0)[..., None], loss, nll  # logits of padding are not compared

    logits, loss, nll = forward(model)
    loss.backward()
    expect = {"logits": logits.detach().float(), "loss": loss.detach()[None], "nll": nll.detach()[None]}
    expect |= {f"grad.{n}": g for n, g in model.published(lambda p: p.grad).items()}
    expect |= half_precision.errors(
        single, lambda m: forward(m)[:2], lambda m: m.published(lambda p: p.grad), expect
    )
    expect |= training.train(model, lambda step: loss_of(model, [x[step] for x in data], m["smoothing"])[1])

    about = m | {"context": CONTEXT, "batch": B, "tokens": T, "pad": PAD}
    training.save(f"transformer_{name}", start, expect, about)


def main():
    torch.set_num_threads(1)
    for name, m in MODELS.items():
        write(name, m)


main()
