#!/usr/bin/env python3
"""Writes huggingface/ next to itself: tiny models with random weights, as transformers save them.

NAME          config.json, generation_config.json, model.safetensors: two layers, fp32; gpt2, llama (with
              the frequencies of Llama 3), qwen2, qwen3
gpt2_parts    gpt2 in bf16, in several files with an index
NAME_expect.safetensors   tokens I32 (B,T), logits F32 (B,T,V), computed in double precision from the fp32
              weights; prompt I32, greedy I32: the greedy continuation

    python3 tests/golden/make_huggingface_fixture.py      (PyTorch, transformers, safetensors)
"""

import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "huggingface"
VOCAB, CONTEXT, B, T, PROMPT, ADDED = 61, 16, 2, 13, 4, 10

LLAMA = dict(vocab_size=VOCAB, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=None,
             pad_token_id=None)
CONFIGS = {
    "gpt2": transformers.GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=12, n_layer=2, n_head=3,
                                    bos_token_id=None, eos_token_id=None),
    "llama": transformers.LlamaConfig(**LLAMA, head_dim=6, rms_norm_eps=1e-5, tie_word_embeddings=False, rope_parameters={
        "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8}),
    "qwen2": transformers.Qwen2Config(**{**LLAMA, "num_attention_heads": 2, "num_key_value_heads": 1},
                                      tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**LLAMA, head_dim=6, tie_word_embeddings=True),
}


def randomize(model):
    """Moves all parameters away from their start values: biases from 0, norms from 1."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)


def greedy(model, prompt):
    tokens = prompt[None].long()
    for _ in range(ADDED):
        tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], dim=1)
    return tokens[0, len(prompt):]


def expect(model, config, path):
    """Computes in double precision, for exact sums; the rotary tables stay those of fp32."""
    tokens = torch.randint(VOCAB, (B, T))
    exact = type(model)(config).eval()
    exact.load_state_dict(model.state_dict())
    exact = exact.double()
    with torch.no_grad():
        found = {
            "tokens": tokens.int(),
            "logits": exact(tokens).logits.float(),
            "prompt": tokens[0, :PROMPT].int(),
            "greedy": greedy(exact, tokens[0, :PROMPT]).int(),
        }
    save_file({name: value.contiguous() for name, value in found.items()}, path)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, config in CONFIGS.items():
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
        randomize(model)
        model.save_pretrained(FOLDER / name)
        expect(model, config, FOLDER / f"{name}_expect.safetensors")
        if name == "gpt2":
            model.bfloat16().save_pretrained(FOLDER / "gpt2_parts", max_shard_size="5KB")


if __name__ == "__main__":
    main()
