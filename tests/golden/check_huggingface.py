#!/usr/bin/env python3
"""Compares dtrun with the real transformers: an export of `dtrun export` loads without a warning, and gives the same
logits and the same greedy text as the weights that the run started from; `dtrun generate` finds the same texts as
transformers' beam search, with the same scores.

    DTRUN_BIN=build/test/bin python3 tests/golden/check_huggingface.py      (PyTorch, transformers)

A random model of each family is saved by transformers, loaded by a run that does not change its parameters (a learning
rate below fp32's smallest number), exported in each type, and loaded again.
"""

import array
import json
import logging
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import tokenizers
import torch
import transformers

DTRUN = pathlib.Path(os.environ.get("DTRUN_BIN", "build/dev/bin")).resolve() / "dtrun"
VOCAB, CONTEXT = 131, 32
BOUNDS = {"fp32": 1e-5, "bf16": 0.1, "fp16": 1e-2}

LLAMA = dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=None)

CONFIGS = {
    "llama": transformers.LlamaConfig(**LLAMA, tie_word_embeddings=False),
    "llama3": transformers.LlamaConfig(**LLAMA, head_dim=16, tie_word_embeddings=True, rope_parameters={
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
    "llama_linear": transformers.LlamaConfig(**LLAMA, rope_parameters={
        "rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}),
    "qwen2": transformers.Qwen2Config(**LLAMA, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**LLAMA, head_dim=16, tie_word_embeddings=False),
    "gpt2": transformers.GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=48, n_layer=3, n_head=4,
                                    bos_token_id=None, eos_token_id=None),
    "gpt2_narrow": transformers.GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=48, n_layer=2, n_head=4,
                                           n_inner=100, layer_norm_epsilon=1e-3, bos_token_id=None, eos_token_id=None),
    "llama_biases": transformers.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True, tie_word_embeddings=False),
    "mistral": transformers.MistralConfig(**LLAMA, sliding_window=None),
    "gpt2_untied": transformers.GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=48, n_layer=2,
                                           n_head=4, activation_function="gelu", bos_token_id=5,
                                           eos_token_id=7, tie_word_embeddings=False),
}


class Listener(logging.Handler):
    """Returns what transformers print about a folder."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def save(name, config, folder):
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model.eval()


def dtrun(*words):
    done = subprocess.run([DTRUN, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"dtrun {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def take(name, work):
    """Makes a run from the folder, which does not change its parameters."""
    recipe = work / f"{name}.yaml"
    recipe.write_text(
        f"model: {{from: {name}}}\ndata: {{train: ids.bin, tokens: nanogpt}}\nranks: 2\nstrategy: fsdp\n"
        f"batch: {{sequences: 2, tokens: {CONTEXT}}}\n"
        "schedule: {steps: 1}\n"
        "optimizer: {kind: sgd, lr: 1e-99, weight_decay: 0}\nevaluate: {sequences: 2}\n")
    dtrun("launch", "--wait", recipe)


def ask(model, tokens):
    with torch.no_grad():
        logits = model(tokens).logits
        text = model.generate(tokens[:1, :5], do_sample=False, max_new_tokens=20, pad_token_id=0)
    return logits, text


def check(name, config, work, listener):
    model = save(name, config, work / name)
    take(name, work)
    tokens = torch.randint(VOCAB, (2, CONTEXT - 3), generator=torch.Generator().manual_seed(4))
    logits, text = ask(model, tokens)
    for dtype, bound in BOUNDS.items():
        folder = work / f"{name}-{dtype}"
        dtrun("export", "--to", "hf", name, folder, "--dtype", dtype, "--file-mb", 0.05)
        listener.said.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
        assert str(again.dtype) == {"fp32": "torch.float32", "bf16": "torch.bfloat16",
                                    "fp16": "torch.float16"}[dtype], again.dtype
        theirs, words = ask(again.float(), tokens)
        assert not listener.said, listener.said
        error = ((theirs - logits).abs() / (1 + logits.abs())).max().item()
        assert error <= bound, (name, dtype, error)
        if dtype == "fp32":
            assert torch.equal(words, text), (words, text)
            for key, value in model.state_dict().items():
                assert torch.equal(value, again.state_dict()[key]), key
        print(f"{name} {dtype}: logits within {error:.1e}")


# --- searches

END = "<|endoftext|>"
PROMPTS = ["a", "the quick", "over", "it is", "zz top", "q"]
NEW = 9


def save_tokenizer(folder):
    """Returns bytes, and the end of a text."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(tokenizers.models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([END])
    saved = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)
    saved.save_pretrained(folder)
    return saved


