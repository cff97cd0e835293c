#!/usr/bin/env python3
"""Compares `dtrun export --to gguf` with the package gguf, and with llama-cpp-python if it is installed.

    tests/peers/gguf_file.py build/test/bin/dtrun [--texts 300] [NAME...]

On demand, not part of any tier: it needs torch, transformers, tokenizers, sentencepiece and gguf. It makes small random
models with transformers, trains each for one step of rate 0, and exports it as a folder and as GGUF files. Every tensor of
f32 must have the bits of the folder's, those of f16, bf16 and q8_0 the bits that the package's reference quantization makes
of them. llama.cpp must make the tokens of transformers from random texts, and continue a prompt from f32 with the greedy
text of dtrun and of transformers. REFUSED has what a GGUF file cannot have.
"""
import argparse
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy

os.environ["TQDM_DISABLE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from evaluate import make_tokenizer, sentence  # noqa: E402

os.environ.setdefault("HF_HUB_OFFLINE", "1")
TYPES = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0"}
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
CONTEXT = 96

# --- tokenizers


def sentencepiece_bpe(folder, texts, gemma):
    """BPE of SentencePiece with tokens for bytes, as Gemma (spaces alone become marks) or Llama 2 (a text begins with one)
    have it."""
    import io

    import sentencepiece
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    model = io.BytesIO()
    spaces = ["\u2581\u2581", "\u2581\u2581\u2581"] if gemma else []
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=420, model_type="bpe", byte_fallback=True,
        add_dummy_prefix=not gemma, normalization_rule_name="identity", remove_extra_whitespaces=False, pad_id=0, eos_id=1,
        bos_id=2, unk_id=3, control_symbols="<turn>,<|end|>", user_defined_symbols=["\n\n", *spaces], minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    scores = {pieces.id_to_piece(i): pieces.get_score(i) for i in range(pieces.vocab_size())}
    vocab = {piece: i for i, piece in enumerate(scores)}
    merges = []
    for piece, score in scores.items():
        parts = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += [(score, pair) for pair in sorted(parts, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))]
    merges = [pair for _, pair in sorted(merges, key=lambda entry: entry[0], reverse=True)]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    mark = normalizers.Replace(" ", "\u2581")
    undo = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    if gemma:
        tokenizer.normalizer = mark
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), mark])
        undo.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(undo)
    special = ["<pad>", "</s>", "<s>", "<unk>", "<turn>", "<|end|>"]
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ["\n\n", *spaces]])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", vocab["<s>"])])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="<|end|>", pad_token="<pad>",
                                      unk_token="<unk>")
    wrapped.save_pretrained(folder)
    return wrapped


def byte_level(pattern=None, digits=False, ignore=False, begin=False):
    """Byte-level BPE that splits text by a pattern; None: as GPT-2."""

    def make(folder, texts):
        from tokenizers import Regex, Tokenizer, pre_tokenizers

        plain = make_tokenizer(folder, texts, begin)
        if pattern is None and not digits:
            return plain
        level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
        first = pre_tokenizers.Digits(individual_digits=True) if digits else pre_tokenizers.Split(Regex(pattern), "isolated")
        tokenizer = Tokenizer.from_str(plain.backend_tokenizer.to_str())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, level])
        if ignore:
            tokenizer.model.ignore_merges = True
        from transformers import PreTrainedTokenizerFast

        names = {"eos_token": "<|end|>"} | ({"bos_token": "<|begin|>"} if begin else {})
        wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
        wrapped.save_pretrained(folder)
        return wrapped

    return make


