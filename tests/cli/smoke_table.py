#!/usr/bin/env python3
"""A table of wrong recipes and of faults, and what catches each: validate, or a check of smoke.

  smoke_table.py           recipes that validate catches, and a few of the others (a test of the suite)
  smoke_table.py --all     all of them, and 40 faults (some minutes); --only WORD: those with the word in their name

Exits with 1 if one is not caught as the table says.
"""
import argparse, json, os, random, shutil, struct, subprocess, sys, tempfile

dtrun = os.path.realpath(os.path.join(os.environ["DTRUN_BIN"], "dtrun"))
work = tempfile.mkdtemp(prefix="smoke-table.")
os.environ.update(XDG_STATE_HOME=work + "/state", XDG_CACHE_HOME=work + "/cache", TMPDIR=work + "/tmp", OMP_NUM_THREADS="1")

GPT = {"ranks": 2, "threads": 1, "model": {"kind": "gpt2", "layers": 1, "heads": 2, "embed": 16}, "data": {"train": "text.txt"},
       "batch": {"sequences": 2, "tokens": 16}, "optimizer": {"kind": "adamw", "lr": 3e-3},
       "schedule": {"kind": "cosine", "warmup_steps": 5, "steps": 60}, "evaluate": {"every": 20, "sequences": 16}}
MLP = {"ranks": 2, "threads": 1, "model": {"kind": "mlp", "layers": 2, "embed": 16, "inputs": 4, "outputs": 3},
       "data": {"train": "points.csv"}, "batch": 16, "optimizer": {"lr": 3e-3}, "schedule": {"steps": 60, "warmup_steps": 5}}

# name, recipe, changes, what catches it. "also": another check that may fail too.
BROKEN = [
    # validate
    ("vocabulary smaller than the text's", GPT, {"model.vocab": 3}, "validate"),
    ("text that is not there", GPT, {"data.train": "absent.txt"}, "validate"),
    ("empty text", GPT, {"data.train": "empty.txt"}, "validate"),
    ("a folder for a text", GPT, {"data.train": "folder"}, "validate"),
    ("rows for a text", MLP, {"data.train": "text.txt"}, "validate"),
    ("text shorter than a sequence", GPT, {"data.train": "short.txt"}, "validate"),
    ("heads that do not divide the width", GPT, {"model.heads": 3}, "validate"),
    ("no length", GPT, {"schedule.steps": 0}, "validate"),
    ("lowest rate above the highest", GPT, {"schedule.min_lr": 1}, "validate"),
    ("dp on two nodes", GPT, {"strategy": "dp", "nodes": ["a", "b"]}, "validate"),
    ("a strategy that is none", GPT, {"strategy": "zero"}, "validate"),
    ("an unknown field", GPT, {"optimizer.rl": 1}, "validate"),
    ("dropout of 1", GPT, {"model.dropout": 1}, "validate"),
    ("a negative rate", GPT, {"optimizer.lr": -1}, "validate"),
    ("a second moment that never forgets", GPT, {"optimizer.beta2": 1}, "validate"),
    ("all of the data validate", GPT, {"data.split": 1}, "validate"),
    ("fewer outputs than classes", MLP, {"model.outputs": 2}, "validate"),
    ("another number of columns", MLP, {"model.inputs": 5}, "validate"),
    ("a word among numbers", MLP, {"data.train": "words.csv"}, "validate"),
    ("not a number among rows", MLP, {"data.train": "nan.csv"}, "validate"),
    ("llama without a width of its perceptron", GPT, {"model.kind": "llama"}, "validate"),
    ("more memory than there is", GPT, {"model.layers": 64, "batch.sequences": 60000, "batch.tokens": 4096}, "launch"),
    # smoke
    ("a rate far too high", GPT, {"optimizer.kind": "sgd", "optimizer.lr": 100, "clip": 0}, "learns"),
    ("a rate too high for AdamW", GPT, {"optimizer.lr": 50, "clip": 0}, "learns"),
    ("a rate too low to move", GPT, {"optimizer.lr": 1e-9}, "learns"),
    ("clipped to nothing", GPT, {"optimizer.kind": "sgd", "clip": 1e-12}, "learns"),
    ("a warm-up as long as the run, from nothing", GPT, {"schedule.kind": "linear", "schedule.warmup_steps": 60, "optimizer.lr": 1e-7}, "learns"),
    ("decay that throws the weights about", GPT, {"optimizer.kind": "sgd", "optimizer.weight_decay": 10, "optimizer.lr": 1, "clip": 0}, "learns"),
    ("epsilon larger than every gradient", GPT, {"optimizer.eps": 1, "optimizer.lr": 1e-6}, "learns"),
    ("validated on what it trains on", GPT, {"data.validation": "text.txt"}, "evaluates"),
    ("... by another name", GPT, {"data.validation": "link.txt"}, "evaluates"),
    ("rows too large to square", MLP, {"data.train": "huge.csv"}, "trains"),
    ("rows too large to learn from", MLP, {"data.train": "large.csv", "optimizer.kind": "sgd", "optimizer.lr": 1}, "learns"),
    ("tokens beyond the vocabulary", GPT, {"data.train": "ids.bin", "data.tokens": "nanogpt", "model.vocab": 100}, "any"),
    ("a loss scale that overflows", GPT, {"precision.kind": "fp16", "precision.loss_scale": 1e30, "precision.scale_window": 1}, "any"),
    ("sgd by AdamW's rate", GPT, {"optimizer.kind": "sgd", "optimizer.lr": 1e-6}, "learns"),
    ("Lion at a hundred-millionth", GPT, {"optimizer.kind": "lion", "optimizer.lr": 1e-8}, "learns"),
    ("Muon a thousand times too far", GPT, {"optimizer.kind": "muon", "optimizer.lr": 100, "optimizer.adamw_lr": 10}, "learns"),
    ("momentum that sums for ever", GPT, {"optimizer.kind": "sgd", "optimizer.lr": 10, "optimizer.momentum": 0.999, "clip": 0}, "learns"),
]

