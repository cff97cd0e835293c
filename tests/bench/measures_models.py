"""Measures models other than GPT-2, compared with transformers: training of Llama and translation, greedy decoding, and
translation with beam search. Rows are as in measures.py: (measure, bar, dtrun, PyTorch, runs), with the peer in the
faster of eager and compiled.
"""

import array
import os
import pathlib
import random
import statistics
import time

from measures import megabytes, ways
from runs import Failed, launch, output, peer, values

SMOL = {"layers": 30, "heads": 9, "kv_heads": 3, "embed": 576, "ffn": 1536, "vocab": 49152, "tokens": 1024, "batch": 4}
SMALL = {"layers": 2, "heads": 4, "kv_heads": 2, "embed": 64, "ffn": 128, "vocab": 512, "tokens": 64, "batch": 4}
RANK = 16
IWSLT = {"layers": 6, "heads": 4, "embed": 512, "ffn": 1024, "vocab": 10000, "batch": 4096}
SMALL_PAIRS = {"layers": 2, "heads": 4, "embed": 64, "ffn": 128, "vocab": 200, "batch": 512}
RECIPE = """name: {name}
model: {{{model}}}
precision: {dtype}
data: {{{data}}}
batch: {{{batch}}}
optimizer: {{kind: adamw, lr: 1e-4}}
schedule: {{steps: {steps}, warmup_steps: 0}}
evaluate: {{every: 0}}
log: 1
"""


def recipe(name, **fields):
    path = pathlib.Path(os.environ["XDG_STATE_HOME"]) / f"{name}.yaml"
    path.write_text(RECIPE.format(name=name, **fields))
    return path


def best(settings, **options):
    """Returns the peer's fastest mode of those that run, and the speed of each."""
    tried = {}
    for way in ("eager", "compile")[: 1 if settings.quick else 2]:
        try:
            tried[options["dtype"], way] = peer(settings.torch, "peer_models.py", compile=way, **options)
        except Failed as why:
            print(f"{options['mode']} {way}: {why}", flush=True)
    if not tried:
        raise Failed("no way of the peer runs")
    return max(tried.values(), key=lambda one: one["tokens_per_second"]), ways(tried)


def llama_recipe(settings, dtype, steps):
    size = SMALL if settings.quick else SMOL
    draw = random.Random(1)
    path = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "llama.bin"
    array.array("H", (draw.randrange(size["vocab"]) for _ in range(100_000))).tofile(path.open("wb"))
    model = "kind: llama, " + ", ".join(f"{key}: {size[key]}" for key in
                                        ("layers", "heads", "kv_heads", "embed", "ffn", "vocab"))
    return size, recipe("llama", dtype=dtype, model=model + ", rope_theta: 100000, tied: true", steps=steps,
                        data=f"train: {path}, split: 0.1",
                        batch=f"sequences: {size['batch']}, tokens: {size['tokens']}")


def llama(settings, dtype, bar):
    size, path = llama_recipe(settings, dtype, 1 + settings.measured_steps)
    ours = [launch(path) for _ in range(settings.rounds)]
    speed = statistics.median(value for run in ours for value in values(run, "tokens_per_second", 1))
    held = statistics.median(run["peak_bytes"] for run in ours)
    name = f"SmolLM2-135M's shape, {dtype}, T {size['tokens']}, batch {size['batch']}"
    beside = memory = ""
    if settings.torch:
        theirs, all_ways = best(settings, mode="llama", dtype=dtype, **size)
        beside = f"ours {speed / theirs['tokens_per_second']:.2f}×; {all_ways}"
        memory = f"{megabytes(theirs['peak_bytes'])}, ours {held / theirs['peak_bytes']:.2f} of it"
    return [(name, bar, f"{speed:.0f} tokens/s", beside, len(ours)),
            (f"{name}: peak resident memory", "≤ 0.8 of PyTorch", megabytes(held), memory, len(ours))]


