#!/usr/bin/env python3
"""Token files as other programs write them, read back token by token.

    data_bins.py PATH_OF_data_show

Written here from the formats' descriptions alone: llm.c's header of 256 int32 (20240520/1 with
uint16, 20240801/7 with uint32) and nanoGPT's bare uint16; one by one, three joined by a list, and
by a glob in the order of their names.
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
    print("every token came back")


main()
