#!/usr/bin/env python3
"""Writes lora_MODEL.safetensors next to itself: the loss and the gradients of adapters by PEFT, for tiny models of
transformers with random weights.

llama   all targets, two heads of keys for four of queries, untied
qwen2   q and v alone, biases of q, k and v, tied, rank-stabilised
gpt2    all targets, Conv1D

A batch has rows of several documents, which attention does not cross, and targets of -1, which do not count. Computed
in double precision from fp32 start values.

    python3 tests/golden/make_lora_fixture.py      (PyTorch 2.x, transformers, peft, safetensors)

Parameters by dtrun's names and in its layout, F32; tokens, targets, starts, positions I32 (B,T); loss F64 (1): sum over
counted tokens / their number; grad.NAME F32; logits F32 (B,T,V).
The configuration is in the metadata.
"""

import pathlib

import peft
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

VOCAB, CONTEXT, B, T, RANK = 61, 32, 4, 13, 3
MODELS = {
    "llama": {"heads": 4, "kv_heads": 2, "embed": 24, "head_width": 6, "ffn": 40, "alpha": 5.0, "tied": False,
              "targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]},
    "qwen2": {"heads": 4, "kv_heads": 2, "embed": 24, "head_width": 6, "ffn": 32, "alpha": 7.0, "tied": True,
              "targets": ["q_proj", "v_proj"], "rslora": True},
    "gpt2": {"heads": 4, "kv_heads": 4, "embed": 24, "head_width": 6, "ffn": 96, "alpha": 6.0, "tied": True,
             "targets": ["c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"]},
}  # fmt: skip


def build(name, m):
    ends = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=VOCAB, n_positions=CONTEXT, n_embd=m["embed"], n_layer=2, n_head=m["heads"], n_inner=m["ffn"],
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, attn_implementation="eager", **ends))  # fmt: skip
    kinds = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    }
    config_class, model_class = kinds[name]
    return model_class(config_class(
        vocab_size=VOCAB, hidden_size=m["embed"], intermediate_size=m["ffn"], num_hidden_layers=2,
        num_attention_heads=m["heads"], num_key_value_heads=m["kv_heads"], head_dim=m["head_width"], rms_norm_eps=1e-5,
        max_position_embeddings=CONTEXT, tie_word_embeddings=m["tied"], attn_implementation="eager", use_cache=False,
        **ends))  # fmt: skip


def batch_of(random):
    tokens = torch.randint(VOCAB, (B, T), generator=random)
    targets = torch.randint(VOCAB, (B, T), generator=random)
    targets[torch.rand((B, T), generator=random) < 0.3] = -1
    targets[1, :] = -1
    starts = torch.zeros((B, T), dtype=torch.long)
    for row, cuts in enumerate([[], [5], [4, 9], [1, 2, 12]]):
        for cut in cuts:
            starts[row, cut:] = cut
    positions = torch.arange(T).expand(B, T) - starts
    return tokens, targets, starts, positions


def mask_of(starts):
    """Returns 0 where a query sees a key, else a large negative number."""
    t = torch.arange(T)
    sees = (t[None, None, :] <= t[None, :, None]) & (t[None, None, :] >= starts[:, :, None])
    return torch.where(sees, 0.0, -1e30)[:, None].double()


def ours(name, tensor_name, value):
    """Returns dtrun's name and layout of a parameter of a PEFT model."""
    short = tensor_name.removeprefix("base_model.model.")
    short = short.replace(".base_layer.", ".").replace(".default.", ".")
    if name == "gpt2":
        short = short.removeprefix("transformer.")
        if value.ndim == 2 and "lora" not in short and short.split(".")[-2] in ("c_attn", "c_proj", "c_fc"):
            value = value.T
    return short, value.detach().float().contiguous().clone()


def write(name, m):
    random = torch.Generator().manual_seed(11)
    model = build(name, m)
    config = peft.LoraConfig(r=RANK, lora_alpha=m["alpha"], target_modules=m["targets"], lora_dropout=0.0,
                             use_rslora=m.get("rslora", False), fan_in_fan_out=name == "gpt2", task_type="CAUSAL_LM")  # fmt: skip
    model = peft.get_peft_model(model, config)
    with torch.no_grad():
        for key, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=random)
            scale = 0.3 if "lora" in key or p.ndim == 1 else 0.15
            p.copy_(scale * noise + (1.0 if "norm" in key or ".ln_" in key and key.endswith("weight") else 0.0))
    values = dict(ours(name, key, p) for key, p in model.named_parameters())
    model.double()
    tokens, targets, starts, positions = batch_of(random)
    logits = model(input_ids=tokens, position_ids=positions, attention_mask=mask_of(starts)).logits
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    loss.backward()
    out = values | {
        "tokens": tokens.int(), "targets": targets.int(), "starts": starts.int(), "positions": positions.int(),
        "loss": loss.detach()[None], "logits": logits.detach().float(),
    }  # fmt: skip
    for key, p in model.named_parameters():
        if p.requires_grad:
            short, grad = ours(name, key, p.grad)
            out["grad." + short] = grad
    scale = m["alpha"] / (RANK**0.5 if m.get("rslora") else RANK)
    about = {k: v for k, v in m.items() if isinstance(v, int) and not isinstance(v, bool)} | {
        "rank": RANK, "scale": scale, "own_lm_head": int(not m["tied"]), "qkv_bias": int(name == "qwen2"),
        "targets": " ".join(m["targets"]), "vocab": VOCAB, "context": CONTEXT, "peft": peft.__version__,
        "transformers": transformers.__version__,
    }  # fmt: skip
    save_file(out, pathlib.Path(__file__).parent / f"lora_{name}.safetensors", {k: str(v) for k, v in about.items()})
    print(name, "loss", loss.item())


def main():
    torch.set_num_threads(1)
    for name, m in MODELS.items():
        write(name, m)


main()