def lora(settings, dtype, bar):
    """An adapter of rank 16 next to every matrix of the same model; the peer is PEFT."""
    size, path = llama_recipe(settings, dtype, 1)
    base = launch(path, keep=True, checkpoint__every=1)["run"]
    path = recipe("lora", dtype=dtype, model=f"from: 'run:{base}'", steps=1 + settings.measured_steps,
                  data=f"train: {path.with_name('llama.bin')}, split: 0.1",
                  batch=f"sequences: {size['batch']}, tokens: {size['tokens']}")
    ours = [launch(path, lora__rank=RANK) for _ in range(settings.rounds)]
    speed = statistics.median(value for run in ours for value in values(run, "tokens_per_second", 1))
    held = statistics.median(run["peak_bytes"] for run in ours)
    name = f"LoRA of rank {RANK}, SmolLM2-135M's shape, {dtype}, T {size['tokens']}, batch {size['batch']}"
    beside = memory = ""
    if settings.torch:
        theirs, all_ways = best(settings, mode="lora", dtype=dtype, rank=RANK, **size)
        beside = f"ours {speed / theirs['tokens_per_second']:.2f}×; {all_ways}"
        memory = f"{megabytes(theirs['peak_bytes'])}, ours {held / theirs['peak_bytes']:.2f} of it"
    return [(name, bar, f"{speed:.0f} tokens/s", beside, len(ours)),
            (f"{name}: peak resident memory", "≤ 0.7 of PEFT", megabytes(held), memory, len(ours))]


def corpus(folder, vocab):
    """Writes two sides of random words, with the lengths of peer_models.py; each side's dictionary has all words."""
    draw, words = random.Random(1), random.Random(3)
    lengths = [max(3, min(100, round(draw.lognormvariate(3.0, 0.5)))) for _ in range(6000)]
    for side in ("from", "to"):
        with open(folder / f"train.{side}", "w", encoding="ascii") as file:
            file.writelines(" ".join(f"w{words.randrange(vocab)}" for _ in range(length)) + "\n" for length in lengths)
        with open(folder / f"valid.{side}", "w", encoding="ascii") as file:
            file.write("w1 w2 w3\n" * 10)
        with open(folder / f"dict.{side}.txt", "w", encoding="ascii") as file:
            file.writelines(f"w{i} 1\n" for i in range(vocab))


def translation(settings, dtype="fp32"):
    size = SMALL_PAIRS if settings.quick else IWSLT
    folder = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "pairs"
    folder.mkdir(exist_ok=True)
    corpus(folder, size["vocab"] - 4)
    model = ", ".join(f"{key}: {size[key]}" for key in ("layers", "heads", "embed", "ffn"))
    steps = 4 if settings.quick else 12
    path = recipe("translation", dtype=dtype, steps=steps, model=f"kind: transformer, {model}, label_smoothing: 0.1",
                  data=f"train: {folder}/train, validation: {folder}/valid, source: from, target: to, tokenizer: {folder}",
                  batch=f"max_tokens: {size['batch']}, tokens: 128")
    ours = [launch(path) for _ in range(settings.rounds)]
    speed = statistics.median(statistics.mean(values(run, "tokens_per_second", 2)) for run in ours)
    beside = ""
    if settings.torch:
        theirs, all_ways = best(settings, mode="translation", dtype=dtype, steps=steps - 2, warmup=2, **size)
        beside = f"ours {speed / theirs['tokens_per_second']:.2f}×; {all_ways}"
    return [(f"transformer_iwslt_de_en, {dtype}, batches of {size['batch']:,} tokens", "≥ 1.5×",
             f"{speed:.0f} target tokens/s", beside, len(ours))]


def weights(size):
    """Number of weights that the products of a token read."""
    C, width = size["embed"], size["embed"] // size["heads"] * size["kv_heads"]
    return size["vocab"] * C + size["layers"] * (2 * C * C + 2 * C * width + 3 * C * size["ffn"])


def decode(settings, dtype, batch, bar):
    """Texts that are generated together, each from a prompt of four tokens."""
    size, path = llama_recipe(settings, dtype, 1)
    run = launch(path, keep=True, checkpoint__every=1)["run"]
    prompts = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "prompts"
    draw = random.Random(1)
    prompts.write_text("".join(" ".join(str(draw.randrange(size["vocab"])) for _ in range(4)) + "\n"
                               for _ in range(batch)))
    begin = ["--prompt-file", prompts] if batch == 1 else ["--input", prompts, "--batch", batch]
    long = 24 if settings.quick else 72

    def seconds(count):
        begun = time.monotonic()
        output("dtrun", "generate", run, *begin, "--temperature", 0, "--tokens", count, "--past-end",
               "--precision", dtype)
        return time.monotonic() - begun

    seconds(8)
    # The start of a process takes longer than the tokens, and varies: the middle of several of each
    both = [(seconds(8), seconds(long)) for _ in range(1 if settings.quick else 4 + settings.rounds)]
    short, all_tokens = (statistics.median(one) for one in zip(*both))
    speed = batch * (long - 8) / (all_tokens - short)
    share, beside = "", ""
    if settings.torch:
        theirs, all_ways = best(settings, mode="decode", dtype=dtype, **{**size, "tokens": long, "batch": batch})
        beside = f"ours {speed / theirs['tokens_per_second']:.2f}×; {all_ways}"
        read = peer(settings.torch, "peer_models.py", mode="read", compile="eager")["tokens_per_second"]
        used = speed / batch * weights(size) * (2 if dtype == "bf16" else 4)
        share = f"; {used / 1e9:.1f} of {read / 1e9:.1f} GB/s that two threads read"
    return [(f"greedy decoding, SmolLM2-135M's shape, {dtype}, batch {batch}", bar, f"{speed:.1f} tokens/s{share}",
             beside, settings.rounds)]


