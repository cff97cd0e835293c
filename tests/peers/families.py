#!/usr/bin/env python3
"""The models of kind llama (recipes/architecture/families.c) against transformers, in random configurations.

    DTRUN_BIN=build/test/bin python3 tests/peers/families.py [--count 20] [--quick] [FAMILY...]
    (PyTorch 2.x, transformers 5, peft)

For each configuration: one step of SGD over four sequences: loss and gradients (the difference of the weights) equal
those of transformers to 1e-5; a score, too; the same greedy text; and a run that does not change the weights exports
them bit-identically, with a config.json that gives the same logits. For every fifth configuration also with ddp, fsdp,
tensor, each recomputation, and documents, whose losses and gradients equal those of one rank; and an adapter for PEFT,
whose logits equal those of the merged export.
"""

import argparse
import array
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import peft
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

VOCAB, T, B = 61, 32, 4
RATE = 64.0  # so large that the difference of the weights has their gradient with all digits; a power of two
DTRUN = str(pathlib.Path(os.environ.get("DTRUN_BIN", "build/test/bin")).resolve() / "dtrun")
ENDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
DIVISIONS = {
    "ddp": {"ranks": 2, "batch.sequences": 1, "batch.accumulate": 2, "strategy": "ddp"},
    "fsdp": {"ranks": 4, "batch.sequences": 1, "strategy": "fsdp"},
    "tensor": {"ranks": 2, "tensor": 2, "strategy": "ddp"},
    "tensor and fsdp": {"ranks": 4, "tensor": 2, "batch.sequences": 2, "strategy": "fsdp"},
    "selective": {"activation_checkpointing": "selective"},
    "full": {"activation_checkpointing": "full"},
    "full, tensor": {"activation_checkpointing": "full", "ranks": 2, "tensor": 2},
}  # fmt: skip


