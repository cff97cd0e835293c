#!/usr/bin/env python3
"""Adapters between dtrun and PEFT, with models and adapters that transformers and PEFT make.

    DTRUN_BIN=build/test/bin python3 tests/peers/lora.py      (PyTorch 2.x, transformers, peft)

For llama, qwen2, phi3 and gpt2: dtrun continues a folder of PEFT (lora.from) by one step of SGD over four sequences, on one
rank, with accumulation, with ddp, fsdp and tensor; loss and gradients (the difference of the adapters) equal PEFT's to
1e-5. Then the exported folder is loaded by PEFT, and the merged one by transformers: their logits equal to 1e-5, and
dtrun's scores those of PEFT. Phi-3's fused matrices get an adapter for each part: the gradient of PEFT's A is the sum of
theirs.
"""

import array
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import peft
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

VOCAB, T, B = 61, 32, 4
RATE = 100.0  # so large that an adapter's difference has its gradient with all digits
DTRUN = str(pathlib.Path(os.environ.get("DTRUN_BIN", "build/test/bin")).resolve() / "dtrun")
ENDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, **ENDS)  # fmt: skip
MODELS = {
    "llama": (lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(tie_word_embeddings=False, **LLAMA)),
              ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
    "qwen2": (lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(tie_word_embeddings=True, **LLAMA)),
              ["q_proj", "v_proj"]),
    "phi3": (lambda: transformers.Phi3ForCausalLM(transformers.Phi3Config(sliding_window=None, **LLAMA)),
             ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
    "gpt2": (lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=T, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, **ENDS)), ["c_attn", "c_proj", "c_fc"]),
}  # fmt: skip
DIVISIONS = {
    "one rank": {},
    "accumulated": {"batch.sequences": 1, "batch.accumulate": 4},
    "ddp": {"ranks": 2, "batch.sequences": 1, "batch.accumulate": 2, "strategy": "ddp"},
    "fsdp": {"ranks": 4, "batch.sequences": 1, "strategy": "fsdp"},
    "tensor": {"ranks": 2, "tensor": 2, "strategy": "ddp"},
    "tensor and fsdp": {"ranks": 4, "tensor": 2, "batch.sequences": 2, "strategy": "fsdp"},
}


def call(*words):
    done = subprocess.run([DTRUN, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: dtrun {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def want(what, value, bound):
    print(f"{what}: {value:.2e} (bound {bound:.0e})", flush=True)
    if not value <= bound:
        sys.exit(f"FAILED: {what}: {value}")


def recipe(folder, name):
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nthreads: 1\nranks: 1\nlora: {{from: {name}-adapter}}\nmodel: {{from: {name}-base}}\n"
        f"data: {{train: ids.bin, tokens: nanogpt, split: 0}}\nbatch: {{sequences: {B}, tokens: {T}}}\n"
        f"optimizer: {{kind: sgd, momentum: 0, lr: {RATE}, weight_decay: 0}}\nclip: 0\n"
        "schedule: {kind: constant, steps: 1, warmup_steps: 0}\nevaluate: {every: 0}\n")


def first_step(model, ids, ours):
    """Returns the sequences of the first step and their loss: an epoch begins at an offset that follows from the seed."""
    found = []
    for shift in range(T):
        rows = torch.tensor(ids[shift : shift + B * T]).view(B, T)
        targets = torch.tensor(ids[shift + 1 : shift + 1 + B * T]).view(B, T)
        loss = F.cross_entropy(model(input_ids=rows).logits.flatten(0, 1), targets.flatten())
        found.append((abs(loss.item() - ours), rows, loss))
    return min(found, key=lambda one: one[0])[1:]


def folded(after, before):
    """The adapters of a fused matrix's parts as one of the rank before: their A below each other, their B on a diagonal."""
    if after.shape == before.shape:
        return after
    if after.shape[0] == before.shape[0]:
        return after.view(before.shape[0], -1, before.shape[1]).sum(1)
    return before + (after.view(-1, *before.shape) - before).sum(0)


def check(folder, name, ids):
    make, modules = MODELS[name]
    torch.manual_seed(3)
    model = make()
    model.save_pretrained(folder / f"{name}-base")
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=modules, lora_dropout=0.0, fan_in_fan_out=name == "gpt2",
                             task_type="CAUSAL_LM")  # fmt: skip
    model = peft.get_peft_model(model, config)
    with torch.no_grad():
        for key, value in model.named_parameters():
            if "lora_B" in key:
                value.normal_(0, 0.1)
    model.save_pretrained(folder / f"{name}-adapter")
    recipe(folder, name)

    rows, loss = first_step(model, ids, json.loads(call("launch", folder / f"{name}.yaml", "--wait", "--json"))["loss"])
    loss.backward()
    gradients = {key.replace(".default", ""): value.grad for key, value in model.named_parameters() if value.requires_grad}
    before = load_file(folder / f"{name}-adapter" / "adapter_model.safetensors")
    for division, sets in DIVISIONS.items():
        words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        run = json.loads(call("launch", folder / f"{name}.yaml", "--wait", "--json", *words))
        out = folder / f"{name}-{division.replace(' ', '-')}"
        call("export", run["run"], "--to", "peft", out)
        after = {key: folded(value, before[key]) for key, value in load_file(out / "adapter_model.safetensors").items()}
        assert after.keys() == before.keys() == gradients.keys(), after.keys() ^ gradients.keys()
        want(f"{name}, {division}: loss", abs(run["loss"] - loss.item()), 1e-5)
        worst = max(((before[key] - after[key]) / RATE - gradients[key]).norm() / gradients[key].norm() for key in after)
        want(f"{name}, {division}: gradients", worst.item(), 1e-5)

    run = json.loads(call("launch", folder / f"{name}.yaml", "--wait", "--json", "--set", "optimizer.lr=0.1"))
    out = folder / f"{name}-tuned"
    call("export", run["run"], "--to", "peft", out)
    loaded = peft.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(folder / f"{name}-base"), out).eval()
    call("export", run["run"], "--to", "hf", "--merge", folder / f"{name}-merged")
    merged = transformers.AutoModelForCausalLM.from_pretrained(folder / f"{name}-merged").eval()
    with torch.no_grad():
        logits = loaded(input_ids=rows).logits
        want(f"{name}: merged logits", (merged(input_ids=rows).logits - logits).abs().max().item(), 1e-5)
        line = ids[:T]
        wanted = -F.cross_entropy(loaded(input_ids=torch.tensor([line])).logits[0, :-1], torch.tensor(line[1:]),
                                  reduction="sum").item()  # fmt: skip
    (folder / "line.txt").write_text(" ".join(map(str, line)) + "\n")
    said = json.loads(call("score", run["run"], "--input", folder / "line.txt", "--json"))
    numbers = [float(number) for number in re.findall(r"-\d+\.\d+", json.dumps(said))]
    want(f"{name}: score", min(abs(number - wanted) / abs(wanted) for number in numbers), 1e-5)


def main():
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for part in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{part}_HOME"] = str(folder / part.lower())
        draw = random.Random(1)
        ids = [draw.randrange(VOCAB) for _ in range(B * T + T)]
        array.array("H", ids).tofile((folder / "ids.bin").open("wb"))
        for name in MODELS:
            check(folder, name, ids)
    print("good")


main()