def step_weights(size):
    """Number of weights that the products of a decoder's step read: self attention, queries and output of cross
    attention, perceptron, head."""
    C = size["embed"]
    return size["vocab"] * C + size["layers"] * (6 * C * C + 2 * C * size["ffn"])


def beam(settings, dtype="fp32", beams=4, batch=16):
    """Translates random sources of `tokens` tokens with random weights; --past-end forces the same length for each
    translation."""
    size = {**(SMALL_PAIRS if settings.quick else IWSLT), "tokens": 25, "batch": batch}
    folder = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "beam"
    folder.mkdir(exist_ok=True)
    corpus(folder, size["vocab"] - 4)
    model = ", ".join(f"{key}: {size[key]}" for key in ("layers", "heads", "embed", "ffn"))
    path = recipe("beam", dtype=dtype, steps=1, model=f"kind: transformer, {model}, activation: relu",
                  data=f"train: {folder}/train, validation: {folder}/valid, source: from, target: to, "
                       f"tokenizer: {folder}, too_long: drop",
                  batch=f"max_tokens: 512, tokens: {size['tokens']}")
    run = launch(path, keep=True, checkpoint__every=1)["run"]
    draw = random.Random(1)
    few, many = (batch, 2 * batch) if settings.quick else (4 * batch, 12 * batch)

    def translate(lines):
        source = folder / "lines"
        source.write_text("".join(" ".join(f"w{draw.randrange(size['vocab'] - 4)}" for _ in range(size["tokens"] - 1))
                                  + "\n" for _ in range(lines)))
        begun = time.monotonic()
        written = output("dtrun", "generate", run, "--input", source, "--batch", batch, "--beam", beams, "--past-end",
                         "--precision", dtype)
        if len(written.split()) < 0.99 * lines * (size["tokens"] - 1):
            raise Failed("translations ended early")
        return time.monotonic() - begun

    translate(batch)
    lines = statistics.median((many - few) / (translate(many) - translate(few)) for _ in range(settings.rounds))
    speed = lines * size["tokens"]
    floor, beside = "", ""
    if settings.torch:
        theirs, all_ways = best(settings, mode="beam", dtype=dtype, beams=beams, warmup=2, steps=5, **size)
        beside = f"ours {speed / theirs['tokens_per_second']:.2f}×; {all_ways}"
        read = peer(settings.torch, "peer_models.py", mode="read", compile="eager")["tokens_per_second"]
        steps, held = speed / batch, step_weights(size)
        floor = (f"; a step of the decoder: {1e3 / steps:.1f} ms, of which reading {4 * held / 1e6:.0f} MB takes "
                 f"{4e3 * held / read:.1f} ms at {read / 1e9:.1f} GB/s; its products {2 * held * beams * batch / 1e9:.2f} "
                 f"GFLOP, {2 * held * beams * speed / 1e9:.0f} GFLOP/s")
    return [(f"translation, transformer_iwslt_de_en, {dtype}, beam {beams}, batch {batch}, random weights, "
             f"{size['tokens']} tokens on both sides (forced)", "≥ 2×",
             f"{speed:.0f} tokens/s, {lines:.1f} sentences/s{floor}", beside, settings.rounds)]


MEASURES = {"llama_bf16": lambda settings: llama(settings, "bf16", "≥ 1.5×"),
            "llama_fp32": lambda settings: llama(settings, "fp32", "≥ 1.2×"),
            "lora_bf16": lambda settings: lora(settings, "bf16", "≥ 1.5×"),
            "translation": translation,
            "beam": beam,
            "decode_bf16": lambda settings: decode(settings, "bf16", 1, "≥ 2×"),
            "decode_fp32": lambda settings: decode(settings, "fp32", 1, ""),
            "decode_bf16_16": lambda settings: decode(settings, "bf16", 16, "≥ 2×"),
            "decode_fp32_16": lambda settings: decode(settings, "fp32", 16, "")}
