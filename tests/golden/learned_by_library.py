#!/usr/bin/env python3
"""On demand: compares `dtrun data train-tokenizer` with the trainer of the library `tokenizers`.

    python3 tests/golden/learned_by_library.py build/test/bin/dtrun [--texts 250] [--file TEXT] [--vocab 16384]

Compares vocabulary and merges for random texts and for a file; for the file also the seconds.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile
import time

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

LETTERS = ["ab", "abc", "a", "ab ", "aé ", "日本語 a\n", "ab'st 19\r\n\t", "🙂🙃 x"]


def ours(program, text_file, out, vocab, least, split):
    start = time.monotonic()
    subprocess.run([program, "data", "train-tokenizer", text_file, "--vocab", str(vocab), "--least-count", str(least),
                    "--split", split, "--force", "-o", out], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return json.loads(pathlib.Path(out).read_text()), time.monotonic() - start


def theirs(text, vocab, least, pre_tokenizer):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pre_tokenizer["type"] == "Sequence":
        expression = pre_tokenizer["pretokenizers"][0]["pattern"]["Regex"]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(expression), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=vocab, min_frequency=least, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    start = time.monotonic()
    tokenizer.train_from_iterator([text], trainer)
    return json.loads(tokenizer.to_str())["model"], time.monotonic() - start


def compare(args, folder, text, vocab, least, split):
    path, out = folder / "text.txt", folder / "tokenizer.json"
    path.write_bytes(text.encode())
    learned, seconds = ours(args.program, path, out, vocab, least, split)
    expected, their_seconds = theirs(text, vocab, least, learned["pre_tokenizer"])
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in expected["merges"]]
    assert learned["model"]["vocab"] == expected["vocab"], (text[:80], vocab, least, split)
    assert learned["model"]["merges"] == merges, (text[:80], vocab, least, split)
    assert Tokenizer.from_file(str(out)).decode(Tokenizer.from_file(str(out)).encode("wörd").ids) == "wörd"
    return seconds, their_seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--texts", type=int, default=250)
    parser.add_argument("--file", type=pathlib.Path)
    parser.add_argument("--vocab", type=int, default=16384)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for seed in range(args.texts):
            by = random.Random(seed)
            letters = by.choice(LETTERS)
            text = "".join(by.choice(letters) for _ in range(by.choice([5, 50, 500, 3000])))
            compare(args, folder, text, by.choice([257, 260, 300, 600]), by.choice([1, 2, 3]),
                    by.choice(["gpt2", "llama3", "qwen"]))
        print(f"{args.texts} texts by chance: equal")
        if args.file:
            text = args.file.read_bytes().decode()
            for split in ["gpt2", "llama3"]:
                seconds = compare(args, folder, text, args.vocab, 2, split)
                print(f"{args.file}, {split}, {args.vocab} tokens: equal; {seconds[0]:.1f} s, the library {seconds[1]:.1f} s")


if __name__ == "__main__":
    main()