def later(numbers):
    return (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


TOKENIZERS = {
    "gpt2": byte_level(),
    "begin": byte_level(begin=True),
    "llama3": byte_level(later(r"\p{N}{1,3}"), ignore=True, begin=True),
    "olmo": byte_level(later(r"\p{N}{1,3}")),
    "qwen": byte_level(later(r"\p{N}")),
    "digits": byte_level(digits=True),
    "gemma": lambda folder, texts: sentencepiece_bpe(folder, texts, True),
    "pieces": lambda folder, texts: sentencepiece_bpe(folder, texts, False),
}

# --- models

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": CONTEXT}
GEMMA = SIZES | {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 7}
ONE, WIDE = {"num_key_value_heads": 4}, {"head_dim": 32}


def rope(kind, theta=1e4, **more):
    if kind in ("yarn", "llama3"):
        more.setdefault("original_max_position_embeddings", 24)
    if kind in ("linear", "yarn", "llama3"):
        more.setdefault("factor", 4.0)
    if kind == "llama3":
        more |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


def longrope(original, half=8, **more):
    return rope("longrope", short_factor=[1 + i / 10 for i in range(half)], long_factor=[1.5 + i / 3 for i in range(half)],
                factor=4.0, **more) | ({"original_max_position_embeddings": original} if original else {})


def both_ropes(kind, theta, local):
    return {"rope_parameters": {"full_attention": rope(kind, theta)["rope_parameters"],
                                "sliding_attention": {"rope_type": "default", "rope_theta": local}}}


def gemma3_rope(kind):
    return both_ropes(kind, 1e6, 500.0)


LAYERS = ["sliding_attention", "full_attention"]
CASES = {  # name: family, tokenizer, settings
    "gpt2": ("gpt2", "gpt2", {}),
    "llama": ("llama", "begin", {"tie_word_embeddings": True}),
    "llama, biases": ("llama", "llama3", {"attention_bias": True, "mlp_bias": True} | rope("llama3")),
    "llama, pieces": ("llama", "pieces", WIDE | rope("yarn")),
    "llama, long": ("llama", "pieces", longrope(None, original_max_position_embeddings=16)),
    "mistral": ("mistral", "pieces", {"sliding_window": CONTEXT, **rope("linear")}),
    "mistral, none": ("mistral", "begin", {"sliding_window": None, **WIDE}),
    "qwen2": ("qwen2", "qwen", {"tie_word_embeddings": True}),
    "qwen2, yarn": ("qwen2", "qwen", rope("yarn", attention_factor=1.3)),
    "qwen3": ("qwen3", "qwen", WIDE),
    "phi3": ("phi3", "pieces", ONE | {"sliding_window": None}),
    "phi3, long": ("phi3", "pieces", longrope(16, 4, partial_rotary_factor=0.5) | {"sliding_window": CONTEXT}),
    "phi3, short": ("phi3", "pieces", longrope(4096) | {"sliding_window": None, "tie_word_embeddings": True}),
    "granite": ("granite", "digits", {"embedding_multiplier": 3.0, "residual_multiplier": 0.3, "attention_multiplier": 0.4,
                                      "logits_scaling": 2.0, "tie_word_embeddings": True}),
    "granite, biases": ("granite", "digits", {"attention_bias": True, "mlp_bias": True, **WIDE, **rope("llama3")}),
    "olmo2": ("olmo2", "olmo", ONE),
    "olmo2, tied": ("olmo2", "olmo", {"tie_word_embeddings": True} | rope("yarn", mscale=0.7, mscale_all_dim=1.2)),
    "olmo3": ("olmo3", "olmo", ONE | {"sliding_window": 7} | both_ropes("yarn", 1e4, 1e4)),
    "olmo3, layers": ("olmo3", "olmo", {"sliding_window": 7, "layer_types": LAYERS[::-1] * 2} | both_ropes("linear", 1e4, 1e4)),
    "smollm3": ("smollm3", "llama3", {"num_hidden_layers": 5, **rope("default", 5e4)}),
    "smollm3, wide": ("smollm3", "llama3", {"tie_word_embeddings": False, **WIDE, **rope("yarn")}),
    "stablelm": ("stablelm", "qwen", {"use_qkv_bias": True} | rope("default", partial_rotary_factor=0.5)),
    "stablelm, tied": ("stablelm", "qwen", {"tie_word_embeddings": True} | rope("linear", partial_rotary_factor=1.0)),
    "gemma": ("gemma", "gemma", {"head_dim": 32}),
    "gemma, gelu": ("gemma", "begin", {"hidden_act": "gelu", **rope("yarn")}),
    "gemma2": ("gemma2", "gemma", {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0}),
    "gemma2, layers": ("gemma2", "gemma", {"layer_types": LAYERS[::-1] * 2} | rope("yarn")),
    "gemma3": ("gemma3", "gemma", {"num_hidden_layers": 7} | gemma3_rope("default")),
    "gemma3, layers": ("gemma3", "gemma", {"layer_types": LAYERS * 2, "final_logit_softcapping": 6.0,
                                           **gemma3_rope("linear")}),
    "gemma3, full": ("gemma3", "begin", {"layer_types": LAYERS[1:] * 4, "tie_word_embeddings": False}),
}
REFUSED = {  # family, tokenizer, settings: what the message names
    "llama, gelu": ("llama", "begin", {"hidden_act": "gelu"}, "hidden_act"),
    "llama, dynamic": ("llama", "begin", rope("dynamic", factor=2.0), "dynamic"),
    "llama, beta": ("llama", "begin", rope("yarn", beta_fast=16.0), "beta_fast"),
    "llama, truncate": ("llama", "begin", rope("yarn", truncate=False), "truncate"),
    "mistral": ("mistral", "begin", {"sliding_window": 8}, "sliding_window"),
    "qwen2, width": ("qwen2", "qwen", WIDE, "head_dim"),
    "qwen2, llama3": ("qwen2", "qwen", rope("llama3"), "llama3"),
    "qwen3, bias": ("qwen3", "qwen", WIDE | {"attention_bias": True}, "attention_bias"),
    "qwen3, windows": ("qwen3", "qwen", WIDE | {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
                       "sliding_window"),
    "phi3": ("phi3", "pieces", {"sliding_window": 8}, "sliding_window"),
    "olmo2": ("olmo2", "olmo", {"attention_bias": True}, "attention_bias"),
    "olmo3": ("olmo3", "olmo", both_ropes("default", 1e4, 500.0), "sliding_attention"),
    "smollm3, every": ("smollm3", "llama3", {"no_rope_layer_interval": 2}, "no_rope_layers"),
    "smollm3, bias": ("smollm3", "llama3", {"mlp_bias": True}, "mlp_bias"),
    "gemma2, scalar": ("gemma2", "gemma", {"query_pre_attn_scalar": 24}, "query_pre_attn_scalar"),
    "gemma2, no cap": ("gemma2", "gemma", {"attn_logit_softcapping": None}, "attn_logit_softcapping"),
    "gemma3, bias": ("gemma3", "gemma", {"attention_bias": True}, "attention_bias"),
    "gemma3, yarn": ("gemma3", "gemma", gemma3_rope("yarn"), "yarn"),
}


def make_model(family, settings, folder, tokenizer):
    import torch
    import transformers as t

    classes = {"gpt2": t.GPT2Config, "llama": t.LlamaConfig, "mistral": t.MistralConfig, "qwen2": t.Qwen2Config,
               "qwen3": t.Qwen3Config, "phi3": t.Phi3Config, "granite": t.GraniteConfig, "olmo2": t.Olmo2Config,
               "olmo3": t.Olmo3Config, "gemma": t.GemmaConfig,
               "smollm3": t.SmolLM3Config, "stablelm": t.StableLmConfig, "gemma2": t.Gemma2Config,
               "gemma3": t.Gemma3TextConfig}
    sizes = {"gemma": SIZES | {"head_dim": 16}, "gpt2": {"n_positions": CONTEXT, "n_embd": 64, "n_layer": 2, "n_head": 4}, "gemma2": GEMMA, "gemma3": GEMMA}
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = classes[family](**sizes.get(family, SIZES) | ids | {"vocab_size": len(tokenizer)} | settings)
    torch.manual_seed(3)
    model = t.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.15 + (parameter.mean() if parameter.ndim == 1 else 0))
    model.eval().save_pretrained(folder)


# --- tensors


def pairs(values, heads):
    """Rows of a head in the order that llama.cpp rotates."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def rope_factors(config):
    """The factors that a file has as tensors."""
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "longrope":
        yield "rope_factors_long.weight", numpy.array(scaling["long_factor"], numpy.float32)
        yield "rope_factors_short.weight", numpy.array(scaling["short_factor"], numpy.float32)
    if scaling.get("rope_type") == "llama3":
        width = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
        waves = 2 * math.pi * config["rope_theta"] ** (numpy.arange(0, width, 2) / width)
        low, high = (scaling["original_max_position_embeddings"] / scaling[f"{part}_freq_factor"] for part in ("low", "high"))
        smooth = numpy.clip((low / waves - 1) / (low / high - 1), 0, 1)
        yield "rope_freqs.weight", (1 / ((1 - smooth) / scaling["factor"] + smooth)).astype(numpy.float32)


def wanted_tensors(family, folder, config):
    """name in the file: values, by transformers' names."""
    from safetensors.numpy import load_file
    import gguf

    arch = gguf.MODEL_ARCH[{"mistral": "llama", "olmo3": "olmo2"}.get(family, family).upper()]
    names = gguf.get_tensor_name_map(arch, config.get("num_hidden_layers", 2))
    tensors = load_file(folder / "model.safetensors")
    if family in ("olmo2", "olmo3", "stablelm") and "lm_head.weight" not in tensors:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    for name, values in tensors.items():
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if family == "gpt2" and values.ndim == 2 and any(part in name for part in ("c_attn", "c_proj", "c_fc")):
            values = values.T
        if family in ("llama", "mistral", "granite", "smollm3"):
            for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
                values = pairs(values, config[heads]) if part in name else values
        if family.startswith("gemma") and name.endswith("norm.weight"):
            values = values + numpy.float32(1)
        yield ours, numpy.ascontiguousarray(values)
    yield from rope_factors(config)


def compare(path, word, family, folder):
    import gguf

    config = json.loads((folder / "config.json").read_text())
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    want = dict(wanted_tensors(family, folder, config))
    assert tensors.keys() == want.keys(), tensors.keys() ^ want.keys()
    for name, values in want.items():
        plain = values.ndim < 2 or name == "position_embd.weight"
        kind_of = gguf.GGMLQuantizationType.F32 if plain else gguf.GGMLQuantizationType[TYPES[word]]
        assert tensors[name].tensor_type == kind_of, (name, tensors[name].tensor_type)
        if name == "rope_freqs.weight":
            assert numpy.allclose(tensors[name].data, values, rtol=1e-6), name
            continue
        reference = gguf.quantize(values.astype(numpy.float32), kind_of)
        assert numpy.array_equal(numpy.asarray(tensors[name].data).view(numpy.uint8).ravel(),
                                 reference.view(numpy.uint8).ravel()), name
    fields = {name: field.contents() for name, field in reader.fields.items()}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = fields["tokenizer.ggml.tokens"]
    assert all(tokens[i] == text for text, i in tokenizer["model"]["vocab"].items())
    if "tokenizer.ggml.merges" in fields:
        assert [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]] == [
            merge if isinstance(merge, list) else merge.split(" ") for merge in tokenizer["model"]["merges"]]
    assert fields["tokenizer.chat_template"] == TEMPLATE
    assert tokens[fields["tokenizer.ggml.eos_token_id"]] == "<|end|>"
    return fields


