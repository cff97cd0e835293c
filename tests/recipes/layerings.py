#!/usr/bin/env python3
"""Random layerings of recipes, resolved by dtrun and by the independent reference below: every value, and the whole
chain of its origins, must be the same.

    layerings.py [--count 3000] [--seed 1]        DTRUN_BIN names the folder of the programs

A layering has files that extend each other, singly and in lists, some -f, some --set, values from the environment,
shorthand, alternative names of fields, and items of lists.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

BATCH = 25  # recipes of one call, with the same -f and --set

# path: (kind, texts); `meaning` gives the value of a text.
FIELDS = {
    "seed": ("int", ["1", "7", "1_000", "2e4"]),
    "clip": ("number", ["0.5", "1", "2e0", ".25"]),
    "threads": ("int", ["1", "2", "3"]),
    "grace_seconds": ("number", ["5", "60"]),
    "cuda_graphs": ("bool", ["true", "false"]),
    "time_limit": ("duration", ["0", "90s", "10m", "2h", "1d"]),
    "batch.sequences": ("int", ["1", "4", "16"]),
    "batch.tokens": ("int", ["8", "32", "128"]),
    "batch.accumulate": ("int", ["1", "2"]),
    "model.layers": ("int", ["1", "2", "5"]),
    "model.heads": ("int", ["2", "4"]),
    "model.embed": ("int", ["16", "32"]),
    "model.dropout": ("number", ["0", "0.1"]),
    "optimizer.lr": ("number", ["1e-3", "3e-4", "0.01"]),
    "optimizer.weight_decay": ("number", ["0", "0.1", "1e-2"]),
    "optimizer.beta1": ("number", ["0.9", "0.8"]),
    "schedule.kind": ("text", ["cosine", "linear", "constant"]),
    "schedule.steps": ("int", ["100", "2e3", "50"]),
    "schedule.warmup_steps": ("int", ["0", "10"]),
    "checkpoint.every": ("int", ["10", "20"]),
    "checkpoint.keep": ("int", ["0", "3"]),
    "log.every": ("int", ["1", "10"]),
    "data.train": ("paths", ["a.txt", "b.txt", "d/c.txt"]),
    "data.tail": ("text", ["wrap", "drop"]),
    "network.interface": ("text", ["eth0", "10.0.0.0/24"]),
    "slurm.options": ("texts", ["--partition=gpu", "--time=1:00:00", "--qos=high"]),
    "strategy.kind": ("text", ["ddp", "fsdp"]),
    "strategy.reduce_dtype": ("text", ["fp32", "bf16"]),
    "precision.kind": ("text", ["fp32", "bf16"]),
    "failure.max_restarts": ("int", ["0", "3"]),
}
NEEDED = ["model.layers", "model.heads", "model.embed", "data.train", "schedule.steps"]
SHORTHAND = {"batch.sequences", "data.train", "network.interface", "slurm.options", "schedule.kind",
             "strategy.kind", "precision.kind", "log.every", "checkpoint.every"}
ALIASES = {"batch.tokens": "block_size", "clip": "grad_clip", "optimizer.lr": "learning_rate",
           "model.layers": "n_layer", "schedule.steps": "max_iters"}
PRESETS = {"gpt2-small": (12, 12, 768), "gpt2-medium": (24, 16, 1024)}
DIMENSIONS = ["model.layers", "model.heads", "model.embed"]
LISTS = ("paths", "texts")
TEXTS = sorted({text for _, texts in FIELDS.values() for text in texts})
ENVIRONMENT = {"DT_V%d" % i: text for i, text in enumerate(TEXTS)} | {"DT_EMPTY": ""}


def meaning(kind, text, folder):
    if kind == "bool":
        return text == "true"
    if kind == "paths":
        return os.path.join(folder, text)
    if kind in ("text", "texts"):
        return text
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1])
    number = float(text[:-1]) * unit if unit else float(text.replace("_", ""))
    return int(number) if kind == "int" else number


class Value:
    """The value of a field: as written in the file, as a chain shows it, and its text or texts."""

    def __init__(self, draw, path, flow):
        self.kind, texts = FIELDS[path]
        if self.kind in LISTS and draw.random() < 0.6:
            parts = [self.scalar(draw, text, True)
                     for text in draw.choices(texts, k=draw.randint(1, 3))]
            self.written = "[%s]" % ", ".join(p[0] for p in parts)
            self.shown = "[%s]" % ", ".join(p[1] for p in parts)
            self.texts = [p[2] for p in parts]
        else:
            self.written, self.shown, text = self.scalar(draw, draw.choice(texts), flow)
            self.texts = [text]

    @staticmethod
    def scalar(draw, text, flow):
        way = draw.random()
        if way > 0.3:
            return text, text, text
        reference = ("${env:DT_EMPTY:-%s}" % text if way < 0.1 else
                     "${env:DT_NOT_THERE:-%s}" % text if way < 0.2 else
                     "${env:DT_V%d}" % TEXTS.index(text))
        quoted = '"%s"' % reference if flow or draw.random() < 0.5 else reference
        return quoted, reference, text

    def means(self, folder):
        items = [meaning(self.kind, text, folder) for text in self.texts]
        return items if self.kind in LISTS else items[0]


class Layer:
    """A recipe file: the files that it extends, and the values that it sets."""

    def __init__(self, draw, names, path, depth, needed=()):
        self.path = path
        self.extends = []  # a preset or a Layer; once written: (it, its name in messages, line, column)
        self.given = []    # (path, Value, line, column)
        self.lines = []
        if draw.random() < 0.3:
            self.lines.append("recipe: 1")
        while depth < 4 and draw.random() < 0.4 and names.left():
            self.extends.append(draw.choice(list(PRESETS)) if draw.random() < 0.2
                                else Layer(draw, names, names.next(draw), depth + 1))
        late = draw.random() < 0.2  # it has the lowest precedence, wherever it is written
        if not late:
            self.write_extends(draw)
        self.write_fields(draw, needed)
        if late:
            self.write_extends(draw)
        if not self.lines:
            self.lines.append("recipe: 1")
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(self.lines) + "\n")

    def write_extends(self, draw):
        below, self.extends = self.extends, []
        if not below:
            return
        names = [b if isinstance(b, str) else
                 os.path.relpath(b.path, os.path.dirname(self.path) or ".") for b in below]
        line = "extends: "
        is_list = len(names) > 1 or draw.random() < 0.3
        line += "[" if is_list else ""
        for b, name in zip(below, names):
            self.extends.append((b, name, len(self.lines) + 1, len(line) + 1))
            line += name + ", "
        self.lines.append(line[:-2] + ("]" if is_list else ""))

    def write_fields(self, draw, needed):
        paths = set(draw.sample(list(FIELDS), draw.randint(0, 6))) | set(needed)
        groups = {}
        for path in draw.sample(sorted(paths), len(paths)):
            alias = ALIASES.get(path)
            if "." not in path or (alias and draw.random() < 0.2):
                key = alias if alias and draw.random() < 0.5 or "." in path else path
                self.add_line(draw, path, key + ": ", False)
            else:
                groups.setdefault(path.split(".")[0], []).append(path)
        for group, members in groups.items():
            if len(members) == 1 and members[0] in SHORTHAND and draw.random() < 0.5:
                self.add_line(draw, members[0], group + ": ", False)
            elif draw.random() < 0.5:
                self.lines.append(group + ":")
                for path in members:
                    self.add_line(draw, path, "  %s: " % self.key(draw, path), False)
            else:
                line = group + ": {"
                for path in members:
                    line += self.key(draw, path) + ": "
                    value = Value(draw, path, True)
                    self.given.append((path, value, len(self.lines) + 1, len(line) + 1))
                    line += value.written + ", "
                self.lines.append(line[:-2] + "}")

    @staticmethod
    def key(draw, path):
        return ALIASES[path] if path in ALIASES and draw.random() < 0.3 else path.split(".")[1]

    def add_line(self, draw, path, before, flow):
        value = Value(draw, path, flow)
        self.given.append((path, value, len(self.lines) + 1, len(before) + 1))
        self.lines.append(before + value.written)


class Names:
    """Files of one layering; at most as many as dtrun accepts."""

    def __init__(self, stem, most):
        self.stem, self.count, self.most = stem, 0, most

    def left(self):
        return self.count < self.most

    def next(self, draw):
        self.count += 1
        name = "%s_%d.yaml" % (self.stem, self.count)
        return "sub/" + name if draw.random() < 0.3 else name


class Reference:
    """Applies layers, lowest precedence first, as docs/recipe.md says."""

    def __init__(self, folder):
        self.folder, self.values, self.chains = folder, {}, {}
        self.layer, self.layer_of = 0, {}  # index of the layer that set each field

    def give(self, path, value, shown, place):
        self.values[path] = value
        self.layer_of[path] = self.layer
        self.chains.setdefault(path, []).insert(0, {"value": shown, **place})

    def apply(self, layer, named):
        """`named`: the name in messages, relative to the file that extends it."""
        beside = os.path.dirname(named)
        for below, name, line, column in layer.extends:
            if isinstance(below, str):
                self.layer += 1
                self.give("model.preset", below, below,
                          {"source": named, "line": line, "column": column})
            else:
                self.apply(below, beside + "/" + name if beside else name)
        self.layer += 1
        for path, value, line, column in layer.given:
            self.give(path, value.means(os.path.join(self.folder, beside).rstrip("/")), value.shown,
                      {"source": named, "line": line, "column": column})

    def set(self, path, index, value, text):
        place = {"source": "--set " + text}
        self.layer = 1 << 30  # higher than all files
        means = value.means(self.folder)
        if index is None:
            self.give(path, means, value.shown, place)
        else:
            items = list(self.values.get(path, []))
            items[index:index + 1] = means
            self.give(path, items, "[%d] = %s" % (index, value.shown), place)

    def finish(self):
        """The preset sets fields that its own layer and the later ones leave out."""
        place = (self.chains.get("model.preset") or [None])[0]
        if place is None:
            return
        layer = self.layer_of["model.preset"]
        given = dict(zip(DIMENSIONS, PRESETS[self.values["model.preset"]]))
        for path, value in {**given, "model.activation": "gelu_tanh"}.items():
            if self.layer_of.get(path, -1) < layer:
                self.values[path] = value
                self.chains.setdefault(path, []).insert(
                    0, {**place, "value": str(value), "from": "model.preset"})


def draw_set(draw):
    """(path, index, value, text)"""
    while True:
        path = draw.choice(list(FIELDS))
        value = Value(draw, path, True)
        index = draw.choice([0, 1] if path == "data.train" else [0]) \
            if value.kind in LISTS and len(value.texts) == 1 and draw.random() < 0.6 else None
        if index is not None and value.written.startswith("["):
            continue  # items are text
        name = ALIASES[path] if path in ALIASES and draw.random() < 0.3 else path
        text = "%s%s=%s" % (name, "" if index is None else "[%d]" % index,
                            value.shown if not value.written.startswith(("[", '"'))
                            else value.written)
        if len(text) < 55:
            return path, index, value, text


def get(recipe, path):
    for key in path.split("."):
        recipe = recipe[key]
    return recipe


def batch(draw, folder, number, program):
    """Returns the faults of BATCH layerings."""
    mains = [Layer(draw, Names("m%d_%d" % (number, i), 12), "m%d_%d.yaml" % (number, i), 0, NEEDED)
             for i in range(BATCH)]
    overlays = [Layer(draw, Names("o%d_%d" % (number, i), 4), "o%d_%d.yaml" % (number, i), 2)
                for i in range(draw.choice([0, 0, 1, 2]))]
    sets = [draw_set(draw) for _ in range(draw.choice([0, 0, 1, 4]))]
    command = [program, "validate", "--json", "--no-data", "--origins"]
    command += [word for o in overlays for word in ("-f", o.path)]
    command += [word for s in sets for word in ("--set", s[3])] + [m.path for m in mains]
    said = subprocess.run(command, capture_output=True, check=False,
                          env=os.environ | ENVIRONMENT)
    faults = []
    for main, got in zip(mains, json.loads(said.stdout)["recipes"]):
        wanted = Reference(folder)
        for layer in [main] + overlays:
            wanted.apply(layer, layer.path)
        for s in sets:
            wanted.set(*s)
        wanted.finish()
        if not got["valid"]:
            faults.append((command, main.path, got["message"]))
            continue
        for path, value in wanted.values.items():
            if get(got["recipe"], path) != value:
                faults.append((command, main.path, path, get(got["recipe"], path), value))
        if got["origins"] != wanted.chains:
            for path in sorted(set(got["origins"]) | set(wanted.chains)):
                if got["origins"].get(path) != wanted.chains.get(path):
                    faults.append((command, main.path, path, got["origins"].get(path),
                                   wanted.chains.get(path)))
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = os.path.join(os.path.realpath(os.environ["DTRUN_BIN"]), "dtrun")
    draw = random.Random(options.seed)
    done = 0
    while done < options.count:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.mkdir("sub")
            for number in range(min(40, -(-(options.count - done) // BATCH))):
                faults = batch(draw, os.getcwd(), number, program)
                for fault in faults[:3]:
                    print("DIFFERENT", *fault, sep="\n    ")
                if faults:
                    return 1
                done += BATCH
            os.chdir("/")
    print("good: %d layerings" % done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
