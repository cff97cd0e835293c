"""Rows of tests/bench/tokens.py: byte-fallback BPE as in Llama 2, and `dtrun data prepare` of jsonl.

The texts are documentation, manuals, headers and scripts below /usr, in many languages. The peers are tokenizers,
sentencepiece (the same model, learned by it) and datasets, in processes of their own (peer_tokens.py). Rates of one
thread are by processor time, the others by elapsed time. They are medians; a peer that takes minutes has one round."""

import datetime
import gzip
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time
from array import array

import runs
from peer_tokens import cut, digest

FOLDER = runs.BUILD / "tokens"
FOLDERS = ("share/doc", "share/man", "share/info", "include", "lib/python3", "lib/python3.11", "share/perl")
BINARY = (".so", ".a", ".pyc", ".png", ".pdf", ".js", ".css")
HEADER = 1024  # bytes before the ids in a file of tokens
MANY = 10000   # documents
SPECIAL = ("<s>", "</s>", "<unk>")  # tokens that tokenizers finds in a text and sentencepiece does not


# --- texts


def system_texts(seed):
    """Returns the UTF-8 texts of a Debian system, in an order drawn from the seed."""
    files = [path for name in FOLDERS for path in sorted((pathlib.Path("/usr") / name).rglob("*"))
             if path.is_file() and not path.is_symlink() and path.suffix not in BINARY]
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            text = path.read_bytes()
            text = (gzip.decompress(text) if path.suffix == ".gz" else text).decode()[:200_000]
        except (OSError, EOFError, ValueError):
            continue
        if text and "\0" not in text and not any(token in text for token in SPECIAL):
            yield str(path), text


def write_text(path, size, seed):
    have = 0
    with open(path, "w", encoding="utf-8", newline="") as out:
        for _, text in system_texts(seed):
            out.write(text + "\n")
            have += len(text.encode()) + 1
            if have >= size:
                return
    raise runs.Failed(f"this system has only {have / 1e6:.0f} MB of text: ask for less")


def write_jsonl(path, size, seed):
    """Starts again with the first file if the system has too little text."""
    have = 0
    with open(path, "w", encoding="utf-8", newline="") as out:
        while have < size:
            for source, text in system_texts(seed):
                have += out.write(json.dumps({"source": source, "text": text}, ensure_ascii=False) + "\n")
                if have >= size:
                    return


# --- dtrun and the libraries


class Settings:
    """sizes in megabytes: of the text, and of the jsonl."""

    def __init__(self, megabytes, jsonl_megabytes, rounds):
        self.size, self.jsonl_size = int(megabytes * 1e6), int(jsonl_megabytes * 1e6)
        self.rounds, self.threads = rounds, len(os.sched_getaffinity(0))
        FOLDER.mkdir(parents=True, exist_ok=True)

    def made(self, name, make):
        """Returns a file of the folder, and makes it if it does not exist."""
        path = FOLDER / name
        if not path.exists():
            make(path)
        return path

    def text(self):
        return self.made(f"mixed-{self.size}.txt", lambda path: write_text(path, self.size, 1))

    def sample(self):
        """Returns the text that the models learn from."""
        return self.made(f"sample-{self.size}.txt", lambda path: write_text(path, min(self.size, 60_000_000), 2))

    def byte_tokenizer(self):
        vocab = 32000 if self.size >= 30_000_000 else 2000
        return self.made(f"bytes-{self.size}.json",
                         lambda path: theirs("learn", tokenizer=path, text=self.sample(), vocab=vocab))

    def split_tokenizer(self):
        return self.made(f"split-{self.size}.json", lambda path: runs.output(
            "dtrun", "data", "train-tokenizer", self.sample(), "--vocab", 32000, "-o", path))


def theirs(what, **options):
    args = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("peer_tokens.py"), what, *args],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise runs.Failed(f"the peer failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def write_documents(texts):
    """Writes texts as tokens_show reads them: each after its length."""
    path = FOLDER / "bytes.documents"
    path.write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in map(str.encode, texts)))
    return path


def our_rates(settings, tokenizer, texts, size):
    """Returns MB a second of one thread, by processor time, and of all threads, by elapsed time, and a digest of the
    ids."""
    path, rates = write_documents(texts), []
    for threads, clock in ((1, 2), (settings.threads, 1)):
        lines = runs.output("tokens_show", tokenizer, path, threads, settings.rounds).splitlines()
        rates.append(size / statistics.median(float(line.split()[clock]) for line in lines) / 1e6)
    made = hashlib.sha256()
    with open(path, "rb") as source, subprocess.Popen(
            [runs.BUILD / "bin" / "tokens_show", tokenizer], stdin=source, stdout=subprocess.PIPE) as child:
        while length := child.stdout.read(4):
            made.update(child.stdout.read(4 * struct.unpack("<I", length)[0]))
    return *rates, made.hexdigest()


