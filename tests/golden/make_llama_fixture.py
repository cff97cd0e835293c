#!/usr/bin/env python3
"""Writes MODEL_start.safetensors and MODEL_expect.safetensors next to itself, for three tiny models of
transformers with random weights:

llama   untied, llama3 scaling whose three ranges all have frequencies in it, heads of embed / heads
qwen2   tied, biases of q, k and v, linear scaling, two heads of keys for four of queries
qwen3   untied, norms of q and k, heads wider than embed / heads, an odd embed: no size is a multiple
        of 16

Computed in double precision (transformers keeps norms and angles in fp32 whatever the model's type)
from fp32 start values: logits, loss and every gradient of the first batch, then twenty AdamW steps
with clipping and a cosine learning rate.

    python3 tests/golden/make_llama_fixture.py      (PyTorch 2.x, transformers, safetensors)

start   parameters F32 by transformers' names, without padding; tokens, targets I32 (20,B,T), a target
        of -1 is not counted
expect  logits F32 (B,T,V), loss F64 (1): sum over counted tokens / their number,
        grad.NAME F32, losses F64 (20), norms F64 (20), rates F64 (20),
        BF16.* and F16.* F64 (1): the errors of PyTorch's half precision (half_precision.py)
The configuration in the fields of a recipe, and hyperparameters, are in both files' metadata.
"""

import copy

import torch
import torch.nn.functional as F
import transformers

import half_precision
import training

VOCAB, CONTEXT, B, T = 61, 32, 3, 13

# in the fields of the recipe
MODELS = {
    "llama": {
        "layers": 2, "heads": 6, "kv_heads": 2, "embed": 36, "head_width": 6, "ffn": 40,
        "norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": "llama3", "rope_factor": 8.0,
        "rope_low_freq_factor": 1.0, "rope_high_freq_factor": 4.0, "rope_original_tokens": 300,
        "tied": False,
    },
    "qwen2": {
        "layers": 2, "heads": 4, "kv_heads": 2, "embed": 24, "head_width": 6, "ffn": 32,
        "norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_scaling": "linear", "rope_factor": 2.0,
        "qkv_bias": True, "tied": True,
    },
    "qwen3": {
        "layers": 2, "heads": 3, "kv_heads": 1, "embed": 21, "head_width": 10, "ffn": 19,
        "norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_scaling": "none", "qk_norm": True,
        "tied": False,
    },
}  # fmt: skip


def rope_of(m):
    """Writes them as config.json of either generation of transformers does."""
    if m["rope_scaling"] == "none":
        return {"rope_type": "default", "rope_theta": m["rope_theta"]}
    rope = {"rope_type": m["rope_scaling"], "rope_theta": m["rope_theta"], "factor": m["rope_factor"]}
    if m["rope_scaling"] == "llama3":
        rope["low_freq_factor"] = m["rope_low_freq_factor"]
        rope["high_freq_factor"] = m["rope_high_freq_factor"]
        rope["original_max_position_embeddings"] = m["rope_original_tokens"]
    return rope


def build(name, m):
    kinds = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    }
    config_class, model_class = kinds[name]
    new = int(transformers.__version__.split(".")[0]) >= 5
    rope = rope_of(m)
    if new:
        rope = {"rope_parameters": rope}
    else:
        rope = {"rope_theta": rope.pop("rope_theta"), "rope_scaling": None if m["rope_scaling"] == "none" else rope}
    config = config_class(
        vocab_size=VOCAB, hidden_size=m["embed"], intermediate_size=m["ffn"],
        num_hidden_layers=m["layers"], num_attention_heads=m["heads"],
        num_key_value_heads=m["kv_heads"], head_dim=m["head_width"], rms_norm_eps=m["norm_eps"],
        max_position_embeddings=128, tie_word_embeddings=m["tied"], attn_implementation="sdpa",
        use_cache=False, pad_token_id=None, bos_token_id=None, eos_token_id=None, **rope,
    )  # fmt: skip
    return model_class(config)


def loss_of(model, tokens, targets):
    logits = model(input_ids=tokens.long()).logits
    loss = F.cross_entropy(half_precision.widened(logits).flatten(0, 1), targets.flatten().long(), ignore_index=-1)
    return logits, loss


def write(name, m):
    random = torch.Generator().manual_seed(7)
    model = build(name, m)
    named = dict(model.named_parameters())
    training.start_values(model, random, matrix=0.15, bias=0.3)
    tokens, targets = training.batches(random, VOCAB, B, T)
    start = {n: p.detach().clone() for n, p in named.items()} | {"tokens": tokens, "targets": targets}

    single = copy.deepcopy(model)
    model.double()
    named = dict(model.named_parameters())
    logits, loss = loss_of(model, tokens[0], targets[0])
    loss.backward()
    expect = {"logits": logits.detach().float(), "loss": loss.detach()[None].double()}
    expect |= {f"grad.{n}": p.grad.float().clone() for n, p in named.items()}
    expect |= half_precision.errors(
        single, lambda m: loss_of(m, tokens[0], targets[0]),
        lambda m: {n: p.grad for n, p in m.named_parameters()}, expect,
    )  # fmt: skip
    expect |= training.train(model, lambda step: loss_of(model, tokens[step], targets[step])[1])

    about = {k: v for k, v in m.items() if not isinstance(v, (bool, str))} | {
        "rope_kind": ["none", "linear", "llama3"].index(m["rope_scaling"]),
        "qkv_bias": int(m.get("qkv_bias", False)), "qk_norm": int(m.get("qk_norm", False)),
        "own_lm_head": int(not m["tied"]), "vocab": VOCAB, "context": CONTEXT, "batch": B, "tokens": T,
        "transformers": transformers.__version__,
    }  # fmt: skip
    training.save(name, start, expect, about)


def main():
    torch.set_num_threads(1)
    for name, m in MODELS.items():
        write(name, m)


main()
