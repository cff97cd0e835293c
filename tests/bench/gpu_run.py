#!/usr/bin/env python3
"""Measures on one NVIDIA card what docs/performance.md shows of GPUs, peers in the same run.

    tests/bench/gpu_run.py [--out DIR] [--only NAME]... [--python PYTHON_WITH_TORCH] [--bin DIR]
                           [--device cuda:0] [--quick] [--cmake=-DNAME=VALUE]...

Runs unattended on a bare machine with the CUDA toolkit, NCCL, CMake and a C compiler: builds what it
needs of the engine in build/bench-gpu (docs/gpu.md has the options that --cmake may pass on), unless
--bin names programs that are there. Plans are made and runs started without dtrun. Without PyTorch the peer's
columns say "not there". A measure that fails says why in its row, and the others go on.
Writes results.md and results.json into --out (build/bench-gpu-results).

--only   ops, 124m, xl, fp16, attention
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
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["dtrun-engine", "dist_make_plan", "card_info", "bench_ops"]
NOT_THERE = "not there"

# bf16 with fp32 sums, dense: the data sheets, as runner/predict/gpu_specs.c has them.
PEAK_TFLOPS = {"H100": 989.4, "H200": 989.4, "A100": 312.0, "L40S": 362.0, "4090": 165.2}

MODELS = {  # layers, heads, embed, sequences of 1,024 tokens
    "124m": (12, 12, 768, 32),
    "xl": (48, 25, 1600, 8),
    "quick": (2, 2, 32, 2),
}
VOCAB = 50257


class Failed(Exception):
    pass


def run(command, seconds=900, **more):
    """stdout of a command that ends well."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds, **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Failed(str(problem)) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise Failed(" / ".join(lines[-3:])[-400:])
    return done.stdout


