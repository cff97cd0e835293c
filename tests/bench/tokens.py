#!/usr/bin/env python3
"""Measures tokenizing on one thread and on all threads: dtrun and the libraries `tokenizers` and `tiktoken`, in turn.

    PYTHON tests/bench/tokens.py [--megabytes 100] [--rounds 5] [--only NAME]... [--text FILE] [--processor]
                                 [--jsonl 200]

PYTHON has both libraries. The text is the English text of this machine: manuals without roff's macros, documentation,
and whatever else below /usr/share and /usr/lib is mostly English, no file twice. The vocabularies are learned from it.
All programs get the same documents of about 100 kB. A library counts in its faster mode: one document after another, or
a batch; for one thread also a batch on one thread. The ids of all are compared. dtrun starts each round with an empty
cache. --processor: measure processor time for one thread, on a busy machine. Text and vocabularies are kept in
build/bench-release/tokens. bytes_one, bytes_many and prepare are in tokens_bytes.py, which needs sentencepiece and
datasets too.
"""

import argparse
import array
import collections
import datetime
import filecmp
import glob
import gzip
import hashlib
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import time

import runs
import tokens_bytes

FOLDER = runs.BUILD / "tokens"
ROOTS = ["/usr/share/doc", "/usr/share/man/man*", "/usr/share/info", "/usr/share/perl", "/usr/share/vim",
         "/usr/lib/python3*", "/usr/share/common-licenses", "/usr/include", "/usr/share", "/usr/lib"]
FREQUENT = re.compile(rb"\b(?:the|of|to|and|is|in|a|that|for|with)\b")
DOCUMENT = 100_000

# name: the split and size of a vocabulary to learn. Both libraries support a tokenizer.json with any of these splits.
Row = collections.namedtuple("Row", "split vocab peers")
ROWS = {
    "gpt2": Row("gpt2", 50257, ("tokenizers", "tiktoken")),
    "llama3": Row("llama3", 100_000, ("tokenizers", "tiktoken")),
    "qwen": Row("qwen", 100_000, ("tokenizers", "tiktoken")),
}
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


# --- the text


def without_roff(data):
    """Returns the text of a manual: lines of macros lose the macro, comments are removed, escapes become what they
    show."""
    lines = []
    for line in data.split(b"\n"):
        if line[:1] in (b".", b"'"):
            parts = line[1:].split(None, 1)
            if len(parts) < 2 or parts[0][:2] in (b'\\"', b"de", b"if", b"ie", b"nr", b"ds", b"TH"):
                continue
            line = parts[1].replace(b'"', b"")
        lines.append(re.sub(rb"\\(?:f(?:\(..|\[.*?\]|.)|[&|^/,]|s[-+]?\d+)", b"", line).replace(b"\\-", b"-")
                     .replace(b"\\(aq", b"'").replace(b"\\(cq", b"'").replace(b"\\e", b"\\"))
    return b"\n".join(lines)


def english(path, seen):
    """Returns the text of a file, or None if it is not English, or if a file with this content was read before."""
    try:
        data = path.read_bytes() if path.is_file() and path.stat().st_size < 1 << 26 else b""
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        if "/man/man" in str(path):
            data = without_roff(data)
        data.decode()
    except (OSError, EOFError, ValueError):
        return None
    digest = hashlib.sha1(data).digest()
    if len(data) < 500 or b"\0" in data or len(FREQUENT.findall(data)) < 0.11 * len(data) / 6 or digest in seen:
        return None
    seen.add(digest)
    return data


def gather(size):
    seen, parts, total = set(), [], 0
    for root in ROOTS:
        for folder in sorted(glob.glob(root)):
            for path in sorted(pathlib.Path(folder).rglob("*")):
                data = None if path.is_symlink() or "/locale/" in str(path) else english(path, seen)
                if data is not None:
                    parts.append(data)
                    total += len(data)
                if total >= size:
                    return b"\n".join(parts)[:size].decode(errors="ignore")
    return b"\n".join(parts).decode()


def documents(text):
    """Yields pieces of the text of about DOCUMENT characters, which end with a line."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + DOCUMENT) + 1 or len(text)
        yield text[start:end]
        start = end


def prepared(arguments):
    """Returns the file with the documents, each after its length."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    size = int(arguments.megabytes * 1e6)
    name = hashlib.sha1(f"{arguments.text} {size}".encode()).hexdigest()[:8]
    plain, path = FOLDER / f"{name}.txt", FOLDER / f"{name}.documents"
    if not path.exists():
        if arguments.text:
            text = pathlib.Path(arguments.text).read_bytes()[:size].decode(errors="ignore")
        else:
            text = gather(size)
        plain.write_text(text, encoding="utf-8", newline="")
        path.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in map(str.encode, documents(text))))
    return plain, path


def learned(name, row, text):
    path = FOLDER / f"{text.stem}-{name}.json"
    if not path.exists():
        runs.output("dtrun", "data", "train-tokenizer", text, "--split", row.split, "--vocab", row.vocab, "-o", path)
    return path


# --- a library, in a separate process


def read_documents(path):
    data, at, texts = path.read_bytes(), 0, []
    while at < len(data):
        length, = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4:at + 4 + length].decode())
        at += 4 + length
    return texts


