#!/usr/bin/env python3
"""Measures what docs/performance.md shows, and prints its table.

    tests/bench/run.py [--shakespeare FILE] [--torch PYTHON] [--runs 3] [--only NAME]

Builds the release preset first. --shakespeare: the tinyshakespeare text; without it that row is
left out. --torch: a Python that has PyTorch; without it there are no peers. Every figure is a
median of --runs runs, ours and the peer's taken in turn; a run is a whole `dtrun launch`.
"""

import argparse
import array
import datetime
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"


def dtrun(*args):
    done = subprocess.run([BIN / "dtrun", *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"dtrun {' '.join(map(str, args))}: {done.stderr}")
    return done.stdout


def launch(recipe, *sets):
    """A whole run; its final object, with the seconds from the command to the first step."""
    args = [word for one in sets for word in ("--set", one)]
    asked = time.time()
    end = json.loads(dtrun("launch", ROOT / "examples" / recipe, "--wait", "--json", *args))
    end["points"] = [json.loads(line) for line in
                     dtrun("metrics", end["run"], "--format", "jsonl").splitlines()]
    first = min(when(point["time"]) for point in end["points"])
    end["first_step_seconds"] = first - asked
    return end


def when(stamp):
    if isinstance(stamp, (int, float)):
        return stamp / 1e3
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def values(run, name):
    return [point["value"] for point in run["points"] if point["name"] == name]


def peer(args, *options):
    script = ROOT / "tests" / "bench" / "peer_torch.py"
    done = subprocess.run([args.torch, script, *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the peer failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def first_step(args):
    runs = [launch("quickstart.yaml", "schedule.steps=1", "schedule.warmup_steps=0", "log.every=1",
                   "evaluate.sequences=2")
            for _ in range(args.runs)]
    return [("`launch` to first step, quickstart", "≤ 2 s",
             f"{statistics.median(run['first_step_seconds'] for run in runs):.2f} s", "")]


def char(args):
    if not args.shakespeare:
        return []
    ours, theirs = [], []
    for seed in range(1, args.runs + 1):
        ours.append(launch("char-shakespeare.yaml", f"data.train={args.shakespeare}",
                           f"seed={seed}"))
        if args.torch:
            theirs.append(peer(args, "--mode", "train", "--data", args.shakespeare,
                               "--compile", "eager", "--seed", str(seed))["eager"])
    seconds = statistics.median(run["seconds"] for run in ours)
    slower = statistics.median(run["seconds"] for run in theirs) / seconds if theirs else 0
    return [(f"char-Shakespeare, validation loss, seeds 1–{args.runs}", "≤ 1.90", span(ours),
             span(theirs)),
            ("char-Shakespeare, 2,000 steps, whole run", "≤ 60 s", f"{seconds:.1f} s",
             f"{slower * seconds:.1f} s, {slower:.1f}× ours" if theirs else "")]


def span(runs):
    losses = sorted(run["valid_loss"] for run in runs)
    return (f"{statistics.median(losses):.4f} ({losses[0]:.4f} to {losses[-1]:.4f})"
            if losses else "")


def gpt2(args):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tokens = pathlib.Path(folder) / "random.bin"
        draw = random.Random(1)
        array.array("H", (draw.randrange(50257) for _ in range(200_000))).tofile(tokens.open("wb"))
        run = launch("gpt2-124m-cpu.yaml", f"data.train={tokens}", f"schedule.steps={args.runs + 2}",
                     "schedule.warmup_steps=1", "batch.accumulate=1", "evaluate.every=0",
                     "evaluate.sequences=2")
        speed = statistics.median(values(run, "tokens_per_second")[2:])
        flops = statistics.median(values(run, "flops_per_second")[2:])
        matmul = values(run, "matmul_flops_per_second")[0]
        beside = ""
        if args.torch:
            answer = peer(args, "--mode", "speed", "--layers", "12", "--heads", "12", "--embed",
                          "768", "--vocab", "50257", "--tokens", "1024", "--batch", "4", "--dtype",
                          "bf16", "--steps", str(args.runs), "--warmup", "2", "--compile", "eager")
            theirs = answer["eager"]["tokens_per_second"]
            beside = f"{theirs:.0f} tokens/s eager, ours {speed / theirs:.2f}×"
        rows += [("GPT-2 124M, bf16, T 1024, batch 4", "reported", f"{speed:.0f} tokens/s", beside),
                 ("the same, rate of the whole step (6N + 12LCT a token)", "reported",
                  f"{flops / 1e9:.0f} GFLOP/s", ""),
                 ("the same, matrix products alone, same run", "reported",
                  f"{matmul / 1e9:.0f} GFLOP/s, the step reaches {flops / matmul:.0%}", "")]
    return rows


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    units = [name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
             if re.search(rf"\b{name}\b", flags)]
    return f"{model}, {os.cpu_count()} cores, {units[0] if units else 'no AVX2'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shakespeare", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--torch")
    parser.add_argument("--runs", type=int, default=3)
    measures = {"first_step": first_step, "char": char, "gpt2": gpt2}
    parser.add_argument("--only", choices=measures)
    args = parser.parse_args()

    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        print(f"{datetime.date.today()}, {machine()}; medians of {args.runs} runs\n")
        print("| measure | bar | dtrun | PyTorch |\n|---|---|---|---|")
        for name, measure in measures.items():
            if args.only in (None, name):
                for row in measure(args):
                    print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
