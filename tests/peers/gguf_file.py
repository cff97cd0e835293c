#!/usr/bin/env python3
"""Compares `dtrun export --to gguf` with the package gguf, and with llama-cpp-python if it is installed.

    tests/peers/gguf_file.py build/test/bin/dtrun

On demand, not part of any tier: it needs torch, transformers, tokenizers and gguf. It makes small random models with
transformers, trains each for one step of rate 0, and exports it as a folder and as GGUF files. Every tensor of f32 must have the
bits of the folder's, those of f16, bf16 and q8_0 the bits that the package's reference quantization makes of them, and the
tokens, merges and special tokens must be those of tokenizer.json.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from evaluate import make_tokenizer, sentence  # noqa: E402

TYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0"}


def make_model(kind, folder, tokenizer):
    import torch
    import transformers as t

    torch.manual_seed(3)
    common = {"vocab_size": len(tokenizer), "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "max_position_embeddings": 64}
    models = {
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(n_positions=64, n_embd=64, n_layer=2, n_head=4, **common)),
        "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(tie_word_embeddings=True, **sizes, **common)),
        "qwen2": lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**sizes, **common)),
        "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(head_dim=16, **sizes, **common)),
    }
    model = models[kind]()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.eval().save_pretrained(folder)


def pairs(values, heads):
    """Rows of a head in the order that llama.cpp rotates."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def wanted_tensors(kind, folder, config):
    """name in the file: values, by transformers' names."""
    from safetensors.numpy import load_file
    import gguf

    arch = {"gpt2": gguf.MODEL_ARCH.GPT2, "llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2,
            "qwen3": gguf.MODEL_ARCH.QWEN3}[kind]
    names = gguf.get_tensor_name_map(arch, 2)
    for name, values in load_file(folder / "model.safetensors").items():
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if kind == "gpt2" and values.ndim == 2 and any(part in name for part in ("c_attn", "c_proj", "c_fc")):
            values = values.T
        if kind == "llama" and "q_proj" in name:
            values = pairs(values, config["num_attention_heads"])
        if kind == "llama" and "k_proj" in name:
            values = pairs(values, config["num_key_value_heads"])
        yield ours, numpy.ascontiguousarray(values)


def compare(path, word, kind, folder):
    import gguf

    config = json.loads((folder / "config.json").read_text())
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    want = dict(wanted_tensors(kind, folder, config))
    assert tensors.keys() == want.keys(), tensors.keys() ^ want.keys()
    for name, values in want.items():
        plain = values.ndim < 2 or name == "position_embd.weight"
        kind_of = gguf.GGMLQuantizationType.F32 if plain else gguf.GGMLQuantizationType[TYPES[word]]
        assert tensors[name].tensor_type == kind_of, (name, tensors[name].tensor_type)
        reference = gguf.quantize(values.astype(numpy.float32), kind_of)
        assert numpy.array_equal(numpy.asarray(tensors[name].data).view(numpy.uint8).ravel(),
                                 reference.view(numpy.uint8).ravel()), name
    fields = {name: field.contents() for name, field in reader.fields.items()}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = fields["tokenizer.ggml.tokens"]
    assert all(tokens[i] == text for text, i in tokenizer["model"]["vocab"].items())
    assert [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]] == [
        merge if isinstance(merge, list) else merge.split(" ") for merge in tokenizer["model"]["merges"]]
    assert fields["tokenizer.chat_template"] == TEMPLATE
    assert tokens[fields["tokenizer.ggml.eos_token_id"]] == "<|end|>"
    return fields


def greedy(path, folder, prompt):
    """The text of llama.cpp and that of transformers."""
    import torch
    import transformers as t
    from llama_cpp import Llama

    tokenizer = t.AutoTokenizer.from_pretrained(folder)
    model = t.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, attention_mask=ids * 0 + 1, max_new_tokens=24, do_sample=False,
                         pad_token_id=tokenizer.eos_token_id)[0].tolist()
    llama = Llama(str(path), n_ctx=64, logits_all=False, verbose=False)
    mine = llama.tokenize(prompt.encode(), add_bos=True, special=True)
    if mine != ids[0].tolist():
        return f"ids {mine} and {ids[0].tolist()}"
    for token in llama.generate(mine, temp=0.0, repeat_penalty=1.0):
        mine = [*mine, token]
        if len(mine) == len(out):
            break
    return "equal" if mine == out else f"text {mine} and {out}"


TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


def main():
    program = os.path.abspath(sys.argv[1])
    try:
        import llama_cpp  # noqa: F401
        has_llama = True
    except ImportError:
        has_llama = False
    rng = random.Random(4)
    with tempfile.TemporaryDirectory() as temporary:
        top = pathlib.Path(temporary)
        texts = [sentence(rng, 5, 30) for _ in range(400)]
        (top / "corpus.txt").write_text("\n".join(texts) + "\n")
        environment = dict(os.environ, XDG_STATE_HOME=str(top / "state"), XDG_CACHE_HOME=str(top / "cache"))

        def dtrun(*arguments):
            subprocess.run([program, *map(str, arguments)], check=True, env=environment, stdout=subprocess.DEVNULL)

        for kind in ("gpt2", "llama", "qwen2", "qwen3"):
            folder = top / kind
            folder.mkdir()
            tokenizer = make_tokenizer(folder, texts, kind == "llama")  # with a begin token, or without
            (folder / "chat_template.jinja").write_text(TEMPLATE)
            make_model(kind, folder, tokenizer)
            (top / f"{kind}.yaml").write_text(
                f"model: {{from: {kind}}}\ndata: corpus.txt\nbatch: {{tokens: 64, sequences: 1}}\n"
                "optimizer: {lr: 0.000000000001, weight_decay: 0}\nschedule: {steps: 1}\n")
            dtrun("launch", "--wait", top / f"{kind}.yaml")
            dtrun("export", kind, "--to", "hf", top / f"{kind}-hf")
            for word in TYPES:
                path = top / f"{kind}-{word}.gguf"
                dtrun("export", kind, "--to", "gguf", "--type", word, path)
                fields = compare(path, word, kind, top / f"{kind}-hf")
            text = greedy(top / f"{kind}-f32.gguf", top / f"{kind}-hf", texts[0][:30]) if has_llama else "not installed"
            print(f"{kind:6} tensors equal in f32, f16, bf16, q8_0; {len(fields)} keys; llama.cpp: {text}", flush=True)


if __name__ == "__main__":
    main()
