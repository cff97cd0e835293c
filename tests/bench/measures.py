"""The measures of docs/notes/training.md, each a function that makes rows of the table.

A row is (measure, bar, dtrun, PyTorch, runs). dtrun and the peer are measured in turn. PyTorch is measured in the
faster of eager and torch.compile. The time to compile before its first step is not counted.
"""

import array
import pathlib
import random
import re
import statistics
import sys
import time

from runs import Failed, launch, output, peer, values, when

median = statistics.median

GPT2 = {"layers": 12, "heads": 12, "embed": 768, "vocab": 50257, "tokens": 1024, "batch": 4}
TINY = {"layers": 2, "heads": 4, "embed": 128, "vocab": 512, "tokens": 64, "batch": 4}
CHAR_TARGET = 1.89


class Settings:
    """The number of runs and steps. quick: everything once with small sizes; its figures mean nothing."""

    def __init__(self, args):
        self.torch, self.text, self.quick = args.torch, args.shakespeare, args.quick
        self.seeds = range(1, 2 if self.quick else args.seeds + 1)
        self.rounds = 1 if self.quick else args.rounds
        self.size = TINY if self.quick else GPT2
        self.measured_steps = 2 if self.quick else 3
        self.char_steps, self.char_validations = (40, 1) if self.quick else (2000, 8)

    def gpt2_data(self, folder):
        path = pathlib.Path(folder) / "random.bin"
        draw = random.Random(1)
        tokens = (draw.randrange(self.size["vocab"]) for _ in range(200_000))
        array.array("H", tokens).tofile(path.open("wb"))
        self.tokens_file = path


def best_way(settings, dtypes, **options):
    """Returns the peer's fastest dtype and mode, from a short run of each, and the speed of each. A mode that does not
    run is reported and left out."""
    tried = {}
    for dtype in dtypes:
        for way in ("eager", "compile"):
            if way == "compile" and settings.quick:
                continue
            try:
                tried[dtype, way] = peer(settings.torch, mode="speed", dtype=dtype, compile=way,
                                         **options)
            except Failed as why:
                print(f"{dtype} {way}: {why}", file=sys.stderr, flush=True)
    if not tried:
        raise Failed("no way of the peer runs")
    return max(tried, key=lambda one: tried[one]["tokens_per_second"]), tried


def ways(tried):
    return ", ".join(f"{dtype} {way} {answer['tokens_per_second']:.0f}"
                     for (dtype, way), answer in tried.items())


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


def first_step(settings):
    taken = [launch("quickstart.yaml", schedule__steps=1, schedule__warmup_steps=0, log__every=1,
                    evaluate__sequences=2)["first_step_seconds"] for _ in range(5)]
    return [("`launch` to first step, quickstart", "≤ 2 s", f"{median(taken):.2f} s", "", 5)]


# --- char-Shakespeare ---


