#!/usr/bin/env python3
"""tokenizer FOLDER: adds the files of a byte-level tokenizer of 61 tokens, with two merges and a chat template, to a folder.
check FOLDER FILE TYPE: a reader of GGUF files of our own; FILE must have what an export of the same run to FOLDER has.
"""
import json
import math
import pathlib
import struct
import sys

TEMPLATE = "{{ messages[0]['content'] }}<end>"


def make_tokenizer(folder):
    letters = ["\u0120", *"abcdefghijklmnopqrstuvwxyz0123456789.,:;!?()'-+=ABCDEF", "th", "the", "\u010a", "G", "H"]
    assert len(letters) == 60, len(letters)
    # a template without and with a begin token
    text, token = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}
    single = [token, text] if folder.name == "llama" else [text]
    post = {"type": "TemplateProcessing", "single": single, "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<end>": {"id": "<end>", "ids": [60], "tokens": ["<end>"]}}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": 60, "content": "<end>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True}]
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level, "post_processor": post,
         "decoder": byte_level, "truncation": None, "padding": None,
         "model": {"type": "BPE", "vocab": {letter: i for i, letter in enumerate(letters)},
                   "merges": [["t", "h"], "th e".split()]}}))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "chat_template": TEMPLATE}))


class Reader:
    FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, bytes_):
        self.bytes, self.at = bytes_, 0
        assert self.bytes[:4] == b"GGUF"
        self.at = 4
        assert self.number("I") == 3
        tensors, keys = self.number("Q"), self.number("Q")
        self.keys = {}
        for _ in range(keys):
            key = self.text()
            assert key not in self.keys, key
            self.keys[key] = self.value(self.number("I"))
        self.tensors = {}
        for _ in range(tensors):
            name = self.text()
            dims = [self.number("Q") for _ in range(self.number("I"))]
            self.tensors[name] = (dims, self.number("I"), self.number("Q"))
        self.data = (self.at + 31) // 32 * 32

    def number(self, code):
        value, = struct.unpack_from("<" + code, self.bytes, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.bytes[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(self.FORMATS[kind])


def half(value):
    return struct.pack("<e", value)


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bf16(value):
    bits, = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)


def q8_0(values):
    out = b""
    for first in range(0, len(values), 32):
        block = values[first:first + 32]
        scale = single(max(map(abs, block)) / 127)
        inverse = single(1 / scale) if scale else 0.0
        out += half(scale)
        for value in block:
            scaled = single(value * inverse)
            out += struct.pack("<b", int(math.copysign(math.floor(abs(scaled) + 0.5), scaled)))
    return out


def read_folder(folder):
    text = (folder / "model.safetensors").read_bytes()
    length, = struct.unpack_from("<Q", text)
    for name, entry in json.loads(text[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", text[8 + length + begin:8 + length + end]))


def rename(kind, name):
    parts = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "lm_head": "output",
             "embed_tokens": "token_embd", "norm": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
             "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    words = name.removeprefix("transformer.").removeprefix("model.").split(".")
    block = f"blk.{words[1]}." if words[0] in ("h", "layers") else ""
    inner = ".".join(words[2:-1] if block else words[:-1])
    return f"{block}{parts[inner]}.{words[-1]}"


def arrange(kind, name, shape, values, config):
    """Shape and values as the file has them."""
    columns = shape[-1] if len(shape) > 1 else 1
    rows = [values[i:i + columns] for i in range(0, len(values), columns)]
    if kind == "gpt2" and len(shape) == 2 and any(part in name for part in ("c_attn", "c_proj", "c_fc")):
        return shape[::-1], [value for row in zip(*rows) for value in row]
    if kind == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
        width = len(rows) // heads
        rows = [rows[r // width * width + r % 2 * (width // 2) + r % width // 2] for r in range(len(rows))]
        return shape, [value for row in rows for value in row]
    return shape, values


def check(folder, path, kind_of_values):
    config = json.loads((folder / "config.json").read_text())
    kind = config["model_type"]
    file = Reader(path.read_bytes())
    seen, end = set(), file.data
    for name, shape, values in read_folder(folder):
        ours = rename(kind, name)
        shape, values = arrange(kind, name, shape, values, config)
        dims, number, offset = file.tensors[ours]
        word = kind_of_values
        if len(shape) < 2 or ours == "position_embd.weight":
            word = "f32"
        elif word == "q8_0" and shape[-1] % 32:
            word = "f16"
        data = {"f32": lambda: struct.pack(f"<{len(values)}f", *values), "f16": lambda: b"".join(map(half, values)),
                "bf16": lambda: b"".join(map(bf16, values)), "q8_0": lambda: q8_0(values)}[word]()
        assert dims == shape[::-1], (ours, dims, shape)
        assert number == {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}[word], (ours, number)
        assert offset % 32 == 0 and file.bytes[file.data + offset:file.data + offset + len(data)] == data, ours
        seen.add(ours)
        end = max(end, file.data + offset + (len(data) + 31) // 32 * 32)
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if scaling.get("rope_type") == "llama3":
        (count,), number, offset = file.tensors["rope_freqs.weight"]
        base, width = config.get("rope_theta", scaling.get("rope_theta")), 2 * count
        for i, got in enumerate(struct.unpack_from(f"<{count}f", file.bytes, file.data + offset)):
            wave = 2 * math.pi * base ** (2 * i / width)
            low, high = (scaling["original_max_position_embeddings"] / scaling[f"{part}_freq_factor"] for part in ("low", "high"))
            smooth = ((scaling["original_max_position_embeddings"] / wave - scaling["low_freq_factor"])
                      / (scaling["high_freq_factor"] - scaling["low_freq_factor"]))
            want = 1 if wave < high else scaling["factor"] if wave > low else 1 / ((1 - smooth) / scaling["factor"] + smooth)
            assert number == 0 and abs(got - want) < 1e-6 * want, (i, got, want)
        seen.add("rope_freqs.weight")
        end = max(end, file.data + offset + (4 * count + 31) // 32 * 32)
    if scaling.get("rope_type") == "linear":
        assert file.keys[f"{kind}.rope.scaling.type"] == "linear"
        assert file.keys[f"{kind}.rope.scaling.factor"] == scaling["factor"]
    assert seen == file.tensors.keys() and end == len(file.bytes), (seen ^ file.tensors.keys(), end, len(file.bytes))
    keys = file.keys
    assert keys["general.architecture"] == kind and keys[f"{kind}.block_count"] == 2, keys
    heads = config.get("n_head", config.get("num_attention_heads"))
    assert keys[f"{kind}.attention.head_count"] == heads
    assert keys[f"{kind}.embedding_length"] == config.get("n_embd", config.get("hidden_size"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    assert keys["tokenizer.ggml.tokens"] == [*tokens, "<end>"]
    assert keys["tokenizer.ggml.token_type"] == [1] * 60 + [3]
    assert keys["tokenizer.ggml.merges"] == ["t h", "th e"]
    assert keys["tokenizer.ggml.eos_token_id"] == 60 and keys["tokenizer.ggml.pre"] == "gpt-2"
    assert keys["tokenizer.ggml.add_bos_token"] == (kind == "llama")
    assert keys["tokenizer.chat_template"] == TEMPLATE


if sys.argv[1] == "tokenizer":
    make_tokenizer(pathlib.Path(sys.argv[2]))
else:
    check(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4])
