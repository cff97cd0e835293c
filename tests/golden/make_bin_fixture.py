#!/usr/bin/env python3
"""Writes bin/ next to itself: models in the formats of llm.c and llama2.c, of the sizes of those in huggingface/.

llmc.bin, llmc_bf16.bin     the gpt2 and the gpt2_parts of huggingface/, 61 tokens in 64 rows: equal to them to the bit
llama2c_v0.bin              random weights, a head of its own; the legacy header
llama2c_v1.bin              the same blocks, the head is the embedding; the header with a magic number
NAME_expect.safetensors     of the two: tokens I32 (B,T), logits F32 (B,T,V), computed here in double precision as
                            llama2.c computes them: rotary positions rotate adjacent numbers

    python3 tests/golden/make_bin_fixture.py      (nothing but Python)
"""

import json
import math
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "bin"
VOCAB, CONTEXT, B, T = 61, 16, 2, 13
C, F, LAYERS, HEADS, KV_HEADS = 12, 20, 2, 2, 1
D = C // HEADS


def tensors_of(folder):
    """Returns name -> (type, bytes), of all safetensors files of a folder."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        for name, entry in json.loads(raw[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = (entry["dtype"], entry["shape"], raw[8 + length + begin:8 + length + end])
    return found


def write_llmc(name, folder, version, width):
    found = tensors_of(HERE / "huggingface" / folder)
    config = json.loads((HERE / "huggingface" / folder / "config.json").read_text())
    layers, embed = config["n_layer"], config["n_embd"]

    def raw(key, turned=False):
        _, shape, data = found["transformer." + key]
        if not turned:
            return data
        rows, columns = shape  # weight of a Conv1D: (in, out)
        return b"".join(data[(r * columns + c) * width:(r * columns + c + 1) * width]
                        for c in range(columns) for r in range(rows))

    header = [20240326, version, config["n_positions"], VOCAB, layers, config["n_head"], embed, 64]
    out = struct.pack("<256i", *header, *[0] * 248)
    out += raw("wte.weight") + bytes((64 - VOCAB) * embed * width) + raw("wpe.weight")
    for part in ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
                 "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
                 "mlp.c_proj.weight", "mlp.c_proj.bias"):
        for layer in range(layers):
            out += raw(f"h.{layer}.{part}", turned=".c_" in part and part.endswith("weight"))
    out += raw("ln_f.weight") + raw("ln_f.bias")
    (FOLDER / name).write_bytes(out)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def rounded(values):
    return list(struct.unpack(f"<{len(values)}f", floats(values)))


def drawn(source, rows, columns, around=0.0):
    return [rounded([around + source.gauss(0, 0.3) for _ in range(columns)]) for _ in range(rows)]


def make_llama(source):
    kv = KV_HEADS * D
    layer = lambda: dict(n1=drawn(source, 1, C, 1)[0], q=drawn(source, C, C), k=drawn(source, kv, C), v=drawn(source, kv, C),
                         o=drawn(source, C, C), n2=drawn(source, 1, C, 1)[0], gate=drawn(source, F, C),
                         down=drawn(source, C, F), up=drawn(source, F, C))
    return dict(embed=drawn(source, VOCAB, C), layers=[layer() for _ in range(LAYERS)],
                norm=drawn(source, 1, C, 1)[0], head=drawn(source, VOCAB, C))


def flat(matrix):
    return matrix if not isinstance(matrix[0], list) else [value for row in matrix for value in row]


def of_layers(model, *parts):
    return [flat(layer[part]) for part in parts for layer in model["layers"]]


def angles(position):
    return [position / 10000 ** (2 * i / D) for i in range(D // 2)]


def write_llama(model):
    numbers = (C, F, LAYERS, HEADS, KV_HEADS)
    tables = [[turn(a) for t in range(CONTEXT) for a in angles(t)] for turn in (math.cos, math.sin)]
    body = [flat(model["embed"]), *of_layers(model, "n1", "q", "k", "v", "o", "n2", "gate", "down", "up"),
            model["norm"], *tables, flat(model["head"])]
    (FOLDER / "llama2c_v0.bin").write_bytes(struct.pack("<7i", *numbers, -VOCAB, CONTEXT) + b"".join(map(floats, body)))
    head = struct.pack("<Ii7iB", 0x616B3432, 1, *numbers, VOCAB, CONTEXT, 1)
    body = [*of_layers(model, "n1", "n2"), model["norm"], flat(model["embed"]),
            *of_layers(model, "q", "k", "v", "o", "gate", "down", "up")]
    (FOLDER / "llama2c_v1.bin").write_bytes(head + bytes(256 - len(head)) + b"".join(map(floats, body)))


def times(matrix, x):
    return [sum(w * v for w, v in zip(row, x)) for row in matrix]


def norm(x, weight):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + 1e-5)
    return [v * scale * w for v, w in zip(x, weight)]


def turn(x, position):
    """Rotates each head's numbers 2i and 2i + 1, by the i-th angle."""
    out = list(x)
    for start in range(0, len(x), D):
        for i, angle in enumerate(angles(position)):
            a, b = x[start + 2 * i], x[start + 2 * i + 1]
            out[start + 2 * i] = a * math.cos(angle) - b * math.sin(angle)
            out[start + 2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out


def attend(queries, keys, values):
    out = []
    for h in range(HEADS):
        at = h // (HEADS // KV_HEADS) * D
        q = queries[h * D:(h + 1) * D]
        scores = [sum(a * b for a, b in zip(q, key[at:at + D])) / math.sqrt(D) for key in keys]
        most = max(scores)
        shares = [math.exp(score - most) for score in scores]
        out += [sum(s * value[at + i] for s, value in zip(shares, values)) / sum(shares) for i in range(D)]
    return out


def logits(model, tokens, head):
    kept = [([], []) for _ in range(LAYERS)]
    out = []
    for position, token in enumerate(tokens):
        x = list(model["embed"][token])
        for layer, (keys, values) in zip(model["layers"], kept):
            n = norm(x, layer["n1"])
            keys.append(turn(times(layer["k"], n), position))
            values.append(times(layer["v"], n))
            mixed = attend(turn(times(layer["q"], n), position), keys, values)
            x = [a + b for a, b in zip(x, times(layer["o"], mixed))]
            n = norm(x, layer["n2"])
            inner = [g / (1 + math.exp(-g)) * u for g, u in zip(times(layer["gate"], n), times(layer["up"], n))]
            x = [a + b for a, b in zip(x, times(layer["down"], inner))]
        out += times(head, norm(x, model["norm"]))
    return out


def expect(name, model, head, source):
    tokens = [[source.randrange(VOCAB) for _ in range(T)] for _ in range(B)]
    data = struct.pack(f"<{B * T}i", *flat(tokens))
    found = floats([value for row in tokens for value in logits(model, row, head)])
    header = json.dumps({"tokens": {"dtype": "I32", "shape": [B, T], "data_offsets": [0, len(data)]},
                         "logits": {"dtype": "F32", "shape": [B, T, VOCAB],
                                    "data_offsets": [len(data), len(data) + len(found)]}}).encode()
    header += b" " * (-len(header) % 8)
    (FOLDER / f"{name}_expect.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data + found)


def main():
    FOLDER.mkdir(exist_ok=True)
    write_llmc("llmc.bin", "gpt2", 3, 4)
    write_llmc("llmc_bf16.bin", "gpt2_parts", 5, 2)
    source = random.Random(1)
    model = make_llama(source)
    write_llama(model)
    expect("llama2c_v0", model, model["head"], source)
    expect("llama2c_v1", model, model["embed"], source)


if __name__ == "__main__":
    main()
