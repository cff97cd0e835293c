#!/usr/bin/env python3
"""Text into tokens on one core, MB a second of the processor: ours, the libraries `tokenizers` and `tiktoken`.

    dtrun data train-tokenizer FILE --vocab 32000 -o T.json
    tests/bench/text_to_tokens.py build/test/bin/tokens_show T.json FILE

T.json splits as GPT-2 does. All three take the same file, in turn, with the same vocabulary; the best of each.
"""

import argparse
import json
import os
import subprocess
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def pieces(text, size=1 << 20):
    """Of about this size, each up to the end of a line: the libraries keep much of every token of a text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size) + 1
        yield text[start : end or len(text)]
        start = end or len(text)


def by_tokenizers(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def by_tiktoken(path):
    import tiktoken

    vocab = json.load(open(path, encoding="utf-8"))["model"]["vocab"]
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in kept}
    letters.update({chr(256 + i): byte for i, byte in enumerate(byte for byte in range(256) if byte not in kept)})
    ranks = {bytes(letters[c] for c in token): rank for token, rank in vocab.items()
             if all(c in letters for c in token) and token != "<|endoftext|>"}
    encoding = tiktoken.Encoding("learned", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def measured(encode, texts, size):
    best, tokens = None, 0
    for _ in range(3):
        begun = time.process_time()
        tokens = sum(encode(text) for text in texts)
        taken = time.process_time() - begun
        best = taken if best is None else min(best, taken)
    return f"{tokens} tokens, {size / best / 1e6:.1f} MB/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("tokenizer")
    parser.add_argument("file")
    arguments = parser.parse_args()
    text = open(arguments.file, encoding="utf-8", newline="").read()
    texts, size = list(pieces(text)), len(text.encode())
    ours = subprocess.run([arguments.program, arguments.tokenizer, arguments.file], check=True, capture_output=True,
                          text=True).stdout
    print("dtrun     ", ours.strip())
    for name, make in (("tokenizers", by_tokenizers), ("tiktoken", by_tiktoken)):
        print(f"{name:10}", measured(make(arguments.tokenizer), texts, size))


main()
