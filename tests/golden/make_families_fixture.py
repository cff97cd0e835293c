#!/usr/bin/env python3
"""Writes families/ next to itself: a tiny random model of each family of kind llama, as transformers saves it, with
every switch that its configuration has.

NAME        config.json, model.safetensors: fp32
NAME_grad   the same, with the gradients of the loss in place of the weights
NAME_expect.safetensors   tokens and targets I32 (B,T), logits F32 (B,T,V), loss F64 (1): mean over all targets, both
            computed in double precision from the fp32 weights

    python3 tests/golden/make_families_fixture.py      (PyTorch, transformers 5, safetensors)
"""

import pathlib
import shutil

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "families"
VOCAB, B, T = 61, 2, 13

SIZES = dict(vocab_size=VOCAB, hidden_size=12, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=16, bos_token_id=None, eos_token_id=None, pad_token_id=None)
GEMMA = dict(**SIZES, head_dim=8, query_pre_attn_scalar=10, sliding_window=5)
LONG = {"rope_theta": 500.0, "original_max_position_embeddings": 8}
CONFIGS = {
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=8, attention_bias=True, use_sliding_window=True, sliding_window=6,
                                      max_window_layers=1),
    "mistral": transformers.MistralConfig(**SIZES, sliding_window=4, rope_parameters={
        "rope_type": "yarn", "factor": 2.0, **LONG}),
    "llama": transformers.LlamaConfig(**{**SIZES, "max_position_embeddings": 8}, mlp_bias=True, rope_parameters={
        "rope_type": "dynamic", "factor": 3.0, "rope_theta": 500.0}),
    "phi3": transformers.Phi3Config(**{**SIZES, "hidden_size": 16}, sliding_window=7, original_max_position_embeddings=8,
                                    rope_parameters={
        "rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 0.5, "factor": 2.0,
        "short_factor": [1.0, 1.5], "long_factor": [2.0, 3.5]}),
    "granite": transformers.GraniteConfig(**SIZES, attention_bias=True, embedding_multiplier=3.0, logits_scaling=2.0,
                                          residual_multiplier=0.3, attention_multiplier=0.4),
    "olmo2": transformers.Olmo2Config(**SIZES, rope_parameters={
        "rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 1.2, "truncate": False, **LONG}),
    "olmo3": transformers.Olmo3Config(**SIZES, sliding_window=5, layer_types=["sliding_attention", "full_attention"],
                                      rope_parameters={
        "full_attention": {"rope_type": "yarn", "factor": 4.0, **LONG},
        "sliding_attention": {"rope_type": "default", "rope_theta": 90.0}}),
    "gemma": transformers.GemmaConfig(**SIZES, head_dim=8),
    "stablelm": transformers.StableLmConfig(**SIZES, use_qkv_bias=True, rope_parameters={
        "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.4}),
    "smollm3": transformers.SmolLM3Config(**SIZES, no_rope_layers=[1, 0], use_sliding_window=True, sliding_window=6),
    "gemma2": transformers.Gemma2Config(**GEMMA, attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    "gemma3_text": transformers.Gemma3TextConfig(
        **GEMMA, layer_types=["sliding_attention", "full_attention"], rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 900.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 40.0}}),
}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, config in CONFIGS.items():
        torch.manual_seed(1)
        config._attn_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "generation_config.json").unlink(missing_ok=True)
        tokens, targets = torch.randint(VOCAB, (2, B, T))
        exact = type(model)(config).eval()
        exact.load_state_dict(model.state_dict())
        exact = exact.double()
        logits = exact(tokens).logits
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        save_file({"tokens": tokens.int(), "targets": targets.int(), "logits": logits.detach().float().contiguous(),
                   "loss": loss.detach()[None].double()}, FOLDER / f"{name}_expect.safetensors")
        with torch.no_grad():
            for parameter, other in zip(model.parameters(), exact.parameters(), strict=True):
                parameter.copy_(other.grad)
        model.save_pretrained(FOLDER / f"{name}_grad")
        (FOLDER / f"{name}_grad" / "generation_config.json").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
