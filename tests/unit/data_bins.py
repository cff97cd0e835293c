#!/usr/bin/env python3
"""Token files as other programs write them, read back token by token.

    data_bins.py PATH_OF_data_show

Writes them from the descriptions of the formats: llm.c's header of 256 int32 (20240520/1 with
uint16, 20240801/7 with uint32), nanoGPT's bare uint16 and fairseq's .bin with its .idx in every
width; singly, three in a list, and by a glob in the order of their names.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile


def llmc(tokens, magic, version, code):
    header = [magic, version, len(tokens)] + [0] * 253
    return struct.pack("<256i", *header) + struct.pack(f"<{len(tokens)}{code}", *tokens)


def nanogpt(tokens):
    return struct.pack(f"<{len(tokens)}H", *tokens)


# fairseq's MMapIndexedDataset: the number of a type, and its name in struct.
FAIRSEQ_TYPES = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H", 9: "I", 10: "Q"}


def fairseq(prefix, sentences, number, documents=None):
    code = FAIRSEQ_TYPES[number]
    with open(prefix + ".bin", "wb") as file:
        for sentence in sentences:
            file.write(struct.pack(f"<{len(sentence)}{code}", *sentence))
    begins, at = [], 0
    for sentence in sentences:
        begins.append(at)
        at += len(sentence) * struct.calcsize(code)
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQ", 1, number, len(sentences)))
        if documents is not None:  # Megatron's: the first sentence of each, and where the last one ends
            file.write(struct.pack("<Q", len(documents)))
        file.write(struct.pack(f"<{len(begins)}i", *map(len, sentences)))
        file.write(struct.pack(f"<{len(begins)}q", *begins))
        file.write(struct.pack(f"<{len(documents or [])}q", *(documents or [])))


def refuse(program, kind, path, *texts):
    done = subprocess.run([program, kind, path], capture_output=True, text=True, check=False)
    if done.returncode != 1 or any(text not in done.stderr for text in texts):
        sys.exit(f"{path}: expected {texts}: {done.returncode} {done.stdout[:80]} {done.stderr}")


def read_fairseq(program, draw):
    for number, code in FAIRSEQ_TYPES.items():
        most = min(2 ** (8 * struct.calcsize(code) - code.islower()), 300000)
        sentences = [[draw.randrange(4, most) for _ in range(draw.randrange(1, 30))] + [2] for _ in range(99)]
        fairseq("f", sentences, number)
        expect(show(program, "auto", "f.bin"), sum(sentences, []), f"fairseq, type {number}")
    fairseq("g", sentences, 4, documents=[0, 7, 99])
    expect(show(program, "auto", "g.bin"), sum(sentences, []), "Megatron")
    index = open("f.idx", "rb").read()
    for name, content, texts in (
        ("cut", index[:-1], ("says 99 sentences", "cut off")),
        ("many", index[:18] + struct.pack("<Q", 2**63) + index[26:], ("9223372036854775808 sentences",)),
        ("version", index[:9] + struct.pack("<Q", 2) + index[17:], ("version 2",)),
        ("float", index[:17] + b"\6" + index[18:], ("type 6", "not an integer")),
        ("type", index[:17] + b"\xff" + index[18:], ("type 255",)),
        ("other", index[:-8] + struct.pack("<q", 1 << 40) + index[:0], ("one of them is cut off",)),
        ("old", b"TNTIDX\0\0" + index[8:], ("--dataset-impl mmap",)),
    ):
        with open("f.idx", "wb") as file:
            file.write(content)
        refuse(program, "auto", "f.bin", "f.idx", *texts)
    with open("f.idx", "wb") as file:  # a file of another program: none of its words
        file.write(b"xyz")
    with open("f.bin", "wb") as file:
        file.write(nanogpt([5, 6, 7] * 9))
    expect(show(program, "auto", "f.bin"), [5, 6, 7] * 9, "beside another's .idx")
    with open("f.bin", "wb") as file:
        file.write(b"12345")
    refuse(program, "int32", "f.bin", "tokens of 4 bytes")


def show(program, kind, *files):
    done = subprocess.run([program, kind, *files], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{kind} {files}: {done.stderr}")
    vocab, *tokens = done.stdout.split("\n")[:-1]
    return int(vocab.split()[1]), [int(token) for token in tokens]


def expect(got, tokens, what):
    if got != (max(tokens) + 1, tokens):
        sys.exit(f"{what}: wrote {len(tokens)} tokens, read others back")


def main():
    program = os.path.abspath(sys.argv[1])
    draw = random.Random(17)
    gpt2 = [draw.randrange(50257) for _ in range(1001)]
    llama = [draw.randrange(128256) for _ in range(777)] + [128255]
    plain = [draw.randrange(65536) for _ in range(1234)] + [65535]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, content in (
            ("c.bin", llmc(gpt2, 20240520, 1, "H")),
            ("a.bin", llmc(llama, 20240801, 7, "I")),
            ("b.bin", nanogpt(plain)),
        ):
            with open(name, "wb") as file:
                file.write(content)
        expect(show(program, "llmc", "c.bin"), gpt2, "llm.c, version 1")
        expect(show(program, "llmc", "a.bin"), llama, "llm.c, version 7")
        expect(show(program, "nanogpt", "b.bin"), plain, "nanoGPT")
        expect(show(program, "auto", "c.bin", "a.bin", "b.bin"), gpt2 + llama + plain, "a list")
        expect(show(program, "auto", "*.bin"), llama + plain + gpt2, "a glob")
        read_fairseq(program, draw)
    print("every token came back")


main()
