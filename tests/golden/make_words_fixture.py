#!/usr/bin/env python3
"""Makes tests/golden/words: a dictionary as fairseq writes it, codes of subword-nmt of both versions, and the pieces
and ids of lines.

    pip install subword-nmt && tests/golden/make_words_fixture.py

The pieces are those of subword-nmt's apply_bpe; the ids are those of fairseq/data/dictionary.py and
fairseq/tokenizer.py. The few relevant lines are copied here, because fairseq itself needs PyTorch.
"""
import collections
import io
import json
import pathlib
import random
import re

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

HERE = pathlib.Path(__file__).parent / "words"
STEMS = ["haus", "baum", "straße", "grün", "schön", "lauf", "kind", "mann", "wörter", "aaa", "日本", "schiff"]
ENDS = ["", "e", "en", "er", "chen", "heit", "lich", "s"]

draw = random.Random(7)
words = [draw.choice(STEMS) + draw.choice(ENDS) for _ in range(3000)]
lines = [" ".join(words[i : i + draw.randint(3, 9)]) for i in range(0, 3000, 6)]
text = "\n".join(lines) + "\n"


def learn(version):
    out = io.StringIO()
    learn_bpe(io.StringIO(text), out, 60)
    codes = out.getvalue()
    if version == "0.1":  # its merges end with "</w>" as a separate symbol
        codes = codes.split("\n", 1)[1]
        codes = "n </w>\nr </w>\ne n</w>\ne </w>\nu s\nc h\na a\naa a\n" + codes.replace("</w>", "")
    return codes


def pieces(codes, line):
    return BPE(io.StringIO(codes)).process_line(line)


def dictionary(counts):
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    # A word of two words, a line that replaces one above it, and a padding word of fairseq.
    rows = [f"{word} {count}" for word, count in ordered] + ["two words 3", "madeupword0000 0"]
    rows.append(f"{ordered[0][0]} 1 #fairseq:overwrite")
    return "\n".join(rows) + "\n"


def read_dictionary(text):
    indices, count = {}, 0
    for symbol in ["<s>", "<pad>", "</s>", "<unk>"]:
        indices[symbol], count = count, count + 1
    for line in text.splitlines():
        line, field = line.rstrip().rsplit(" ", 1)
        overwrite = field == "#fairseq:overwrite"
        if overwrite:
            line, field = line.rsplit(" ", 1)
        assert line not in indices or overwrite
        indices[line], count = count, count + 1
    return indices


def ids(indices, line):
    found = re.compile(r"\s+").sub(" ", line).strip().split()
    return [indices.get(word, 3) for word in found]


def main():
    HERE.mkdir(exist_ok=True)
    codes = {"0.2": learn("0.2"), "0.1": learn("0.1")}
    counts = collections.Counter(word for line in lines[:300] for word in pieces(codes["0.2"], line).split())
    dict_txt = dictionary(counts)
    indices = read_dictionary(dict_txt)
    tries = lines[300:330] + [
        "", " ", "a", "aaaa aaaaa aaaaaaa", "  häuschen \t kinder  ", "unbekannt xyz q", "日本 日本人 日",
        "ein\u00a0fester leer\u2003raum", "zeile\u001fmit trenner", "two words", "<unk> </s>", "a@@ b",
        "Straßen-Schilder, 12.000 €!", "x" * 300, "schön" * 40]
    made = {"0.2": [], "0.1": []}
    for version, cases in made.items():
        for line in tries:
            cut = pieces(codes[version], line)
            cases.append([line, " ".join(cut.split(" ")).strip(" "), ids(indices, cut)])
    plain = [[line, ids(indices, line)] for line in tries]
    (HERE / "codes-0.2").write_text(codes["0.2"])
    (HERE / "codes-0.1").write_text(codes["0.1"])
    (HERE / "dict.txt").write_text(dict_txt)
    json.dump({"words": plain, **made}, (HERE / "cases.json").open("w"), ensure_ascii=True, indent=0)


main()
