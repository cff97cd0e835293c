#!/usr/bin/env python3
"""Writes a small parallel corpus: numbers in words, and the same in digits.

    python3 examples/translation_corpus.py [DIR]     # examples/ where DIR is left out

train.words, train.digits   4,000 numbers below a million, a line each: "four thousand two" / "4 0 0 2"
valid.words, valid.digits   200 others
dict.words.txt, dict.digits.txt   the words of each, as fairseq-preprocess writes them
"""
import collections
import pathlib
import random
import sys

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(n):
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10 - 2]] + (words(n % 10) if n % 10 else [])
    size, name = (100, "hundred") if n < 1000 else (1000, "thousand")
    return words(n // size) + [name] + (words(n % size) if n % size else [])


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/..").resolve()
    draw = random.Random(1)
    numbers = list(dict.fromkeys(draw.randrange(10 ** draw.randrange(1, 7)) for _ in range(12000)))[:4200]
    counts = {"words": collections.Counter(), "digits": collections.Counter()}
    draw.shuffle(numbers)
    for name, part in (("train", numbers[:4000]), ("valid", numbers[4000:])):
        sides = {"words": [words(n) for n in part], "digits": [list(str(n)) for n in part]}
        for side, lines in sides.items():
            (folder / f"{name}.{side}").write_text("".join(" ".join(line) + "\n" for line in lines))
            counts[side].update(token for line in lines for token in line)
    for side, count in counts.items():
        (folder / f"dict.{side}.txt").write_text("".join(f"{t} {n}\n" for t, n in count.most_common()))


main()