def prepared(settings, tokenizer, text):
    """Runs `dtrun data prepare`. Returns elapsed and processor seconds, the bytes written, and a digest of the ids."""
    cache = FOLDER / "cache"
    recipe = FOLDER / "recipe.yaml"
    recipe.write_text(f"model: {{layers: 2, heads: 2, embed: 64}}\nschedule: {{steps: 1}}\n"
                      f"data: {{train: {text}, tokenizer: {tokenizer}, split: 0.01}}\n")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    wall, processor = [], []
    for _ in range(settings.rounds):
        shutil.rmtree(cache, ignore_errors=True)
        used, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        made = json.loads(runs.output("dtrun", "data", "prepare", recipe, "--json"))
        wall.append(time.perf_counter() - begun)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    ids, total = hashlib.sha256(), 0
    for part in sorted(cache.rglob("part-*.bin")):
        block = part.read_bytes()
        total += len(block)
        wide = struct.unpack_from("<i", block)[0] == 20240801
        ids.update(array("i", array("i" if wide else "H", block[HEADER:])).tobytes())
    return {"wall": statistics.median(wall), "processor": statistics.median(processor), "written": total,
            "tokens": made["train"]["tokens"], "digest": ids.hexdigest()}


def floor_seconds(settings, text, written):
    """Returns the time to read the text and to write this many bytes to the disk, with nothing in between."""
    times = []
    for _ in range(settings.rounds):
        begun = time.perf_counter()
        with open(text, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
        with open(FOLDER / "floor", "wb", buffering=0) as file:
            for _ in range(written >> 20):
                file.write(bytes(1 << 20))
            os.fsync(file.fileno())
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


# --- rows


def row(name, bar, ours, rates, notes):
    best = max(rates, key=rates.get)
    return (name, bar, f"{ours:.1f} MB/s", "; ".join(f"{library} {rate:.1f}" for library, rate in rates.items()),
            f"{ours / rates[best]:.1f}x {best}", "; ".join(notes))


def byte_rows(settings, documents):
    """Several documents are divided over the threads. One document is measured with `dtrun data prepare`, which writes
    files."""
    tokenizer, text = settings.byte_tokenizer(), settings.text()
    size, texts = text.stat().st_size, cut(text.read_bytes(), documents)
    one, all_threads, same = our_rates(settings, tokenizer, texts, size)
    if documents == 1:
        all_threads = size / prepared(settings, tokenizer, text)["wall"] / 1e6
    name = f"byte-fallback BPE, {len(texts):,} document{'s' if documents > 1 else ''} of {size / 1e6:.0f} MB in all"
    rows = ((f"{name}, one thread", ">= 20 MB/s", one, 1, "processor"),
            (f"the same, {settings.threads} threads" + (", files written" if documents == 1 else ""), "all threads",
             all_threads, settings.threads, "wall"))
    for title, bar, ours, threads, clock in rows:
        rates, notes = {}, []
        for library in ("tokenizers", "sentencepiece"):
            made = theirs("encode", library=library, tokenizer=tokenizer, text=text, documents=documents,
                          threads=threads, rounds=1 if documents == 1 else min(3, settings.rounds))
            rates[library] = size / statistics.median(made[clock]) / 1e6
            notes.append(f"{library}: {'equal' if made['digest'] == same else 'other ids'}")
        yield row(title, bar, ours, rates, notes)


def prepare_rows(settings):
    text = settings.made(f"mixed-{settings.jsonl_size}.jsonl", lambda path: write_jsonl(path, settings.jsonl_size, 3))
    size = text.stat().st_size
    for kind, tokenizer in (("as GPT-2", settings.split_tokenizer()), ("byte fallback", settings.byte_tokenizer())):
        vocab = json.load(open(tokenizer, encoding="utf-8"))
        end = next(token["id"] for token in vocab["added_tokens"] if token["content"] in ("<|endoftext|>", "</s>"))
        ours = prepared(settings, tokenizer, text)
        peer = theirs("prepare", tokenizer=tokenizer, text=text, threads=settings.threads, end=end,
                      cache=FOLDER / "datasets")
        floor = floor_seconds(settings, text, ours["written"])
        yield (f"data prepare, {size / 1e6:.0f} MB of jsonl, {kind}, {settings.threads} threads", ">= 10x, or the floor",
               f"{ours['wall']:.2f} s ({ours['processor']:.1f} s of the processor)",
               f"datasets {peer['wall'][0]:.1f} s ({peer['processor'][0]:.1f} s of the processor)",
               f"{peer['wall'][0] / ours['wall']:.1f}x ({peer['processor'][0] / ours['processor']:.1f}x by processor)",
               f"{'equal' if peer['digest'] == ours['digest'] else 'other ids'}; floor {floor:.2f} s: "
               f"{size / 1e6:.0f} MB read, {ours['written'] / 1e6:.0f} MB written")


MEASURES = {
    "bytes_one": lambda settings: byte_rows(settings, 1),
    "bytes_many": lambda settings: byte_rows(settings, MANY),
    "prepare": prepare_rows,
}


def print_rows(names, megabytes, jsonl_megabytes, rounds):
    settings = Settings(megabytes, jsonl_megabytes, rounds)
    print(f"\n{datetime.date.today()}, {runs.machine()}, load {os.getloadavg()[0]:.1f}\n\n"
          "| measure | bar | dtrun | libraries | ratio | ids, floor |\n|---|---|---|---|---|---|")
    for name in names:
        for cells in MEASURES[name](settings):
            print("| " + " | ".join(cells) + " |", flush=True)
