#!/usr/bin/env python3
"""Writes unicode_classes.inc and unicode_nfc.inc from Debian's package unicode-data.

    engine/tokens/unicode_tables.py [--from /usr/share/unicode] [--into engine/tokens]

They lie in the repository, so that a build needs no package, and a text has the same tokens wherever
it is built.
"""
import argparse
import os

LETTER, NUMBER, SPACE, UNSTABLE = 1, 2, 3, 4
LAST = 0x40000  # beyond it no code point has a class, nor a decomposition
BLOCK = 256     # code points


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        for line in file:
            fields = [field.strip() for field in line.split("#")[0].split(";")]
            if fields[0]:
                yield fields


def span(field):
    ends = [int(end, 16) for end in field.split("..")]
    return range(ends[0], ends[-1] + 1)


def read(folder):
    category, combining, pairs = {}, {}, {}
    first = None
    for fields in lines(folder, "UnicodeData.txt"):
        code = int(fields[0], 16)
        start = first if fields[1].endswith(", Last>") else code
        first = code if fields[1].endswith(", First>") else None
        for each in range(start, code + 1):
            category[each] = fields[2]
        if fields[3] != "0":
            combining[code] = int(fields[3])
        if fields[5] and not fields[5].startswith("<"):
            pairs[code] = tuple(int(part, 16) for part in fields[5].split())
    spaces = {code for fields in lines(folder, "PropList.txt") if fields[1] == "White_Space" for code in span(fields[0])}
    changes, excluded = set(combining), set()
    for fields in lines(folder, "DerivedNormalizationProps.txt"):
        if fields[1] == "NFC_QC":
            changes.update(span(fields[0]))
        elif fields[1] == "Full_Composition_Exclusion":
            excluded.update(span(fields[0]))
    assert not spaces & changes - {0x2000, 0x2001} and max(pairs) < LAST
    return category, combining, pairs, spaces, changes, excluded


def classes(category, spaces, changes):
    out = bytearray(LAST)
    for code, name in category.items():
        if code < LAST:
            out[code] = LETTER if name[0] == "L" else NUMBER if name[0] == "N" else 0
    for code in spaces:
        out[code] = SPACE
    for code in changes:
        out[code] |= UNSTABLE
    return out


def write(path, parts):
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* Made by engine/tokens/unicode_tables.py. */\n" + "\n".join(parts) + "\n")


def table(kind, name, size, texts, per_line):
    rows = [", ".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line)]
    return f"static const {kind} {name}[{size}] = {{\n    " + ",\n    ".join(rows) + "};"


def write_classes(path, out):
    blocks, places = [], []
    for start in range(0, LAST, BLOCK):
        block = bytes(out[start:start + BLOCK])
        if block not in blocks:
            blocks.append(block)
        places.append(str(blocks.index(block)))
    assert len(blocks) <= 256
    words = []
    for block in blocks:
        for i in range(0, BLOCK, 16):
            words.append("0x%xu" % sum(code_class << 4 * k for k, code_class in enumerate(block[i:i + 16])) + "ll")
    write(path, [table("uint8_t", "class_blocks", LAST // BLOCK, places, 24),
                 table("uint64_t", "class_words", len(words), words, 5)])


def write_nfc(path, combining, pairs, excluded):
    order = sorted(combining)
    split = sorted(pairs)
    joined = sorted((pair, code) for code, pair in pairs.items() if len(pair) == 2 and code not in excluded)
    whole = [pairs[code] + (0,) if len(pairs[code]) == 1 else pairs[code] for code in split]
    write(path, [
        table("struct order", "orders", len(order), ["{0x%x, %d}" % (c, combining[c]) for c in order], 7),
        table("struct pair", "pairs", len(split),
              ["{0x%x, 0x%x, 0x%x}" % (c, a, b) for c, (a, b) in zip(split, whole)], 4),
        table("struct pair", "joins", len(joined),
              ["{0x%x, 0x%x, 0x%x}" % (code, *pair) for pair, code in joined], 4)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="folder", default="/usr/share/unicode")
    parser.add_argument("--into", default=os.path.dirname(os.path.abspath(__file__)))
    arguments = parser.parse_args()
    category, combining, pairs, spaces, changes, excluded = read(arguments.folder)
    write_classes(os.path.join(arguments.into, "unicode_classes.inc"), classes(category, spaces, changes))
    write_nfc(os.path.join(arguments.into, "unicode_nfc.inc"), combining, pairs, excluded)


if __name__ == "__main__":
    main()
