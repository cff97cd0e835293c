#!/usr/bin/env python3
"""Writes chat/ next to itself: conversations as ids with weights, a tiny Llama of transformers, and what one step of
plain gradient descent makes of it, computed in double precision (transformers keeps norms and angles in fp32).

    python3 tests/golden/make_chat_fixture.py      (PyTorch 2.x, transformers, tokenizers, safetensors)

chat/model/               a folder of transformers: 2 layers, grouped keys, random weights
chat/plain.chats          24 conversations of ids, which fit into 12 sequences of 20 (engine/data/chats.h);
                          weights of 0 and 1
chat/weighted.chats       the same with fractional weights
chat/NAME.events          the loss of step 1, as a rank reports it
chat/NAME.safetensors     the parameters after that step, of learning rate LR: it is large, so that they are the
                          gradients but for their factor

NAME             data        loss is the mean of          longer than 20 / 12
plain            plain       all trained tokens
weighted         weighted    the weights' mean
conversation     weighted    the conversations' means
cut              plain       all trained tokens           cut at 12
"""

import json
import pathlib
import random
import struct

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LR = 100.0
OUT = pathlib.Path(__file__).parent / "chat"
draw = random.Random(52)


def conversations(fractional):
    """12 pairs, each of which fits a sequence of 20."""
    draw.seed(52)
    out = []
    for _ in range(12):
        first = draw.randint(11, 16)
        for length in (first, draw.randint(4, 20 - first)):
            ids = [draw.randrange(4, 270) for _ in range(length)]
            begin = draw.randrange(1, min(length, 12) - 1)
            end = draw.randint(max(begin + 1, length - 2), length)
            weights = [1.0 if begin <= i < end else 0.0 for i in range(length)]
            if draw.random() < 0.3:
                weights[0] = 1.0  # the first token is never predicted
            factor = draw.choice([0.25, 0.5, 1.0, 1.75])
            if fractional:
                weights = [w * factor for w in weights]
            out.append((ids, weights))
    return out


def write_chats(path, rows):
    starts, ids, weights = [0], [], []
    for i, w in rows:
        ids += i
        weights += w
        starts.append(len(ids))
    plain = all(w in (0.0, 1.0) for w in weights)
    data = b"DTCHATS\1" + struct.pack("<qqii", len(rows), len(ids), 2, 1 if plain else 4) + bytes(32)
    data += struct.pack(f"<{len(starts)}q", *starts) + struct.pack(f"<{len(ids)}H", *ids)
    data += bytes(int(w) for w in weights) if plain else struct.pack(f"<{len(weights)}f", *weights)
    path.write_bytes(data)


def step(model, rows, name, mean, most=20):
    model.zero_grad()
    total, divisor = torch.zeros((), dtype=torch.double), 0.0
    for ids, weights in rows:
        tokens, weight = torch.tensor([ids[:most]]), torch.tensor(weights[:most], dtype=torch.double)[1:]
        if weight.sum() == 0:
            continue
        nll = F.cross_entropy(model(tokens).logits[0, :-1], tokens[0, 1:], reduction="none")
        if mean == "conversation":
            total, divisor = total + (nll * weight).sum() / weight.sum(), divisor + 1
        else:
            total, divisor = total + (nll * weight).sum(), divisor + weight.sum()
    loss = total / divisor
    loss.backward()
    after = {n: (p.detach() - LR * p.grad).float() for n, p in model.named_parameters()}
    save_file(after, OUT / f"{name}.safetensors", {"format": "pt"})
    event = {"event": "metrics", "step": 1, "values": {"loss": loss.item()}}
    (OUT / f"{name}.events").write_text(json.dumps(event) + "\n")
    print(name, loss.item(), "norm", sum((p.grad**2).sum() for p in model.parameters()).sqrt().item())


def main():
    OUT.mkdir(exist_ok=True)
    torch.manual_seed(52)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|end|>", "<|turn|>", "<|stop|>", "<|pad|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(["one two three four"] * 9, trainers.BpeTrainer(
        vocab_size=272, special_tokens=special, initial_alphabet=alphabet))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|end|>")
    config = LlamaConfig(
        vocab_size=272, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False, eos_token_id=0,
        bos_token_id=None, attn_implementation="eager")
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((1 + 0.1 * torch.randn(p.shape)) if p.ndim == 1 else 0.2 * torch.randn(p.shape))
    model.save_pretrained(OUT / "model")
    tokenizer.save_pretrained(OUT / "model")
    (OUT / "model" / "generation_config.json").unlink(missing_ok=True)
    model = model.double()
    plain, weighted = conversations(False), conversations(True)
    write_chats(OUT / "plain.chats", plain)
    write_chats(OUT / "weighted.chats", weighted)
    step(model, plain, "plain", "token")
    step(model, weighted, "weighted", "token")
    step(model, weighted, "conversation", "conversation")
    step(model, plain, "cut", "token", 12)


main()
