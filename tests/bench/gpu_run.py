#!/usr/bin/env python3
"""Measures on one NVIDIA card what docs/performance.md shows of GPUs, and PyTorch in comparison.

    tests/bench/gpu_run.py --bin DIR [--out DIR] [--only NAME]... [--python PYTHON_WITH_TORCH]
                           [--device cuda:0] [--quick]

--bin has the built programs (docs/gpu.md). Plans are made and runs started without dtrun. Each measure is added to
results.json of --out (build/bench-gpu-results) immediately, and results.md is rewritten, so that measures can be taken
one at a time. The row of a measure that fails has the reason.

--only   first, ops, 124m, 124m-kept, 124m-torch, fp16, attention, attention-torch, graphs, xl, xl-torch; left out: all
         but the first
--quick  a tiny model and few steps: tries the whole path, its figures mean nothing
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
import sys
import tempfile
import time

import gpu_tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS_A_REPORT = 10


class Failed(Exception):
    pass


def run(command, seconds=900, **more):
    """Returns the stdout of a command that ends well."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds, **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Failed(str(problem)) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise Failed(" / ".join(lines[-3:])[-400:])
    return done.stdout


def asked(query):
    """Returns the output of nvidia-smi, or None if there is none. Never called during a run: it takes time on the
    card."""
    try:
        return run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20).splitlines()[0].strip()
    except (Failed, IndexError):
        return None


