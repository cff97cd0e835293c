#!/usr/bin/env python3
"""On demand: random texts get the same ids as from the libraries `tokenizers` and `tiktoken`.

    python3 tests/golden/tokens_by_libraries.py build/test/bin/tokens_show [--seconds 60 | --count N] [--only NAME...]
        [--file CORPUS...] [--large]

The tokenizers are those of tests/golden/tokens; --large: Unigram tokenizers of 8,000 pieces with SentencePiece's own
maps of characters, learned from the first megabyte of CORPUS. Texts are mixed from words that broke tokenizers, from
characters of all planes, and from pieces of the files. Code points that a library classifies differently from Unicode
15.0 are named at the start and left out.
"""

import argparse
import json
import pathlib
import random
import struct
import subprocess
import tempfile
import time

import tiktoken.load
from tokenizers import Tokenizer
from make_tokens_fixture import TIKTOKEN, WORDS, albert, t5, xlmr

FOLDER = pathlib.Path(__file__).resolve().parent / "tokens"


class Ours:
    def __init__(self, program, path):
        self.child = subprocess.Popen([program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def encode(self, text):
        data = text.encode()
        self.child.stdin.write(struct.pack("<I", len(data)) + data)
        self.child.stdin.flush()
        count, = struct.unpack("<I", self.child.stdout.read(4))
        return list(struct.unpack(f"<{count}i", self.child.stdout.read(4 * count)))


def theirs(path):
    if path.suffix == ".json":
        tokenizer = Tokenizer.from_file(str(path))
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    ranks = tiktoken.load.load_tiktoken_bpe(str(path))
    encoding = tiktoken.Encoding(path.stem, pat_str=TIKTOKEN[path.stem][1], mergeable_ranks=ranks,
                                 special_tokens={"<|endoftext|>": len(ranks) + (path.stem != "gpt2")})
    return lambda text: encoding.encode(text, allowed_special="all")


def learned(files, into):
    """Trains with the maps of characters of the published T5, ALBERT and XLM-R files."""
    lines = [line for line in files[0][:1 << 20].splitlines() if line.strip() and "\0" not in line]
    for name, make, rules in (("t5", t5, "nmt_nfkc"), ("albert", albert, "nmt_nfkc_cf"), ("xlmr", xlmr, "nmt_nfkc")):
        path = pathlib.Path(into) / f"{name}_large.json"
        path.write_text(make(8000, rules, lines).to_str(), encoding="utf-8")
        yield path


def strange(ours, library):
    """Returns the code points that only one of the two classifies as a letter, number, space or mark."""
    out = set()
    for code in range(1, 0x40000):
        if not 0xd800 <= code < 0xe000:
            # Between two unknown characters, a number is a token of its own where others join them.
            text = (f"{chr(code)}'s {chr(code)}1{chr(code)}\n  {chr(code)} .{chr(code)} e\u0301{chr(code)}"
                    f" b\u0301{chr(code)}\u0323 \u88ad{chr(code)}\u88ad")
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
    parser.add_argument("--count", type=int, default=0, help="texts for each tokenizer, instead of seconds for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[""], help="tokenizers with one of these in their names")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--file", nargs="*", default=[])
    arguments = parser.parse_args()
    files = [pathlib.Path(path).read_text(encoding="utf-8", errors="replace") for path in arguments.file]
    paths = [FOLDER / name for name in sorted(json.loads((FOLDER / "cases.json").read_text()))
             if any(part in name for part in arguments.only)]
    folder = tempfile.TemporaryDirectory()
    if arguments.large:
        paths += learned(files, folder.name)
    for path in paths:
        name = path.name
        ours, library = Ours(arguments.program, path), theirs(path)
        avoided = strange(ours, library)
        print(f"{name}: {len(avoided)} code points differ: {' '.join(f'{ord(c):04X}' for c in sorted(avoided)[:12])}")
        source, count, size = random.Random(arguments.seed), 0, 0
        for data in files:
            clean = "".join(c for c in data if c not in avoided)
            assert ours.encode(clean) == library(clean), f"{name}: a whole file"
        end = time.monotonic() + arguments.seconds / len(paths)
        while count < arguments.count or (arguments.count == 0 and time.monotonic() < end):
            text = text_of(source, files, avoided)
            wanted, got = library(text), ours.encode(text)
            assert wanted == got, f"{name}: {text!r}\n{wanted}\n{got}"
            count, size = count + 1, size + len(text)
        print(f"{name}: {count} texts, {size} characters, and {len(files)} files: the same ids")


if __name__ == "__main__":
    main()