class MemoryWatch:
    """The most that a card's processes have held while this is open, over what was held before; by
    nvidia-smi, five times a second."""

    def __init__(self, index):
        self.query = ["nvidia-smi", f"--id={index}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]

    def used(self):
        try:
            return int(run(self.query, 10).split()[0]) * (1 << 20)
        except (Failed, ValueError, IndexError):
            return None

    def __enter__(self):
        self.before = self.most = self.used()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while self.most is not None and not self.over.wait(0.2):
            self.most = max(self.most, self.used() or 0)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.bytes = None if self.most is None else self.most - self.before


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, pathlib.Path(work)
        self.bin = pathlib.Path(args.bin).resolve() if args.bin else ROOT / "build/bench-gpu/bin"
        self.results, self.rows, self.tables = {}, [], []
        self.vocab = 128 if args.quick else VOCAB

    # --- the machine

    def build(self):
        if self.args.bin:
            return
        folder = ROOT / "build/bench-gpu"
        print("building", *PROGRAMS, file=sys.stderr)
        run(["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DDT_PARTS=engine", "-DDT_CUDA=ON", *self.args.cmake])
        # `cuda` is the target of libdtrun-cuda.so
        jobs = str(os.cpu_count() or 1)
        run(["cmake", "--build", folder, "-j", jobs, "--target", *PROGRAMS, "dtrun-cuda"], 3000)

    def machine(self):
        self.card = json.loads(run([self.bin / "card_info", self.args.device]))
        self.peak = next((peak for name, peak in PEAK_TFLOPS.items() if name in self.card["name"]), None)
        try:
            self.torch = run([self.args.python, "-c", "import torch; assert torch.cuda.is_available(); print(torch.__version__)"]).strip()
        except Failed as problem:
            self.torch = None
            print(f"PyTorch: {NOT_THERE}: {problem}", file=sys.stderr)
        try:
            driver = run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]).split()[0]
        except (Failed, IndexError):
            driver = "unknown"
        self.results["machine"] = {**self.card, "driver": driver, "torch": self.torch, "peak_tflops": self.peak,
                                   "date": datetime.date.today().isoformat()}  # fmt: skip

    # --- ours

    def tokens_file(self):
        path = self.work / "tokens.bin"
        if not path.exists():
            draw = random.Random(1)
            with path.open("wb") as file:
                array.array("H", (draw.randrange(self.vocab) for _ in range(2_000_000))).tofile(file)
        return path

    def train(self, model, precision="bf16", steps=40, more=()):
        """One run of the engine; (metrics, bytes of the card)."""
        layers, heads, embed, batch = MODELS["quick" if self.args.quick else model]
        tokens, steps = (32, 6) if self.args.quick else (1024, steps)
        plan = self.work / "plan.json"
        run([self.bin / "dist_make_plan", plan, self.work / "checkpoints", f"device={self.args.device}",
             f'data.train=["{self.tokens_file()}"]', "data.tokens=nanogpt", "data.split=0.01",
             f"model.layers={layers}", f"model.heads={heads}", f"model.embed={embed}", f"model.vocab={self.vocab}",
             f"batch.sequences={batch}", f"batch.tokens={tokens}", f"schedule.steps={steps}", "schedule.warmup_steps=0",
             "schedule.warmup_init_lr=0", "optimizer.lr=1e-4", "clip=1.0", f"precision.kind={precision}",
             "evaluate.every=0", "evaluate.sequences=1", "log.every=1", "threads=4", *more])  # fmt: skip
        with MemoryWatch(self.args.device.split(":")[1]) as watch:
            out = run([self.bin / "dtrun-engine", "train", "--plan", plan])
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        metrics = [event["values"] for event in events if event.get("event") == "metrics" and "step_seconds" in event["values"]]
        if len(metrics) < 3:
            raise Failed(f"only {len(metrics)} steps were reported")
        late = metrics[len(metrics) // 4 :]  # the first ones choose algorithms
        values = {name: statistics.median(m[name] for m in late) for name in ("tokens_per_second", "flops_per_second", "step_seconds")}
        values["memory_bytes"] = watch.bytes
        return values

    def mfu(self, tokens_per_second, model):
        """6 N + 12 L C T FLOPs a token (recipes/architecture/gpt2.c) over the card's published rate."""
        layers, _, embed, _ = MODELS[model]
        flops = 6 * (12 * layers * embed**2 + VOCAB * embed) + 12 * layers * embed * 1024
        return flops * tokens_per_second / (self.peak * 1e12) if self.peak else None

    def peer(self, what, *more):
        if self.torch is None:
            return None
        runs = ["--warmup", "3", "--runs", "5"] if self.args.quick else []
        return json.loads(run([self.args.python, ROOT / "tests/bench/gpu_peer_torch.py", what, *more, *runs], 1800).splitlines()[-1])

    # --- rows

    def row(self, measure, bar, ours, peer=NOT_THERE, ratio=""):
        self.rows.append((measure, bar, ours, peer, ratio))
        print(f"{measure}: {ours}; PyTorch {peer} {ratio}", file=sys.stderr, flush=True)

    def speed(self, model, title, bar_ratio, bar_mfu):
        ours = self.results[model] = self.train(model)
        layers, heads, embed, batch = MODELS["quick" if self.args.quick else model]
        shape = ["--layers", layers, "--heads", heads, "--embed", embed, "--batch", batch,
                 "--tokens", 32 if self.args.quick else 1024]  # fmt: skip
        try:
            peer = self.results[model + "_torch"] = self.peer("step", *shape)
        except Failed as problem:
            peer, why = None, f"failed: {problem}"
        else:
            why = NOT_THERE
        rate, mfu = ours["tokens_per_second"], self.mfu(ours["tokens_per_second"], model)
        theirs = peer and peer["tokens_per_second"]
        self.row(f"{title}, bf16, T 1024, batch {batch}, tokens/s", bar_ratio, f"{rate:,.0f}",
                 f"{theirs:,.0f}" if peer else why, f"{rate / theirs:.2f}x" if peer else "")  # fmt: skip
        if mfu is not None:
            self.row(f"{title}, MFU: (6N + 12LCT) x tokens/s over {self.peak} TFLOP/s", bar_mfu, f"{mfu:.1%}",
                     f"{self.mfu(theirs, model):.1%}" if peer else why)  # fmt: skip
        memory = ours["memory_bytes"]
        held = peer and peer["reserved_bytes"]
        if memory is not None:
            self.row(f"{title}, peak memory of the card", "<= 0.8 of PyTorch", f"{memory / 1e9:.2f} GB",
                     f"{held / 1e9:.2f} GB reserved" if peer else why, f"{memory / held:.2f}x" if peer else "")  # fmt: skip

    def measure_124m(self):
        self.speed("124m", "GPT-2 124M", ">= 1.2x, >= 400k", ">= 50 %")

    def measure_xl(self):
        self.speed("xl", "GPT-2 1.5B", "reported", ">= 60 %")

    def measure_fp16(self):
        brain = self.results.get("124m") or self.train("124m")
        half = self.results["124m_fp16"] = self.train("124m", "fp16")
        ratio = half["tokens_per_second"] / brain["tokens_per_second"]
        self.row("GPT-2 124M, fp16 with loss scale, tokens/s over bf16", ">= 0.97", f"{ratio:.3f}", "")

    def measure_graphs(self):
        """One sequence a step: the host's launches count most."""
        rates = {}
        for graphs in ("true", "false"):
            one = self.train("124m", more=["batch.sequences=1", f"cuda_graphs={graphs}"])
            rates[graphs] = self.results[f"124m_graphs_{graphs}"] = one["tokens_per_second"]
        self.row("GPT-2 124M, bf16, batch 1, tokens/s of recorded steps over launched ones", "reported",
                 f"{rates['true'] / rates['false']:.2f}x, {rates['true']:,.0f}", "")  # fmt: skip

    def ops(self, type_name, only="", attention="fastest"):
        """Rows of bench_ops: (op, shape, ms, GB/s, GFLOP/s or None); attention: own, or cuDNN's where it is faster."""
        environment = {**os.environ, "DTRUN_ATTENTION": attention}
        out = run([self.bin / "bench_ops", self.args.device, type_name, only], 1200, env=environment)
        line = re.compile(r"^(\w+) +((?:\d+, \d+, \d+)?) +([\d.]+) +([\d.]+) *([\d.]*)$")
        found = [line.match(text.rstrip()) for text in out.splitlines()]
        return [(m[1], m[2], float(m[3]), float(m[4]), float(m[5]) if m[5] else None) for m in found if m]

    def measure_ops(self):
        rows = self.results["ops"] = self.ops("bf16")
        copy = next(row[3] for row in rows if row[0] == "copy")
        fastest = max(row[4] or 0 for row in rows if row[0].startswith("matmul"))
        peak = self.peak * 1e3 if self.peak else fastest
        table = ["| op | rows, in, out | ms | GB/s | of copy | GFLOP/s | of peak | share of the limit |",
                 "|---|---|---|---|---|---|---|---|"]  # fmt: skip
        for op, shape, ms, bytes_rate, flops_rate in rows:
            of_copy, of_peak = bytes_rate / copy, (flops_rate or 0) / peak
            table.append(f"| {op} | {shape} | {ms:.3f} | {bytes_rate:,.0f} | {of_copy:.0%} | "
                         f"{f'{flops_rate:,.0f}' if flops_rate else ''} | {f'{of_peak:.0%}' if flops_rate else ''} | "
                         f"{max(of_copy, of_peak):.0%} |")  # fmt: skip
        self.tables.append((f"Ops, bf16, 124M at 32 x 1024. Copy {copy:,.0f} GB/s measured; peak {peak / 1e3:,.1f} "
                            f"TFLOP/s published, {fastest / 1e3:,.1f} measured at best", table))  # fmt: skip
        for op in ("layernorm_forward", "layernorm_backward", "optimizer_step", "cross_entropy_backward"):
            rate = next(row[3] for row in rows if row[0] == op)
            self.row(f"{op}, share of measured copy bandwidth", ">= 85 %", f"{rate / copy:.0%}", "")

    def measure_attention(self):
        rows, faster = self.ops("bf16", "attention", "own"), self.results.get("ops") or self.ops("bf16", "attention")
        ours = {name: next(row[2] for row in rows if row[0] == f"attention_{name}") for name in ("forward", "backward")}
        faster = next(row[2] for row in faster if row[0] == "attention_forward")
        try:
            peer, why = self.peer("attention"), NOT_THERE
        except Failed as problem:
            peer, why = None, f"failed: {problem}"
        self.results["attention_torch"] = peer
        for name, bar in (("forward", 0.9), ("backward", 0.8)):
            theirs = peer and peer[f"{name}_ms"]
            self.row(f"flash attention {name}, d 64, T 1024, causal, 32 x 12 heads", f">= {bar}x", f"{ours[name]:.3f} ms",
                     f"{theirs:.3f} ms" if peer else why, f"{theirs / ours[name]:.2f}x" if peer else "")  # fmt: skip
        self.row("attention forward, the same, ours or cuDNN's, the faster one", "reported", f"{faster:.3f} ms", "")

    # --- all

    def write(self):
        machine = self.results["machine"]
        torch = f"PyTorch {self.torch}" if self.torch else f"PyTorch: {NOT_THERE}"
        lines = [f"## {machine['date']}: {machine['name']}, driver {machine['driver']}, {torch}", ""]
        if self.args.quick:
            lines += ["A quick try with a tiny model: these figures mean nothing.", ""]
        lines += ["| measure | bar | dtrun | PyTorch | ratio |", "|---|---|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        for title, table in self.tables:
            lines += ["", title + ":", "", *table]
        text = "\n".join(lines) + "\n"
        out = pathlib.Path(self.args.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.md").write_text(text, encoding="utf-8")
        (out / "results.json").write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        return text

    def all(self):
        failed = 0
        measures = {"ops": self.measure_ops, "124m": self.measure_124m, "fp16": self.measure_fp16,
                    "attention": self.measure_attention, "graphs": self.measure_graphs,
                    "xl": self.measure_xl}  # fmt: skip
        for name, measure in measures.items():
            if self.args.only and name not in self.args.only:
                continue
            start = time.monotonic()
            try:
                measure()
            except (Failed, StopIteration, KeyError) as problem:
                failed += 1
                self.row(name, "", f"failed: {problem or type(problem).__name__}", "")
            self.write()  # what is measured is kept, whatever comes
            print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        print(self.write())
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=ROOT / "build/bench-gpu-results")
    parser.add_argument("--only", action="append", choices=["ops", "124m", "xl", "fp16", "attention", "graphs"])
    parser.add_argument("--python", default=sys.executable, help="a Python that may have torch")
    parser.add_argument("--bin", help="programs that are built already")
    parser.add_argument("--cmake", action="append", default=[], help="an option of the build")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if not re.fullmatch(r"cuda:\d+", args.device):
        parser.error(f"--device is '{args.device}': expected cuda:0, cuda:1, ...")
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(args, work)
        try:
            bench.build()
            bench.machine()
        except Failed as problem:
            sys.exit(f"gpu_run.py: {problem}")
        sys.exit(1 if bench.all() else 0)


if __name__ == "__main__":
    main()
