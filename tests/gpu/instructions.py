#!/usr/bin/env python3
"""Counts the instructions of a warp for one tile, in the machine code of the attention kernels.

    instructions.py CUOBJDUMP OBJECT [--most FILE]

Prints a line for each kernel of flash attention in bf16 without dropout: architecture, name, width of heads, and for
its loop over tiles the number of instructions (all paths, including the diagonal's masks), products on the tensor
cores, loads for these (ldmatrix), exponentials, copies into shared memory, and spills (loads and stores of local
memory). A tile of wgmma_forward (sm_90a) has 128 keys,
those of the others 64; a warp has 16 rows of it, and its products are those of its warpgroup. With --most: fails if a
kernel has more instructions or spills than FILE allows (the same lines).
"""

import argparse
import re
import subprocess
import sys

KERNEL = re.compile(r"Function : (\S*?(wgmma_forward|forward|backward_queries|backward_keys)I13__nv_bfloat16Li(\d+)E(?:Lb0E|EE)\S*)")
PRODUCTS = ("HMMA", "HGMMA")
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);")
KINDS = {"mma": PRODUCTS, "ldmatrix": "LDSM", "exp2": "MUFU.EX2", "copies": "LDGSTS"}


def loop_of(code):
    """Returns the instructions between the target of a backward jump and the jump: the loop with the most products, and
    of these the shortest."""
    best = []
    for at, (address, name, rest) in enumerate(code):
        target = re.search(r"0x([0-9a-f]+)", rest)
        if not name.startswith("BRA") or not target or int(target[1], 16) >= address:
            continue
        body = [one for one in code[: at + 1] if one[0] >= int(target[1], 16)]
        products = [sum(one[1].startswith(PRODUCTS) for one in loop) for loop in (body, best)]
        if products[0] > products[1] or (products[0] == products[1] and products[0] and len(body) < len(best)):
            best = body
    return best


def counts(dump):
    architecture, kernel, code, found = "", None, [], {}

    def close():
        if kernel and code:
            loop = [one[1] for one in loop_of(code) if one[1] != "NOP"]
            spills = sum(one[1].startswith(("LDL", "STL")) for one in code)
            found[(architecture, kernel[2], kernel[3])] = [len(loop)] + [
                sum(name.startswith(prefix) for name in loop) for prefix in KINDS.values()] + [spills]  # fmt: skip

    for line in dump.splitlines():
        if "Function :" in line:
            close()
            kernel, code = KERNEL.search(line), []
        elif "arch = " in line:
            close()
            architecture, kernel = line.split("arch = ")[1].strip(), None
        elif kernel and (match := LINE.search(line)):
            code.append((int(match[1], 16), match[2], match[3]))
    close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cuobjdump")
    parser.add_argument("object")
    parser.add_argument("--most")
    args = parser.parse_args()
    found = counts(subprocess.run([args.cuobjdump, "-sass", args.object], capture_output=True, text=True, check=True).stdout)
    if not found:
        sys.exit(f"{args.object} has no kernel of flash attention")
    print("arch kernel heads instructions", *KINDS, "spills")
    for key, values in sorted(found.items()):
        print(*key, *values)
    if not args.most:
        return
    allowed = {tuple(words[:3]): words[3:] for words in (line.split() for line in open(args.most)) if words and words[0] != "#"}
    worse = [f"{' '.join(key)}: {values[0]} instructions a tile and {values[-1]} spills, {allowed[key][0]} and {allowed[key][-1]} are allowed"
             for key, values in sorted(found.items())
             if key in allowed and (values[0] > int(allowed[key][0]) or values[-1] > int(allowed[key][-1]))]  # fmt: skip
    unknown = [" ".join(key) for key in found if key not in allowed and key[0] in {known[0] for known in allowed}]
    if worse or unknown:
        sys.exit("\n".join(["FAILED:", *worse, *(f"{name}: not in {args.most}" for name in unknown)]))


main()
