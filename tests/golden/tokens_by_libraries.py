#!/usr/bin/env python3
"""On demand: texts by chance become the ids of the libraries `tokenizers` and `tiktoken`.

    python3 tests/golden/tokens_by_libraries.py build/test/bin/tokens_show [--seconds 60] [--file CORPUS...]

The tokenizers are those of tests/golden/tokens. Texts are mixed from words that have broken tokenizers, from
characters of all planes, and from pieces of the files. Code points that a library's tables hold for something
else than Unicode 15.0 does are named at the start and left out.
"""

import argparse
import json
import pathlib
import random
import struct
import subprocess
import time

import tiktoken.load
from tokenizers import Tokenizer
from make_tokens_fixture import CL100K, GPT2, WORDS

FOLDER = pathlib.Path(__file__).resolve().parent / "tokens"


class Ours:
    def __init__(self, program, name):
        self.child = subprocess.Popen([program, str(FOLDER / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def encode(self, text):
        data = text.encode()
        self.child.stdin.write(struct.pack("<I", len(data)) + data)
        self.child.stdin.flush()
        count, = struct.unpack("<I", self.child.stdout.read(4))
        return list(struct.unpack(f"<{count}i", self.child.stdout.read(4 * count)))


def theirs(name):
    if name.endswith(".json"):
        tokenizer = Tokenizer.from_file(str(FOLDER / name))
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    ranks = tiktoken.load.load_tiktoken_bpe(str(FOLDER / name))
    cl100k = name.startswith("cl100k")
    encoding = tiktoken.Encoding(name, pat_str=CL100K if cl100k else GPT2, mergeable_ranks=ranks,
                                 special_tokens={"<|endoftext|>": len(ranks) + cl100k})
    return lambda text: encoding.encode(text, allowed_special="all")


def strange(ours, library):
    """Code points that one of the two takes for a letter, number or space and the other does not."""
    out = set()
    for code in range(1, 0x40000):
        if not 0xd800 <= code < 0xe000:
            text = f"{chr(code)}'s {chr(code)}1{chr(code)}\n"
            if ours.encode(text) != library(text):
                out.add(chr(code))
    return out


def text_of(source, files, avoided):
    parts = []
    for _ in range(source.randint(1, 30)):
        kind = source.random()
        if kind < 0.5:
            parts.append(source.choice(WORDS))
        elif kind < 0.6:
            parts.append(chr(source.choice([source.randrange(1, 0x250), source.randrange(0x300, 0xd800),
                                            source.randrange(0xe000, 0x20000)])))
        elif kind < 0.7:
            parts.append("".join(source.choice("ab 1\n\t'.") for _ in range(source.randint(1, 60))))
        elif files:
            data = source.choice(files)
            start = source.randrange(len(data))
            parts.append(data[start:start + source.randint(1, 80)])
    return "".join(c for c in "".join(parts) if c not in avoided)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", nargs="*", default=[])
    arguments = parser.parse_args()
    files = [pathlib.Path(path).read_text(encoding="utf-8", errors="replace") for path in arguments.file]
    names = sorted(json.loads((FOLDER / "cases.json").read_text()))
    for name in names:
        ours, library = Ours(arguments.program, name), theirs(name)
        avoided = strange(ours, library)
        print(f"{name}: {len(avoided)} code points differ: {' '.join(f'{ord(c):04X}' for c in sorted(avoided)[:12])}")
        source, count, size = random.Random(arguments.seed), 0, 0
        end = time.monotonic() + arguments.seconds / len(names)
        for data in files:
            clean = "".join(c for c in data if c not in avoided)
            assert ours.encode(clean) == library(clean), f"{name}: a whole file"
        while time.monotonic() < end:
            text = text_of(source, files, avoided)
            wanted, got = library(text), ours.encode(text)
            assert wanted == got, f"{name}: {text!r}\n{wanted}\n{got}"
            count, size = count + 1, size + len(text)
        print(f"{name}: {count} texts, {size} characters, and {len(files)} files: the same ids")


if __name__ == "__main__":
    main()