def by_tokenizers(path, threads):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    ways = {"batch": lambda texts: batch(texts, add_special_tokens=False)}
    if threads == 1:
        ways["one by one"] = lambda texts: [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    return ways, lambda encoded: encoded.ids


def by_tiktoken(path, threads):
    import tiktoken

    file = json.load(open(path, encoding="utf-8"))
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in kept}
    letters.update({chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in kept)})
    special = {token["content"] for token in file["added_tokens"]}
    ranks = {bytes(letters[c] for c in token): rank for token, rank in file["model"]["vocab"].items()
             if token not in special}
    first = file["pre_tokenizer"].get("pretokenizers", [{}])[0]
    pattern = first["pattern"]["Regex"] if "pattern" in first else GPT2
    encoding = tiktoken.Encoding("learned", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    ways = {"batch": lambda texts: encoding.encode_ordinary_batch(texts, num_threads=threads)}
    if threads == 1:
        ways["one by one"] = lambda texts: [encoding.encode_ordinary(text) for text in texts]
    return ways, lambda encoded: encoded


def peer(name, path, texts_path, threads, ids):
    """Prints for each mode: seconds and processor seconds of all documents. Encodes 32 at a time, because a library's
    results are large. Writes the ids as tokens_show does."""
    texts = read_documents(pathlib.Path(texts_path))
    ways, ids_of = {"tokenizers": by_tokenizers, "tiktoken": by_tiktoken}[name](path, threads)
    for way, encode in ways.items():
        wall = used = 0
        with open(ids, "wb") as out:
            for at in range(0, len(texts), 32):
                begun, begun_used = time.perf_counter(), time.process_time()
                encoded = encode(texts[at:at + 32])
                wall, used = wall + time.perf_counter() - begun, used + time.process_time() - begun_used
                for one in map(ids_of, encoded):
                    out.write(struct.pack("<I", len(one)) + array.array("i", one).tobytes())
        print(json.dumps([way, wall, used]))


def measure_peer(name, path, texts, threads, ids):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads),
                   "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
    command = [sys.executable, __file__, "--peer", name, path, texts, str(threads), ids]
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise runs.Failed(f"{name}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- the table


def rate_of(size, seconds):
    return size / statistics.median(seconds) / 1e6


def measure(name, row, arguments, text, texts):
    path, size = learned(name, row, text), texts.stat().st_size
    mine, theirs = FOLDER / "ids.dtrun", FOLDER / "ids.peer"
    with open(texts, "rb") as source, open(mine, "wb") as ids:
        subprocess.run([runs.BUILD / "bin" / "tokens_show", path], stdin=source, stdout=ids, check=True)
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        clock = 2 if threads == 1 and arguments.processor else 1  # [mode or tokens, seconds, processor seconds]
        taken, equal = collections.defaultdict(list), True
        for _ in range(arguments.rounds):
            for line in runs.output("tokens_show", path, texts, threads, 1).splitlines():
                taken["dtrun", ""].append(float(line.split()[clock]))
            for library in row.peers:
                for one in measure_peer(library, path, texts, threads, theirs):
                    taken[library, one[0]].append(one[clock])
                equal = equal and filecmp.cmp(mine, theirs, shallow=False)
        rates = {way: rate_of(size, seconds) for way, seconds in taken.items()}
        best = max(rate for (program, _), rate in rates.items() if program != "dtrun")
        ours = rates["dtrun", ""]
        peers = [max((rate, way) for (program, way), rate in rates.items() if program == library)
                 for library in row.peers]
        print(f"| {name}, {row.vocab:,} tokens | {threads} | {ours:.0f} ({min(taken['dtrun', '']):.3f} to "
              f"{max(taken['dtrun', '']):.3f} s) | " + " | ".join(f"{rate:.1f} ({way})" for rate, way in peers) +
              f" | {ours / best:.1f}× | {'equal' if equal else 'DIFFER'} |", flush=True)


def print_splits(names, arguments):
    text, texts = prepared(arguments)
    print(f"{datetime.date.today()}, {runs.machine()}, load {os.getloadavg()[0]:.1f}; {texts.stat().st_size / 1e6:.1f} MB, "
          f"{'processor' if arguments.processor else 'elapsed'} time for one thread, medians of {arguments.rounds}\n")
    print("| split, vocabulary | threads | dtrun, MB/s | tokenizers | tiktoken | over the better | ids |\n"
          "|---|---|---|---|---|---|---|")
    for name in names:
        measure(name, ROWS[name], arguments, text, texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--jsonl", type=float, default=200, help="megabytes of jsonl for 'dtrun data prepare'")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[*ROWS, *tokens_bytes.MEASURES])
    parser.add_argument("--text", help="a file, instead of what the machine has of English")
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("--peer", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(*arguments.peer[:3], int(arguments.peer[3]), arguments.peer[4])
    runs.build(["dtrun", "tokens_show"])
    names = arguments.only or [*ROWS, *tokens_bytes.MEASURES]
    if any(name in ROWS for name in names):
        print_splits([name for name in names if name in ROWS], arguments)
    if any(name not in ROWS for name in names):
        tokens_bytes.print_rows([name for name in names if name not in ROWS], 0.6 * arguments.megabytes, arguments.jsonl,
                                arguments.rounds)


main()