STRATEGIES = ("ddp", "fsdp", "dp")
FAULTS = [(strategy, option, place) for strategy in STRATEGIES for option, places in (
    ("kill", ("rank=0@1", "rank=1@3", "rank=0@11", "rank=1@8")), ("hang", ("rank=0@5", "rank=1@2")),
    ("slow", ("rank=1@2x4", "rank=0@1x3")), ("disk-full", ("rank=0@6", "rank=1@2", "rank=0@1")),
    ("bitflip", ("rank=0@7", "rank=1@7", "rank=1@1")), ("cut", ("node=1@4:2s", "node=2@3:8s"))) for place in places
    if strategy != "dp" or (not place.startswith(("rank=1", "node=2")))]


def make_files():
    draw = random.Random(1)
    words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
    text = "\n".join(" ".join(draw.choice(words) for _ in range(8)) for _ in range(1500)) + "\n"
    def rows(scale, cell=lambda i, value: "%g" % value):
        return "".join(",".join(cell(i, scale * (i % 3 + draw.random())) for _ in range(4)) + ",%d\n" % (i % 3) for i in range(600))
    files = {"text.txt": text, "empty.txt": "", "short.txt": "to be\n", "points.csv": rows(1), "huge.csv": rows(1e38),
             "large.csv": rows(1e18), "words.csv": rows(1, lambda i, value: "many" if i == 300 else "%g" % value),
             "nan.csv": rows(1, lambda i, value: "nan" if i == 300 else "%g" % value)}
    for name, content in files.items():
        with open(f"{work}/{name}", "w") as out:
            out.write(content)
    with open(work + "/ids.bin", "wb") as out:
        out.write(struct.pack("<20000H", *(draw.randrange(300) for _ in range(20000))))
    os.mkdir(work + "/folder")
    os.mkdir(work + "/tmp")
    os.link(work + "/text.txt", work + "/link.txt")


def recipe_of(base, changes):
    recipe = json.loads(json.dumps(base))
    for path, value in changes.items():
        at, *rest = path.split(".")
        if rest and not isinstance(recipe.get(at, {}), dict):
            recipe[at] = {"kind": recipe[at]}
        to = recipe if not rest else recipe.setdefault(at, {})
        to[(rest or [at])[-1]] = value
    path = work + "/recipe.yaml"
    with open(path, "w") as out:
        json.dump(recipe, out)
    return path


def call(*words):
    done = subprocess.run([dtrun, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    return done.returncode, done.stdout, done.stderr


def smoke(path, *words):
    code, out, err = call("smoke", "--json", path, *words)
    checks = json.loads(out)["recipes"][0]["checks"]
    for kept in os.listdir(work + "/tmp"):
        shutil.rmtree(f"{work}/tmp/{kept}", ignore_errors=True)
    return checks


def catch(base, changes, wanted):
    """Returns what caught it, as text, and whether this is expected."""
    path = recipe_of(base, changes)
    code, out, err = call("validate", path)
    if code != 0:
        return "validate", wanted in ("validate", "any"), err.strip().splitlines()[0]
    if wanted == "launch":
        code, out, err = call("launch", path, "--dry-run")
        return "launch --dry-run", code == 2, (err.strip().splitlines() or [""])[0]
    if wanted == "validate":
        return "nothing", False, "validate passes it"
    failed = {check["check"]: check["figure"] for check in smoke(path) if check["verdict"] == "failed"}
    caught = wanted in failed or (wanted in ("learns", "any") and failed)
    first = wanted if wanted in failed else next(iter(failed), "nothing")
    return "smoke: " + ", ".join(failed) if failed else "nothing", caught, failed.get(first, "")


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--all", action="store_true")
    parse.add_argument("--only", default="")
    asked = parse.parse_args()
    make_files()
    bad = 0
    quick = {"a rate too low to move", "validated on what it trains on"}
    for name, base, changes, wanted in BROKEN:
        if asked.only not in name or not (asked.all or asked.only or wanted in ("validate", "launch") or name in quick):
            continue
        by, good, figure = catch(base, changes, wanted)
        bad += not good
        print(f"{'good' if good else 'MISSED':7} {name:45} {by:24} {figure[:140]}", flush=True)
    for strategy in STRATEGIES if asked.all or asked.only == "faults" else ():
        faults = [(option, place) for of, option, place in FAULTS if of == strategy]
        words = [word for option, place in faults for word in ("--" + option, place)]
        for check in smoke(recipe_of(GPT, {"strategy": strategy}), *words)[8:]:
            bad += check["verdict"] == "failed"
            print(f"{check['verdict']:7} {strategy + ' ' + check['check']:45} {check['figure']}", flush=True)
    print(len(BROKEN), "recipes,", len(FAULTS), "faults,", bad, "not as the table says")
    return 1 if bad else 0


try:
    code = main()
finally:
    shutil.rmtree(work, ignore_errors=True)
sys.exit(code)