class Bench:
    def __init__(self, args, work):
        self.args, self.work, self.bin = args, pathlib.Path(work), pathlib.Path(args.bin).resolve()
        self.out = pathlib.Path(args.out)
        self.vocab = 128 if args.quick else gpu_tables.VOCAB
        try:
            self.results = json.loads((self.out / "results.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.results = {}

    def machine(self):
        others = asked("memory.used")
        if others and int(others) > 200:
            raise Failed(f"other programs hold {others} MiB of the card ('nvidia-smi' lists them): figures would be wrong")
        card = json.loads(run([self.bin / "card_info", self.args.device]))
        peak = next((peak for name, peak in gpu_tables.PEAK_TFLOPS.items() if name in card["name"]), None)
        self.results["machine"] = {**card, "driver": asked("driver_version") or "unknown", "peak_tflops": peak,
                                   "date": datetime.date.today().isoformat(), "quick": self.args.quick}  # fmt: skip

    # --- dtrun

    def tokens_file(self):
        path = self.work / "tokens.bin"
        if not path.exists():
            draw = random.Random(1)
            with path.open("wb") as file:
                array.array("H", (draw.randrange(self.vocab) for _ in range(2_000_000))).tofile(file)
        return path

    def train(self, model, precision="bf16", steps=60, more=()):
        """Runs the engine once, without saves, with a report every ten steps."""
        layers, heads, embed, batch = gpu_tables.MODELS["quick" if self.args.quick else model]
        tokens, steps, every = (32, 6, 1) if self.args.quick else (1024, steps, STEPS_A_REPORT)
        plan = self.work / "plan.json"
        before = asked("memory.used")
        run([self.bin / "dist_make_plan", plan, "/dev/null", f"device={self.args.device}",
             f'data.train=["{self.tokens_file()}"]', "data.tokens=nanogpt", "data.split=0.01",
             f"model.layers={layers}", f"model.heads={heads}", f"model.embed={embed}", f"model.vocab={self.vocab}",
             f"batch.sequences={batch}", f"batch.tokens={tokens}", f"schedule.steps={steps}", "schedule.warmup_steps=0",
             "schedule.warmup_init_lr=0", "optimizer.lr=1e-4", "clip=1.0", f"precision.kind={precision}",
             "evaluate.every=0", "evaluate.sequences=1", f"log.every={every}", "threads=4", *more])  # fmt: skip
        out = run([self.bin / "dtrun-engine", "train", "--plan", plan])
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        metrics = [event["values"] for event in events if event.get("event") == "metrics"]
        steps = [values for values in metrics if "step_seconds" in values]
        if len(steps) < 3:
            raise Failed(f"only {len(steps)} reports of steps")
        late = steps[max(len(steps) // 4, 2) :]  # the first reports include the search for algorithms
        held = [values["gpu_used_bytes_rank_0"] for values in metrics if "gpu_used_bytes_rank_0" in values]
        values = {name: statistics.median(m[name] for m in late) for name in ("tokens_per_second", "step_seconds")}
        values["memory_bytes"] = max(held) - int(before or 0) * (1 << 20) if held else None
        values["first_loss"], values["last_loss"] = steps[0]["loss"], steps[-1]["loss"]
        return values

    def ops(self, only="", attention="fastest"):
        """Returns rows of bench_ops: (op, shape, ms, GB/s, GFLOP/s or None). attention: own, or cuDNN's where it is
        faster."""
        out = run([self.bin / "bench_ops", self.args.device, "bf16", only, *(["quick"] if self.args.quick else [])],
                  600, env={**os.environ, "DTRUN_ATTENTION": attention})  # fmt: skip
        line = re.compile(r"^(\w+) +((?:\d+, \d+, \d+)?) +([\d.]+) +([\d.]+) *([\d.]*)$")
        found = [line.match(text.rstrip()) for text in out.splitlines()]
        return [(m[1], m[2], float(m[3]), float(m[4]), float(m[5]) if m[5] else None) for m in found if m]

    def attention(self):
        def times(rows):
            return {name: next(row[2] for row in rows if row[0] == f"attention_{name}") for name in ("forward", "backward")}

        return {"own": times(self.ops("attention", "own")), "fastest": times(self.ops("attention"))}

    def graphs(self):
        """One sequence a step: the time of launches on the host counts most."""
        return {way: self.train("124m", more=["batch.sequences=1", f"cuda_graphs={way}"]) for way in ("true", "false")}

    # --- PyTorch: a line for each setting when it is measured; the last one has the best

    def peer(self, what, model="124m", seconds=270):
        layers, heads, embed, batch = gpu_tables.MODELS["quick" if self.args.quick else model]
        size = ["--layers", layers, "--heads", heads, "--embed", embed, "--batch", batch,
                "--tokens", 32 if self.args.quick else 1024]  # fmt: skip
        command = [self.args.python, ROOT / "tests/bench/gpu_peer_torch.py", what, *size]
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds)
            out, problem = done.stdout, done.stderr.strip()[-400:]
        except subprocess.TimeoutExpired as late:  # the settings that were measured in time count
            out, problem = (late.stdout or b"").decode(), f"nothing was measured in {seconds} s"
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if not lines:
            raise Failed(problem)
        return json.loads(lines[-1])

    # --- all

    def write(self):
        self.out.mkdir(parents=True, exist_ok=True)
        for name, text in (("results.json", json.dumps(self.results, indent=1) + "\n"), ("results.md", gpu_tables.text(self.results))):
            new = self.out / (name + ".new")
            new.write_text(text, encoding="utf-8")
            new.replace(self.out / name)  # earlier results stay complete, whenever this script ends

    def all(self):
        failed = 0
        measures = {"first": lambda: self.train("124m", steps=30), "124m": lambda: self.train("124m"),
                    "124m-kept": lambda: self.train("124m", more=["activation_checkpointing=keep_all"]), "ops": self.ops,
                    "attention": self.attention, "graphs": self.graphs, "fp16": lambda: self.train("124m", "fp16"),
                    "xl": lambda: self.train("xl", steps=50), "124m-torch": lambda: self.peer("step"),
                    "attention-torch": lambda: self.peer("attention", seconds=100),
                    "xl-torch": lambda: self.peer("step", "xl", 200)}  # fmt: skip
        for name, measure in measures.items():
            if name not in self.args.only if self.args.only else name == "first":
                continue
            start = time.monotonic()
            try:
                self.results[name] = measure()
            except (Failed, StopIteration, KeyError, IndexError, ValueError) as problem:
                failed += 1
                self.results[name] = {"failed": str(problem) or type(problem).__name__}
                print(f"{name}: failed: {problem}", file=sys.stderr)
            self.write()
            print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        print(gpu_tables.text(self.results))
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="programs that are built")
    parser.add_argument("--out", default=ROOT / "build/bench-gpu-results")
    parser.add_argument("--only", action="append", default=[], choices=gpu_tables.NAMES)
    parser.add_argument("--python", default=sys.executable, help="a Python that may have torch")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if not re.fullmatch(r"cuda:\d+", args.device):
        parser.error(f"--device is '{args.device}': expected cuda:0, cuda:1, ...")
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(args, work)
        try:
            bench.machine()
        except Failed as problem:
            sys.exit(f"gpu_run.py: {problem}")
        sys.exit(1 if bench.all() else 0)


if __name__ == "__main__":
    main()
