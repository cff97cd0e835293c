#!/usr/bin/env python3
"""An adapter of a fused model.

make BASE FOLDER: writes an adapter, as PEFT has it, of the fused matrices of a Phi-3 in BASE.
check BASE FOLDER MERGED: every matrix of MERGED is that of BASE plus scale B A; in double precision here.
"""
import json
import pathlib
import random
import struct
import sys

MODULES = ["self_attn.qkv_proj", "mlp.gate_up_proj", "mlp.down_proj"]
RANK, ALPHA = 3, 6


def read(path):
    text = path.read_bytes()
    length, = struct.unpack_from("<Q", text)
    out = {}
    for name, entry in json.loads(text[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = struct.unpack(f"<{(end - begin) // 4}f", text[8 + length + begin:8 + length + end])
            columns = entry["shape"][-1]
            out[name] = [values[i:i + columns] for i in range(0, len(values), columns)]
    return out


def write(path, tensors):
    header, data = {}, b""
    for name, rows in tensors.items():
        start = len(data)
        data += b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make(base, folder):
    draw, tensors = random.Random(5), {}
    for name, rows in read(base / "model.safetensors").items():
        if any(f".{module}.weight" in name for module in MODULES):
            stem = f"base_model.model.{name.removesuffix('.weight')}"
            tensors[f"{stem}.lora_A.weight"] = [[draw.gauss(0, 0.3) for _ in rows[0]] for _ in range(RANK)]
            tensors[f"{stem}.lora_B.weight"] = [[draw.gauss(0, 0.3) for _ in range(RANK)] for _ in rows]
    folder.mkdir()
    write(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0, "bias": "none",
         "target_modules": [module.split(".")[1] for module in MODULES]}))


def check(base, folder, merged):
    adapter = read(folder / "adapter_model.safetensors")
    after = read(merged / "model.safetensors")
    changed = 0
    for name, rows in read(base / "model.safetensors").items():
        stem = f"base_model.model.{name.removesuffix('.weight')}"
        left, right = adapter.get(f"{stem}.lora_B.weight"), adapter.get(f"{stem}.lora_A.weight")
        for r, row in enumerate(rows):
            for c, value in enumerate(row):
                more = sum(left[r][k] * right[k][c] for k in range(RANK)) * ALPHA / RANK if left else 0
                assert abs(after[name][r][c] - value - more) < 1e-6, (name, r, c)
        changed += left is not None
    assert changed == 2 * len(MODULES), changed


{"make": make, "check": check}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