def search(model, tokenizer, prompt, beams, penalty):
    ids = torch.tensor([tokenizer(prompt)["input_ids"]])
    with torch.no_grad():
        found = model.generate(ids, do_sample=False, num_beams=beams, early_stopping=True, length_penalty=penalty,
                               max_new_tokens=NEW, eos_token_id=tokenizer.eos_token_id, pad_token_id=0,
                               return_dict_in_generate=True, output_scores=True)
    new = [t for t in found.sequences[0, ids.shape[1]:].tolist()]
    if tokenizer.eos_token_id in new:
        new = new[:new.index(tokenizer.eos_token_id)]
    return tokenizer.decode(new), found.sequences_scores[0].item()


def check_windows(name, model, tokenizer, work):
    """Scores texts longer than the context, in windows whose first half was predicted before."""
    lines = [" ".join(PROMPTS) * times for times in (1, 3, 10)]
    (work / "long.txt").write_text("\n".join(lines))
    scored = json.loads(dtrun("score", name, "--input", work / "long.txt", "--json"))["lines"]
    for line, score in zip(lines, scored, strict=True):
        ids = [256] + tokenizer(line)["input_ids"] + [256]
        total = done = 0
        while done < len(ids) - 1:
            end = min(len(ids) - 1, done + ((CONTEXT + 1) // 2 if done else CONTEXT))
            begin = max(0, end - CONTEXT)
            with torch.no_grad():
                logs = model(torch.tensor([ids[begin:end]])).logits[0].log_softmax(-1)
            total += sum(logs[i - begin, ids[i + 1]].item() for i in range(done, end))
            done = end
        assert score["tokens"] == len(ids) - 1 and abs(score["log_likelihood"] / total - 1) < 1e-5, (score, total)


def check_searches(name, config, work):
    config.vocab_size, config.bos_token_id, config.eos_token_id = 257, None, 256
    model = save(name, config, work / name)
    tokenizer = save_tokenizer(work / name)
    with torch.no_grad():  # some searches end before NEW tokens, some do not
        model.get_output_embeddings().weight[256] += 0.05
    model.save_pretrained(work / name)
    (work / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 200)
    (work / "prompts.txt").write_text("\n".join(PROMPTS))
    recipe = work / f"{name}.yaml"
    recipe.write_text(
        f"model: {{from: {name}}}\ndata: {{train: text.txt, tokenizer: {name}}}\n"
        f"batch: {{sequences: 2, tokens: {CONTEXT}}}\nschedule: {{steps: 1}}\n"
        "optimizer: {kind: sgd, lr: 1e-99, weight_decay: 0}\nevaluate: {sequences: 2}\n")
    dtrun("launch", "--wait", recipe)
    ends = set()
    for beams in 2, 3, 8:
        for penalty in 0, 1, 2.5:
            lines = json.loads(dtrun("generate", name, "--input", work / "prompts.txt", "--beam", beams, "--tokens", NEW,
                                     "--length-penalty", penalty, "--json"))["lines"]
            for line in lines:
                text, score = search(model, tokenizer, line["prompt"], beams, penalty)
                assert line["text"] == text and abs(line["score"] - score) < 1e-4, (beams, penalty, line, text, score)
                ends.add(line["ended"])
    check_windows(name, model, tokenizer, work)
    print(f"{name}: searches of 2, 3 and 8 beams find the same texts ({', '.join(sorted(ends))})")


# --- chats: begin tokens, markers inside of prompts, and several end tokens

TOKENS = pathlib.Path(__file__).resolve().parent / "tokens"
CHATS = {
    "llama2": ("<s>", ["</s>"], ["[INST] train the tokens [/INST]", "</s><s>[INST] x [/INST]", "caf\u00e9 <0x41>", " "]),
    "llama3": ("<|begin_of_text|>", ["<|end_of_text|>", "<|eot_id|>"],
               ["user\n\nHello<|eot_id|>assistant\n\n", "<|end_of_text|>training", "12345 x"]),
    "qwen": (None, ["<|im_end|>", "<|endoftext|>"],
             ["<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>a", "the checkpoint"]),
}


def save_chat(name, folder):
    """Makes the tokenizer of this family with its template, and a model whose likely tokens are all in the
    vocabulary."""
    begin, ends, _ = CHATS[name]
    made = tokenizers.Tokenizer.from_file(str(TOKENS / f"{name}.json"))
    made.add_special_tokens([token for token in ends if made.token_to_id(token) is None])
    if begin is not None:
        made.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{begin} $A", pair=f"{begin} $A {begin} $B", special_tokens=[(begin, made.token_to_id(begin))])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=ends[0], bos_token=begin)
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(**{**LLAMA, "vocab_size": made.get_vocab_size(), "max_position_embeddings": 2 * CONTEXT},
                                      tie_word_embeddings=False)
    model = save(name, config, folder)
    model.generation_config.eos_token_id = [made.token_to_id(token) for token in ends]
    model.generation_config.bos_token_id = made.token_to_id(begin) if begin else None
    with torch.no_grad():
        for token in model.generation_config.eos_token_id:
            model.get_output_embeddings().weight[token] *= 2
        for text, token in made.get_vocab().items():
            if text.startswith("<0x"):  # if one of several bytes cannot form UTF-8 with the others, all become replacement characters
                model.get_output_embeddings().weight[token] = 0
    model.save_pretrained(folder)
    return model, tokenizer


def shown(text):
    """Invalid UTF-8 has one replacement character or several."""
    return re.sub("\ufffd+", "\ufffd", text)


def check_chats(name, work):
    model, tokenizer = save_chat(name, work / name)
    (work / "chat.txt").write_text("user: train the tokens of a checkpoint\n" * 200)
    recipe = work / f"{name}.yaml"
    recipe.write_text(
        f"model: {{from: {name}}}\ndata: {{train: chat.txt, tokenizer: {name}}}\n"
        f"batch: {{sequences: 2, tokens: {2 * CONTEXT}}}\nschedule: {{steps: 1}}\n"
        "optimizer: {kind: sgd, lr: 1e-99, weight_decay: 0}\nevaluate: {sequences: 2}\n")
    dtrun("launch", "--wait", recipe)
    ended = []
    for prompt in CHATS[name][2] + PROMPTS:
        given = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            whole = model.generate(given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=12,
                                   pad_token_id=0)[0].tolist()
        new = whole[given.shape[1]:]
        stops = new[-1] in model.generation_config.eos_token_id
        text = tokenizer.decode(whole[:len(whole) - stops], skip_special_tokens=False)
        text = text[len(tokenizer.decode(given[0].tolist(), skip_special_tokens=False)):]
        answer = json.loads(dtrun("generate", name, "--prompt", prompt, "--temperature", 0, "--tokens", 12, "--json"))
        ended.append(answer["ended"])
        assert shown(answer["text"]) == shown(text) and answer["tokens"] == len(new), (name, prompt, answer["text"], text)
        assert (answer["ended"] == "end_of_text") == stops, (name, prompt, answer["ended"], new)
    assert len(set(ended)) == 2, (name, "every text ends alike", ended)
    print(f"{name}: {len(ended)} chats and prompts continue alike, {ended.count('end_of_text')} of them to an end token")


# --- where texts end

def ended_alike(name, folder):
    """Checks that greedy texts of the exported folder end where those of dtrun end. Returns how many ended."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ended = 0
    for prompt in PROMPTS:
        given = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            whole = model.generate(given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=24,
                                   pad_token_id=0)[0].tolist()
        answer = json.loads(dtrun("generate", name, "--prompt", prompt, "--temperature", 0, "--tokens", 24, "--json"))
        new = len(whole) - given.shape[1]
        ended += answer["ended"] == "end_of_text"
        assert answer["tokens"] == new, (name, prompt, answer, new)
        assert (answer["ended"] == "end_of_text") == (whole[-1] == tokenizer.eos_token_id), (name, prompt, answer, whole)
    assert 0 < ended, (name, "no text ends")
    return ended


def check_ends(work):
    """Exports with dtrun's own tokenizer, of a folder without generation_config.json, and of both with another end
    token than the first."""
    (work / "short.jsonl").write_text("\n".join(json.dumps({"text": prompt + " and so on"[:i % 10]})
                                               for i, prompt in enumerate(PROMPTS * 40)))
    dtrun("data", "train-tokenizer", work / "short.jsonl", "--vocab", 300, "-o", work / "own.json")
    recipe = work / "ends.yaml"
    text = ("model: {kind: llama, layers: 2, heads: 4, embed: 64, ffn: 128}\n"
            "data: {train: short.jsonl, tokenizer: own.json}\nbatch: {sequences: 8, tokens: 64}\n"
            "schedule: {steps: 120, warmup_steps: 10}\noptimizer: {lr: 3e-3}\n")
    recipe.write_text(text)
    dtrun("launch", "--wait", recipe, "--set", "name=own")
    dtrun("export", "--to", "hf", "own", work / "own-hf")
    counts = [ended_alike("own", work / "own-hf")]
    (work / "own-hf" / "generation_config.json").unlink()
    recipe.write_text(re.sub("model: .*", "model: {from: own-hf}", text.replace("tokenizer: own.json", "tokenizer: own-hf"))
                      .replace("120", "20"))
    dtrun("launch", "--wait", recipe, "--set", "name=tuned")
    dtrun("export", "--to", "hf", "tuned", work / "tuned-hf")
    counts.append(ended_alike("tuned", work / "tuned-hf"))
    print(f"ends: {counts} of {len(PROMPTS)} greedy texts end, each where generate() ends")


def check_spellings(work):
    """Two spellings of rotary positions in one config.json: the logits equal those of transformers."""
    for number, extra in enumerate([
            {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "rope_theta": 123.0},
            {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"},
             "rope_scaling": {"rope_type": "linear", "factor": 2.0}}]):
        name = f"spelling{number}"
        save(name, transformers.LlamaConfig(**LLAMA), work / name)
        config = json.loads((work / name / "config.json").read_text())
        config.update(extra)
        (work / name / "config.json").write_text(json.dumps(config))
        model = transformers.AutoModelForCausalLM.from_pretrained(work / name).eval()
        take(name, work)
        dtrun("export", "--to", "hf", name, work / f"{name}-out")
        again = transformers.AutoModelForCausalLM.from_pretrained(work / f"{name}-out").eval()
        tokens = torch.randint(VOCAB, (2, CONTEXT - 3), generator=torch.Generator().manual_seed(4))
        (theirs, _), (ours, _) = ask(model, tokens), ask(again, tokens)
        assert torch.equal(theirs, ours), name
        ids = " ".join(map(str, tokens[0, :9].tolist()))
        text = json.loads(dtrun("generate", name, "--prompt", ids, "--temperature", 0, "--tokens", 8, "--json"))["text"]
        with torch.no_grad():
            wanted = model.generate(tokens[:1, :9], do_sample=False, max_new_tokens=8, pad_token_id=0)[0, 9:].tolist()
        assert text.split() == [str(token) for token in wanted], (name, text, wanted)
    print("two spellings of rotary positions: the same logits and greedy tokens")


def main():
    listener = Listener()
    transformers.utils.logging.get_logger("transformers").addHandler(listener)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for what in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{what}_HOME"] = folder + "/" + what.lower()
        draw = random.Random(1)
        with open(work / "ids.bin", "wb") as file:
            array.array("H", (draw.randrange(VOCAB) for _ in range(4000))).tofile(file)
        for name, config in CONFIGS.items():
            check(name, config, work, listener)
        check_searches("searched_llama", transformers.LlamaConfig(**LLAMA, tie_word_embeddings=False), work)
        check_searches("searched_gpt2", transformers.GPT2Config(n_positions=CONTEXT, n_embd=48, n_layer=3, n_head=4,
                                                                tie_word_embeddings=False), work)
        for name in CHATS:
            check_chats(name, work)
        check_ends(work)
        check_spellings(work)
    print("good")


if __name__ == "__main__":
    main()