# --- llama.cpp


def odd_text(rng):
    """Words, numbers, spaces, line breaks, letters that no token has, and special tokens."""
    parts = ["  ", "   ", " ", " ", "\n", "\n\n", "\t", "123", "45678", "é", "東京", "🙂", "don't", "WE'LL", "...", "\u00a0",
             "aaaa", "the", "then", "river", "waterfall", "<|end|>", "_", "\u0939\u093f"]
    return "".join(rng.choice(parts) if rng.random() < 0.5 else sentence(rng, 1, 3) for _ in range(rng.randint(1, 8)))


def greedy(path, folder, prompt, count, ours):
    """Compares tokens of random texts, and the text after a prompt with that of dtrun and of transformers."""
    import torch
    import transformers as t
    from llama_cpp import Llama

    tokenizer = t.AutoTokenizer.from_pretrained(folder)
    model = t.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, attention_mask=ids * 0 + 1, max_new_tokens=24, do_sample=False,
                         pad_token_id=tokenizer.eos_token_id)[0].tolist()
    llama = Llama(str(path), n_ctx=CONTEXT, type_k=0, type_v=0, logits_all=False, verbose=False)  # keys and values in f32
    rng = random.Random(8)
    for _ in range(count):
        text = odd_text(rng)
        made, wanted = llama.tokenize(text.encode(), add_bos=True, special=True), tokenizer(text).input_ids
        if made != wanted:
            return f"FAILED: tokens of {text!r}: {tokenizer.convert_ids_to_tokens(made)} and " \
                   f"{tokenizer.convert_ids_to_tokens(wanted)}"
    mine = llama.tokenize(prompt.encode(), add_bos=True, special=True)
    start = len(mine)
    for token in llama.generate(mine, temp=0.0, repeat_penalty=1.0):
        mine = [*mine, token]
        if len(mine) == len(out):
            break
    if mine != out:
        return f"FAILED: text {mine} and {out}"
    text = llama.detokenize(mine[start:], special=True).decode(errors="replace").removesuffix("<|end|>")
    if re.sub("\ufffd+", "\ufffd", text) != re.sub("\ufffd+", "\ufffd", ours):
        return f"FAILED: dtrun's text {ours!r} is not {text!r}"
    return "equal"


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("--texts", type=int, default=300)
    words.add_argument("names", nargs="*")
    asked = words.parse_args()
    program = os.path.abspath(asked.program)
    try:
        import llama_cpp  # noqa: F401
        has_llama = True
    except ImportError:
        has_llama = False
    rng, failed = random.Random(4), False
    with tempfile.TemporaryDirectory() as temporary:
        top = pathlib.Path(temporary)
        texts = [sentence(rng, 5, 30) for _ in range(400)]
        (top / "corpus.txt").write_text("\n".join(texts) + "\n")
        environment = dict(os.environ, XDG_STATE_HOME=str(top / "state"), XDG_CACHE_HOME=str(top / "cache"))

        def dtrun(*arguments, code=0):
            done = subprocess.run([program, *map(str, arguments)], env=environment, text=True, capture_output=True)
            assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
            return done.stdout if code == 0 else done.stderr

        def run(name, family, words_of, settings):
            folder = top / name
            folder.mkdir()
            tokenizer = TOKENIZERS[words_of](folder, texts)
            (folder / "chat_template.jinja").write_text(TEMPLATE)
            make_model(family, settings, folder, tokenizer)
            (top / f"{name}.yaml").write_text(
                f"model: {{from: '{name}'}}\ndata: corpus.txt\nbatch: {{tokens: 64, sequences: 1}}\n"
                "optimizer: {lr: 0.000000000001, weight_decay: 0}\nschedule: {steps: 1}\n")
            dtrun("launch", "--wait", top / f"{name}.yaml")

        def slug(text):
            return text.replace(", ", "-").replace(" ", "-")

        for case, (family, words_of, settings) in CASES.items():
            name = slug(case)
            if asked.names and family not in asked.names and case not in asked.names:
                continue
            run(name, family, words_of, settings)
            dtrun("export", name, "--to", "hf", top / f"{name}-hf")
            for word in TYPES:
                path = top / f"{name}-{word}.gguf"
                dtrun("export", name, "--to", "gguf", "--type", word, path)
                fields = compare(path, word, family, top / f"{name}-hf")
            prompt = " ".join(texts[:3])[:120]
            ours = json.loads(dtrun("generate", name, "--prompt", prompt, "--temperature", 0, "--tokens", 24,
                                    "--json"))["text"]
            text = greedy(top / f"{name}-f32.gguf", top / f"{name}-hf", prompt, asked.texts, ours) if has_llama else \
                "not installed"
            failed = failed or text.startswith("FAILED")
            print(f"{case:16} tensors equal in f32, f16, bf16, q8_0; {len(fields)} keys; llama.cpp: {text}", flush=True)
        for case, (family, words_of, settings, named) in REFUSED.items():
            name = "refused-" + slug(case)
            if asked.names and family not in asked.names and case not in asked.names:
                continue
            run(name, family, words_of, settings)
            said = dtrun("export", name, "--to", "gguf", top / "refused.gguf", code=3)
            assert named in said and not list(top.glob("refused.gguf*")), (case, said)
            print(f"{case:16} refused: {said.strip().splitlines()[0]}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