def char_run(settings, seed, precision):
    """Returns [(step, loss, seconds since the run started)] of the validations."""
    steps = settings.char_steps
    run = launch("char-shakespeare.yaml", data__train=settings.text, seed=seed, precision=precision,
                 schedule__steps=steps, schedule__warmup_steps=steps // 20,
                 evaluate__every=steps // settings.char_validations)
    return [(point["step"], point["value"], when(point["time"]) - when(run["started"]))
            for point in run["points"] if point["name"] == "valid_loss"]


def reached(curve):
    """Returns the seconds to the first validation at the target, or of the whole run if there is none."""
    return next((seconds for _, loss, seconds in curve if loss <= CHAR_TARGET), curve[-1][2])


def told(curves):
    """Returns the median seconds, and for the last losses the median, the range, and how many reach the target."""
    losses = sorted(curve[-1][1] for curve in curves)
    hits = sum(min(loss for _, loss, _ in curve) <= CHAR_TARGET for curve in curves)
    return (f"{median(map(reached, curves)):.1f} s; loss {median(losses):.4f} ({losses[0]:.4f} to "
            f"{losses[-1]:.4f}), {hits} of {len(curves)} at {CHAR_TARGET}")


def char(settings):
    if not settings.text:
        return []
    steps = settings.char_steps
    ours, theirs, way, tried = {"fp32": [], "bf16": []}, [], None, {}
    if settings.torch:
        way, tried = best_way(settings, ("fp32", "bf16"), steps=10 if settings.quick else 150)
    for seed in settings.seeds:
        for precision, curves in ours.items():
            curves.append(char_run(settings, seed, precision))
        if way:
            theirs.append(peer(settings.torch, mode="train", data=settings.text, seed=seed,
                               dtype=way[0], compile=way[1], steps=steps, warmup=steps // 20,
                               every=steps // settings.char_validations)["curve"])
    rows = []
    for precision, curves in ours.items():
        beside = ""
        if theirs:
            times = median(map(reached, theirs)) / median(map(reached, curves))
            beside = f"its best, {' '.join(way)}: {told(theirs)}; {times:.1f}× ours"
        rows.append((f"char-Shakespeare, {precision}, {steps} steps and "
                     f"{settings.char_validations} validations of the whole split, seeds "
                     f"1–{len(settings.seeds)}: time to {CHAR_TARGET}, or whole",
                     "≤ 30 s, PyTorch ≥ 5×", told(curves), beside, len(curves)))
    if tried:
        rows.append(("the same, tokens/s of PyTorch's ways", "", "", ways(tried), 1))
    return rows


# --- GPT-2 124M ---


def gpt2_run(settings, steps, **sets):
    size = settings.size
    small = {"model__layers": size["layers"], "model__heads": size["heads"],
             "model__embed": size["embed"]} if settings.quick else {}
    wanted = {"model__vocab": size["vocab"], "data__train": settings.tokens_file,
              "batch__sequences": size["batch"], "batch__tokens": size["tokens"],
              "batch__accumulate": 1, "schedule__steps": steps, "schedule__warmup_steps": 1,
              "evaluate__every": 0, "evaluate__sequences": 2}
    return launch("gpt2-124m-cpu.yaml", **{**wanted, **small, **sets})


def gpt2(settings, precision, bar):
    warm, measured = 2, settings.measured_steps
    runs, theirs, way, tried, beside = [], [], None, {}, ""
    asked = {**settings.size, "steps": 2, "warmup": 1}
    if settings.torch:
        way, tried = best_way(settings, (precision,), **asked)
        theirs.append(tried[way])
    for _ in range(settings.rounds):
        runs.append(gpt2_run(settings, warm + measured, precision=precision))
        if way and len(theirs) < settings.rounds:
            theirs.append(peer(settings.torch, mode="speed", dtype=precision, compile=way[1],
                               **asked))
    count = len(runs)

    def mid(name):
        return median(value for run in runs for value in values(run, name, warm))

    speed, held = mid("tokens_per_second"), median(run["peak_bytes"] for run in runs)
    memory = ""
    if theirs:
        their_speed = median(answer["tokens_per_second"] for answer in theirs)
        their_held = median(answer["peak_bytes"] for answer in theirs)
        beside = (f"{their_speed:.0f} tokens/s ({way[1]}), ours {speed / their_speed:.2f}×; "
                  f"one run each: {ways(tried)}")
        memory = f"{megabytes(their_held)} ({way[1]}), ours {held / their_held:.2f} of it"
    name = f"GPT-2 124M, {precision}, T 1024, batch 4"
    flops, products = mid("flops_per_second"), median(
        values(run, "matmul_flops_per_second")[0] for run in runs)
    return [(name, bar, f"{speed:.0f} tokens/s", beside, count),
            (f"{name}: peak resident memory of the process", "≤ 0.8 of PyTorch", megabytes(held),
             memory, count),
            (f"{name}: whole step (6N + 12LCT a token) over oneDNN's rate on the products",
             "≥ 60 %" if precision == "bf16" else "",
             f"{flops / 1e9:.0f} of {products / 1e9:.0f} GFLOP/s: {flops / products:.0%}", "",
             count),
            outside(settings, name, precision, mid("outside_seconds") / mid("step_seconds"), count)]


def outside(settings, name, precision, share, count):
    """Returns the time that a run spends on data, logging and events, and what bench_step finds between ops."""
    model = "char" if settings.quick else "124m"
    profile = output("bench_step", model, precision, 2, 2)
    between = float(re.search(r"outside ops.* ([0-9.]+)%", profile)[1])
    return (f"{name}: time outside ops", "< 1 %",
            f"{100 * share + between:.2f} %: data, logging, events {100 * share:.2f} %, between "
            f"ops {between:.2f} %", "", count)


def bf16(settings):
    return gpt2(settings, "bf16", "≥ 1.5× PyTorch")


def fp32(settings):
    return gpt2(settings, "fp32", "≥ 1.2× PyTorch")


def ranks(settings):
    """All settings train on the same sequences in a step: of two ranks each takes half."""
    half = settings.size["batch"] // 2
    two = {"ranks": 2, "threads": 1, "batch__sequences": half}
    wanted = {"one": {"threads": 2}, "ddp": {**two, "strategy": "ddp"},
              "fsdp": {**two, "strategy": "fsdp"}}
    speeds = {name: [] for name in wanted}
    for _ in range(settings.rounds):
        for name, sets in wanted.items():
            run = gpt2_run(settings, 2, batch__accumulate=4, **sets)
            speeds[name] += values(run, "tokens_per_second", 1)
    one, ddp, fsdp = (median(speeds[name]) for name in wanted)
    where = "2 ranks × 1 thread, 124M bf16, accumulate 4"
    return [(f"ddp, {where}, over 1 process × 2 threads", "≥ 0.9",
             f"{ddp / one:.2f}: {ddp:.0f} over {one:.0f} tokens/s", "", settings.rounds),
            (f"fsdp full over ddp, {where}", "≥ 0.8",
             f"{fsdp / ddp:.2f}: {fsdp:.0f} over {ddp:.0f} tokens/s", "", settings.rounds)]


def tensor(settings):
    """Both train on the same sequences in a step: each of two data ranks takes half, ranks that divide layers take
    all."""
    batch, count = settings.size["batch"], settings.rounds
    wanted = {"ddp": {"strategy": "ddp", "batch__sequences": batch // 2},
              "tensor": {"tensor": 2, "batch__sequences": batch}}
    speeds, sent = {name: [] for name in wanted}, {}
    for _ in range(count):
        for name, sets in wanted.items():
            run = gpt2_run(settings, 2, batch__accumulate=4, ranks=2, threads=1, **sets)
            speeds[name] += values(run, "tokens_per_second", 1)
            sent[name] = median(values(run, "sent_bytes", 1))
    ours, ddp = median(speeds["tensor"]), median(speeds["ddp"])
    where = "2 ranks × 1 thread, 124M bf16, accumulate 4"
    return [(f"tensor 2 over ddp, {where}", "", f"{ours / ddp:.2f}: {ours:.0f} over {ddp:.0f} tokens/s", "", count),
            (f"the floor of both, sent by a rank in a step, {where}", "",
             f"{megabytes(sent['tensor'])} and {megabytes(sent['ddp'])}", "", count)]


def stall(gaps):
    """Compares step 5, which begins with a save, with its neighbours; `gaps` are the seconds of steps 2 to 8. Returns
    the seconds that it takes longer, their share of a step, and the share by which the slowest later step is longer than
    the earlier ones."""
    before, saving, after = gaps[1:3], gaps[3], gaps[4:]
    usual = median(before + after)
    return saving - usual, saving / usual - 1, max(after) / median(before) - 1


def told_stall(stalls):
    seconds, share, later = map(median, zip(*stalls))
    return f"{100 * share:+.1f} % ({seconds:.2f} s); the slowest of the three after it over those before it {100 * later:+.1f} %"


def copy_seconds(count):
    """One thread, best of three, with blocks that do not fit in a cache."""
    piece = 1 << 28
    source, target = bytearray(piece), bytearray(piece)
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        target[:] = source
        taken.append(time.perf_counter() - begun)
    return min(taken) * count / piece


def save(settings):
    """Measures from one step's report to the next, because the snapshot is taken after the report of its step."""
    ours, theirs = [], []
    accumulate = 8 if settings.quick else 1  # points have whole milliseconds
    for _ in range(settings.rounds):
        run = gpt2_run(settings, 8, checkpoint__every=4, batch__accumulate=accumulate)
        times = [when(point["time"]) for point in run["points"] if point["name"] == "loss"]
        ours.append(stall([late - early for early, late in zip(times, times[1:])]))
        if settings.torch:
            way = "eager" if settings.quick else "compile"
            theirs.append(stall(peer(settings.torch, mode="save", dtype="bf16", compile=way, steps=8, accumulate=accumulate,
                                     **settings.size)["seconds"]))
    size = int(output("dtrun", "sql", f"SELECT max(bytes) FROM checkpoints WHERE run = '{run['run']}'").split()[-1])
    return [("the step that saves over its neighbours, 124M bf16", "≤ 5 % longer, ≤ PyTorch's async_save", told_stall(ours),
             told_stall(theirs) if theirs else "", settings.rounds),
            ("the same, its floor: bytes copied", "", f"{megabytes(size)}, {copy_seconds(size):.2f} s by one thread", "", 1)]


MEASURES = {"first_step": first_step, "char": char, "bf16": bf16, "fp32": fp32, "ranks": ranks,
            "tensor": tensor, "save": save}