def rope(draw, dim, types, theta, **more):
    """Rotary positions of a random type, for sequences around the original length."""
    kind = draw.choice(types)
    out = {"rope_type": kind, "rope_theta": theta, **more}
    if kind != "default" and kind != "longrope":
        out["factor"] = draw.choice([2.0, 4.5])
    if kind in ("llama3", "yarn"):
        out["original_max_position_embeddings"] = draw.choice([16, 24])
    if kind == "llama3":
        out |= {"low_freq_factor": 1.0, "high_freq_factor": draw.choice([2.0, 4.0])}
    if kind == "yarn":
        out |= draw.choice([{}, {"attention_factor": 1.25}, {"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False},
                            {"mscale": 0.7, "mscale_all_dim": 1.1}])
    if kind == "longrope":
        half = int(dim * more.get("partial_rotary_factor", 1.0)) // 2
        out |= {"short_factor": [round(1 + draw.random(), 3) for _ in range(half)],
                "long_factor": [round(1 + 3 * draw.random(), 3) for _ in range(half)],
                "original_max_position_embeddings": draw.choice([16, 64])} | draw.choice([{}, {"factor": 4.0}])
    return out


TYPES = ["default", "linear", "llama3", "yarn", "longrope", "dynamic"]


def sizes(draw, head_dim=True):
    heads = draw.choice([2, 4])
    dim = draw.choice([8, 12, 16])
    out = dict(vocab_size=VOCAB, hidden_size=heads * dim, intermediate_size=draw.choice([36, 48]),
               num_hidden_layers=draw.choice([2, 3]), num_attention_heads=heads,
               num_key_value_heads=draw.choice([1, 2, heads]), max_position_embeddings=64,
               rms_norm_eps=draw.choice([1e-5, 1e-6]), attention_dropout=0.0, **ENDS)  # fmt: skip
    if head_dim and draw.random() < 0.5:
        out["head_dim"] = dim = draw.choice([8, 16])
    return out, dim


def llama(draw):
    out, dim = sizes(draw)
    out |= {"tie_word_embeddings": draw.random() < 0.5, "attention_bias": draw.random() < 0.3,
            "mlp_bias": draw.random() < 0.3, "hidden_act": draw.choice(["silu", "silu", "gelu"])}
    if draw.random() < 0.3:
        out["max_position_embeddings"] = 16
    return transformers.LlamaConfig(**out, rope_parameters=rope(draw, dim, TYPES, 1e4))


def mistral(draw):
    out, dim = sizes(draw)
    return transformers.MistralConfig(**out, sliding_window=draw.choice([None, 5, 9, 40]),
                                      rope_parameters=rope(draw, dim, TYPES, 1e4))


def qwen(config, draw, **more):
    out, dim = sizes(draw)
    out.setdefault("head_dim", dim)
    if draw.random() < 0.5:
        more |= {"use_sliding_window": True, "sliding_window": draw.choice([4, 11]),
                 "max_window_layers": draw.choice([0, 1])}
    return config(**out, **more, tie_word_embeddings=draw.random() < 0.5,
                  rope_parameters=rope(draw, dim, TYPES, 1e4))


def qwen2(draw):
    return qwen(transformers.Qwen2Config, draw)


def qwen3(draw):
    return qwen(transformers.Qwen3Config, draw, attention_bias=draw.random() < 0.6)


def phi3(draw):
    out, dim = sizes(draw, head_dim=False)
    share = draw.choice([1.0, 0.5, 0.75])
    if int(dim * share) % 2:
        share = 0.5
    kind = rope(draw, dim, ["default", "longrope"], 1e4, partial_rotary_factor=share)
    original = kind.pop("original_max_position_embeddings", 64)
    return transformers.Phi3Config(**out, rope_parameters=kind, original_max_position_embeddings=original,
                                   sliding_window=draw.choice([None, 7]), resid_pdrop=0.0, embd_pdrop=0.0)


def granite(draw):
    out, dim = sizes(draw)
    return transformers.GraniteConfig(
        **out, rope_parameters=rope(draw, dim, TYPES, 1e4), attention_bias=draw.random() < 0.3,
        mlp_bias=draw.random() < 0.3, embedding_multiplier=draw.choice([1.0, 3.5, 12.0]),
        residual_multiplier=draw.choice([1.0, 0.22]), attention_multiplier=draw.choice([0.1, 0.0625, 1.0]),
        logits_scaling=draw.choice([1.0, 8.0]), tie_word_embeddings=draw.random() < 0.5)


def olmo2(draw):
    out, dim = sizes(draw)
    return transformers.Olmo2Config(**out, rope_parameters=rope(draw, dim, TYPES, 1e4),
                                    attention_bias=draw.random() < 0.3, tie_word_embeddings=draw.random() < 0.5)


def olmo3(draw):
    out, dim = sizes(draw)
    out["num_hidden_layers"] = draw.choice([2, 5])
    layers = draw.choice([None, ["full_attention", "sliding_attention"] * 3])
    return transformers.Olmo3Config(
        **out, sliding_window=draw.choice([3, 8, 40]), layer_types=layers and layers[:out["num_hidden_layers"]],
        attention_bias=draw.random() < 0.3, tie_word_embeddings=draw.random() < 0.5, rope_parameters={
            "full_attention": rope(draw, dim, ["default", "linear", "yarn", "llama3"], 1e4),
            "sliding_attention": {"rope_type": "default", "rope_theta": draw.choice([1e4, 500.0])}})


def smollm3(draw):
    out, dim = sizes(draw)
    out["num_hidden_layers"] = draw.choice([3, 4, 5])
    more = draw.choice([{}, {"no_rope_layer_interval": 2}, {"no_rope_layers": [0, 1, 1, 0, 1]},
                        {"use_sliding_window": True, "sliding_window": 6, "no_rope_layer_interval": 2}])
    if "no_rope_layers" in more:
        more = {"no_rope_layers": more["no_rope_layers"][:out["num_hidden_layers"]]}
    return transformers.SmolLM3Config(**out, **more, rope_parameters=rope(draw, dim, TYPES, 1e5),
                                      attention_bias=draw.random() < 0.3, mlp_bias=draw.random() < 0.3,
                                      tie_word_embeddings=draw.random() < 0.5)


def stablelm(draw):
    out, dim = sizes(draw, head_dim=False)
    out["layer_norm_eps"] = out.pop("rms_norm_eps")
    return transformers.StableLmConfig(
        **out, use_qkv_bias=draw.random() < 0.5, hidden_dropout=0.0,
        rope_parameters=rope(draw, dim, TYPES, 1e4, partial_rotary_factor=draw.choice([0.5, 1.0])))


def gemma1(draw):
    out, dim = sizes(draw, head_dim=False)
    out["head_dim"] = draw.choice([8, 16])
    return transformers.GemmaConfig(**out, rope_parameters=rope(draw, out["head_dim"], TYPES, 1e4),
                                    hidden_act=draw.choice(["gelu", "gelu_pytorch_tanh"]), attention_bias=draw.random() < 0.3)


def gemma(draw):
    out, dim = sizes(draw, head_dim=False)
    out["head_dim"] = draw.choice([8, 16, 32])
    return out | {"query_pre_attn_scalar": draw.choice([16, 24, 256]), "sliding_window": draw.choice([3, 8, 40]),
                  "hidden_activation": "gelu_pytorch_tanh", "attention_bias": draw.random() < 0.3}


def gemma2(draw):
    out = gemma(draw)
    return transformers.Gemma2Config(
        **out, rope_parameters=rope(draw, out["head_dim"], TYPES, 1e4),
        attn_logit_softcapping=draw.choice([None, 2.0, 50.0]), final_logit_softcapping=draw.choice([None, 3.0, 30.0]))


def gemma3(draw):
    out = gemma(draw)
    full = rope(draw, out["head_dim"], ["default", "linear", "yarn", "llama3"], 1e6)
    layers = draw.choice([None, ["sliding_attention", "full_attention"] * 2])
    return transformers.Gemma3TextConfig(
        **out, layer_types=layers and layers[:out["num_hidden_layers"]],
        final_logit_softcapping=draw.choice([None, None, 4.0]),
        rope_parameters={"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}})


FAMILIES = {make.__name__: make for make in (llama, mistral, qwen2, qwen3, phi3, granite, olmo2, olmo3, smollm3, stablelm, gemma1, gemma2, gemma3)}


def call(*words):
    done = subprocess.run([DTRUN, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: dtrun {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


class Worst:
    """The largest deviation of each kind, with the configuration that has it."""

    def __init__(self):
        self.of = {}

    def want(self, what, name, value, bound=1e-5):
        if not value <= bound:
            sys.exit(f"FAILED: {name}: {what}: {value:.2e} is over {bound:.0e}")
        if value > self.of.get(what, -1):
            self.of[what] = value


def save(config, folder, seed):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.15 if parameter.ndim > 1 else 0.3))
    model.save_pretrained(folder)
    return model


def recipe(folder, name):
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nthreads: 1\nranks: 1\nmodel: {{from: {name}}}\n"
        f"data: {{train: ids.bin, tokens: nanogpt, split: 0}}\nbatch: {{sequences: {B}, tokens: {T}}}\n"
        f"optimizer: {{kind: sgd, momentum: 0, lr: {RATE}, weight_decay: 0}}\nclip: 0\n"
        "schedule: {kind: constant, steps: 1, warmup_steps: 0}\nevaluate: {every: 0}\n")


def launch(folder, name, sets=()):
    words = [word for key, value in dict(sets).items() for word in ("--set", f"{key}={value}")]
    return json.loads(call("launch", folder / f"{name}.yaml", "--wait", "--json", *words))


def batch(ids, shift):
    return torch.tensor(ids[shift : shift + B * T]).view(B, T), torch.tensor(ids[shift + 1 : shift + 1 + B * T]).view(B, T)


def loss_of(model, rows, targets):
    return F.cross_entropy(model(input_ids=rows).logits.flatten(0, 1), targets.flatten())


def first_step(model, ids, ours, known=[]):
    """Returns the sequences of the first step and their loss. An epoch begins at an offset that follows from the seed: the
    first call finds it."""
    if not known:
        with torch.no_grad():
            known.append(min(range(T), key=lambda shift: abs(loss_of(model, *batch(ids, shift)).item() - ours)))
    rows, targets = batch(ids, known[0])
    return rows, loss_of(model, rows, targets)


def tensors(folder):
    return load_file(folder / "model.safetensors")


def gradients(folder, run, before, out):
    call("export", run["run"], "--to", "hf", folder / out)
    after = tensors(folder / out)
    assert after.keys() == before.keys(), after.keys() ^ before.keys()
    return {key: (before[key] - after[key]) / RATE for key in after}


def apart(one, other):
    """Returns the largest difference, relative to the gradient of the whole model where a tensor's is near 0."""
    whole = max(value.norm() / value.numel() ** 0.5 for value in other.values())
    return max(((one[key] - other[key]).norm() / (other[key].norm() + 1e-2 * whole * other[key].numel() ** 0.5)).item()
               for key in other)


def check(folder, family, number, ids, worst, divide):
    draw = random.Random(f"{family} {number}")
    name = f"{family}-{number}"
    config = FAMILIES[family](draw)
    model = save(config, folder / name, number)
    before = tensors(folder / name)
    recipe(folder, name)
    run = launch(folder, name)
    rows, loss = first_step(model, ids, run["loss"])
    worst.want("loss", name, abs(run["loss"] - loss.item()))
    loss.backward()
    ours = gradients(folder, run, before, f"{name}-one")
    theirs = {key: value.grad for key, value in model.named_parameters() if key in before}
    worst.want("gradients", name, apart(ours, theirs))
    for division, sets in DIVISIONS.items() if divide else ():
        if "tensor" in division and config.num_attention_heads % 2:
            continue
        other = launch(folder, name, sets)
        worst.want(f"loss, {division}", name, abs(other["loss"] - run["loss"]))
        worst.want(f"gradients, {division}", name,
                   apart(gradients(folder, other, before, f"{name}-{division.replace(' ', '-').replace(',', '')}"), ours))

    if divide:
        check_documents(folder, name, worst)
        check_adapter(folder, name, rows, worst)

    still = launch(folder, name, {"optimizer.lr": 1e-40})
    call("export", still["run"], "--to", "hf", folder / f"{name}-out")
    after = tensors(folder / f"{name}-out")
    assert before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before), f"{name}: export"
    again = fresh(folder / f"{name}-out")
    assert type(again) is type(model), (type(again), type(model))
    with torch.no_grad():
        logits = model(input_ids=rows).logits
        assert torch.equal(again(input_ids=rows).logits, logits), f"{name}: logits of the export"
        line = ids[: T - 1]
        wanted = -F.cross_entropy(fresh(folder / name)(input_ids=torch.tensor([line[:-1]])).logits[0], torch.tensor(line[1:]),
                                  reduction="sum").item()  # fmt: skip
    (folder / "line.txt").write_text(" ".join(map(str, line)) + "\n")
    said = json.loads(call("score", still["run"], "--input", folder / "line.txt", "--json"))["lines"][0]
    worst.want("score", name, abs(said["log_likelihood"] - wanted) / abs(wanted))
    length = 9
    text = json.loads(call("generate", still["run"], "--prompt", " ".join(map(str, ids[:length])), "--temperature", 0,
                           "--tokens", T - length, "--json"))["text"]  # fmt: skip
    if not recomputes(config):
        with torch.no_grad():
            found = fresh(folder / name).generate(torch.tensor([ids[:length]]), do_sample=False, max_new_tokens=T - length,
                                   pad_token_id=0)[0, length:].tolist()
        assert text.split() == [str(token) for token in found], f"{name}: {text} is not {found}"
    for out in folder.glob(f"{name}*"):
        subprocess.run(["rm", "-r", "--", out], check=True)


def check_documents(folder, name, worst):
    """Documents that end with token 7, divided among ranks: as in one process."""
    apart_ = {"data.cross_documents": "false", "data.end_of_text": 7}
    run = launch(folder, name, apart_)
    before = tensors(folder / name)
    ours = gradients(folder, run, before, f"{name}-documents")
    for division in ("fsdp", "tensor", "full"):
        other = launch(folder, name, apart_ | DIVISIONS[division])
        worst.want(f"loss, documents, {division}", name, abs(other["loss"] - run["loss"]))
        worst.want(f"gradients, documents, {division}", name,
                   apart(gradients(folder, other, before, f"{name}-documents-{division}"), ours))


def check_adapter(folder, name, rows, worst):
    """An adapter, trained for a step: for PEFT, and merged."""
    run = launch(folder, name, {"lora": 2, "optimizer.lr": 0.5, "schedule.steps": 3})
    call("export", run["run"], "--to", "peft", folder / f"{name}-peft")
    call("export", run["run"], "--to", "hf", "--merge", folder / f"{name}-merged")
    loaded = peft.PeftModel.from_pretrained(fresh(folder / name), folder / f"{name}-peft").eval()
    with torch.no_grad():
        logits = loaded(input_ids=rows).logits
        plain = fresh(folder / name)(input_ids=rows).logits
        assert (logits - plain).abs().max() > 1e-3, f"{name}: the adapter does nothing"
        merged = fresh(folder / f"{name}-merged")(input_ids=rows).logits
    worst.want("logits of the adapter, merged", name, ((merged - logits).abs() / (1 + logits.abs())).max().item())


def fresh(folder):
    """A model without a past: dynamic scaling keeps the angles of the longest sequence that it has seen."""
    return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()


def recomputes(config):
    """Whether the text crosses the length from which Phi-3 has other angles: generate() computes all keys again then,
    dtrun keeps them, as transformers does for other models."""
    kind = config.to_dict().get("rope_parameters", {})
    return config.model_type == "phi3" and kind["rope_type"] == "longrope" and config.original_max_position_embeddings < T


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--count", type=int, default=20)
    words.add_argument("--first", type=int, default=0)
    words.add_argument("--quick", action="store_true", help="no other divisions")
    words.add_argument("families", nargs="*", default=list(FAMILIES))
    asked = words.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for part in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{part}_HOME"] = str(folder / part.lower())
        draw = random.Random(1)
        ids = [draw.randrange(VOCAB) for _ in range(B * T + T)]
        with open(folder / "ids.bin", "wb") as file:
            array.array("H", ids).tofile(file)
        for family in asked.families:
            worst = Worst()
            for number in range(asked.first, asked.first + asked.count):
                check(folder, family, number, ids, worst, not asked.quick and number % 5 == 0)
            print(f"{family}, {asked.count} configurations: exports bit-identical, the same greedy texts; "
                  + ", ".join(f"{what} {value:.1e}" for what, value in worst.of.items()), flush=True)


if __name__ == "__main__":
    main()
