#!/usr/bin/env python3
"""Makes folders for GGUF files, and checks the files.

tokenizer FOLDER: adds the files of a byte-level tokenizer of 61 tokens, with two merges and a chat template, to a folder.
pieces FOLDER: makes the files of a tokenizer with tokens for bytes, 266 tokens, whose merges are those of SentencePiece.
set FOLDER KEY=JSON...: changes keys of config.json; a model whose head is tied loses its own.
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


PIECES = ["\u2581", "t", "h", "e", "th", "\u2581th", "\u2581the", "\u2581\u2581"]
# by the scores of SentencePiece: first marks, then th, then all pairs of a token one after another
MERGES = ["\u2581 \u2581", "t h", "\u2581 th", "\u2581th e"]


def make_pieces(folder, merges=MERGES):
    texts = ["<unk>", "<end>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    special = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": i < 2} for i, text in enumerate(texts) if i < 2 or text == "\u2581\u2581"]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": special, "normalizer": space, "post_processor": None,
         "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
         "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                                      {"type": "ByteFallback"}, {"type": "Fuse"}]},
         "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate(texts)}, "merges": merges, "unk_token": "<unk>",
                   "byte_fallback": True, "fuse_unk": True}}))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>"}))


def check_pieces(path):
    keys = Reader(path.read_bytes()).keys
    assert keys["tokenizer.ggml.model"] == "llama" and "tokenizer.ggml.merges" not in keys
    assert keys["tokenizer.ggml.token_type"] == [2, 3] + [6] * 256 + [1] * len(PIECES), keys["tokenizer.ggml.token_type"]
    scores = dict(zip(keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.scores"]))
    made = [merge.replace(" ", "") for merge in MERGES]
    assert sorted(made, key=scores.get, reverse=True) == made and all(scores[text] < scores[made[-1]] for text in "the")
    assert keys["tokenizer.ggml.add_space_prefix"] is False and keys["tokenizer.ggml.unknown_token_id"] == 0
    assert keys["tokenizer.ggml.eos_token_id"] == 1 and keys["tokenizer.ggml.add_bos_token"] is False


def drop_head(path):
    text = path.read_bytes()
    length, = struct.unpack_from("<Q", text)
    header, data = json.loads(text[8:8 + length]), b""
    for name, entry in header.copy().items():
        if name == "lm_head.weight":
            del header[name]
        elif name != "__metadata__":
            begin, end = entry["data_offsets"]
            entry["data_offsets"] = [len(data), len(data) + end - begin]
            data += text[8 + length + begin:8 + length + end]
    header = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def set_keys(folder, settings):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for setting in settings:
        key, _, value = setting.partition("=")
        *outer, last = key.split(".")
        place = config
        for name in outer:
            place = place[name]
        place[last] = json.loads(value)
    if config["tie_word_embeddings"]:
        drop_head(folder / "model.safetensors")
    path.write_text(json.dumps(config))


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


PAIRED = ("llama", "mistral", "granite", "smollm3")  # rows of queries and keys are pairs


def rename(kind, name):
    parts = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "lm_head": "output",
             "embed_tokens": "token_embd", "norm": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
             "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "self_attn.qkv_proj": "attn_qkv",
             "mlp.gate_up_proj": "ffn_up", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm"}
    if kind in ("olmo2", "gemma2", "gemma3_text"):
        parts["post_attention_layernorm"] = "post_attention_norm"
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
    if kind in PAIRED and ("q_proj" in name or "k_proj" in name):
        heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
        width = len(rows) // heads
        rows = [rows[r // width * width + r % 2 * (width // 2) + r % width // 2] for r in range(len(rows))]
        return shape, [value for row in rows for value in row]
    if kind.startswith("gemma") and name.endswith("norm.weight"):
        return shape, [single(1 + value) for value in values]
    return shape, values


def same(got, want):
    return abs(got - want) < 1e-6 * abs(want)


def check_rope(keys, architecture, config, scaling):
    """The keys of rotary positions and of their scaling."""
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    share = config.get("partial_rotary_factor", scaling.get("partial_rotary_factor", 1))
    kind, factor = scaling.get("rope_type", "default"), scaling.get("factor", 1)
    assert keys[f"{architecture}.rope.dimension_count"] == int(width * share)
    assert same(keys[f"{architecture}.rope.freq_base"], config.get("rope_theta", scaling.get("rope_theta")))
    if kind in ("linear", "yarn", "longrope"):
        assert keys[f"{architecture}.rope.scaling.type"] == kind
    if kind in ("linear", "yarn"):
        assert same(keys[f"{architecture}.rope.scaling.factor"], factor)
    if kind in ("yarn", "longrope"):
        original = config.get("original_max_position_embeddings", scaling.get("original_max_position_embeddings"))
        assert keys[f"{architecture}.rope.scaling.original_context_length"] == original
        usual = 1 + 0.1 * math.log(factor)
        one, all_ = scaling.get("mscale"), scaling.get("mscale_all_dim")
        wanted = (1 + 0.1 * one * math.log(factor)) / (1 + 0.1 * all_ * math.log(factor)) if one and all_ else usual
        wanted = wanted / usual if kind == "yarn" else math.sqrt(1 + math.log(factor) / math.log(original))
        assert same(keys[f"{architecture}.rope.scaling.attn_factor"], wanted)
    if "rope_local_base_freq" in config:
        assert same(keys[f"{architecture}.rope.freq_base_swa"], config["rope_local_base_freq"])


def check_values(keys, architecture, config):
    """Keys of some kinds only; of no other."""
    names = {"embedding_multiplier": "embedding_scale", "residual_multiplier": "residual_scale",
             "attention_multiplier": "attention.scale", "logits_scaling": "logit_scale",
             "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping",
             "rms_norm_eps": "attention.layer_norm_rms_epsilon", "layer_norm_eps": "attention.layer_norm_epsilon"}
    for theirs, ours in names.items():
        value = config.get(theirs)
        assert (f"{architecture}.{ours}" in keys) == (value is not None), ours
        assert value is None or same(keys[f"{architecture}.{ours}"], value), ours
    if architecture in ("gemma2", "gemma3"):
        layers = [layer == "sliding_attention" for layer in config["layer_types"]]
        assert keys[f"{architecture}.attention.sliding_window"] == config["sliding_window"]
        every = {"gemma2": 2, "gemma3": 6}[architecture]
        usual = [(i + 1) % every != 0 for i in range(len(layers))]
        assert keys.get(f"{architecture}.attention.sliding_window_pattern", usual) == layers


def factors(config, scaling):
    """The values of the tensors that divide frequencies."""
    if scaling.get("rope_type") == "longrope":
        return {"rope_factors_long.weight": scaling["long_factor"], "rope_factors_short.weight": scaling["short_factor"]}
    if scaling.get("rope_type") != "llama3":
        return {}
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    out = []
    for i in range(width // 2):
        wave = 2 * math.pi * config.get("rope_theta", scaling.get("rope_theta")) ** (2 * i / width)
        low, high = (scaling["original_max_position_embeddings"] / scaling[f"{part}_freq_factor"] for part in ("low", "high"))
        smooth = ((scaling["original_max_position_embeddings"] / wave - scaling["low_freq_factor"])
                  / (scaling["high_freq_factor"] - scaling["low_freq_factor"]))
        out.append(1 if wave < high else scaling["factor"] if wave > low else
                   1 / ((1 - smooth) / scaling["factor"] + smooth))
    return {"rope_freqs.weight": out}


def check(folder, path, kind_of_values):
    config = json.loads((folder / "config.json").read_text())
    kind = config["model_type"]
    architecture = {"mistral": "llama", "gemma3_text": "gemma3"}.get(kind, kind)
    file = Reader(path.read_bytes())
    seen, end = set(), file.data
    tensors = list(read_folder(folder))
    if kind in ("olmo2", "stablelm") and config["tie_word_embeddings"]:
        tensors += [("lm_head.weight", *rest) for name, *rest in tensors if name == "model.embed_tokens.weight"]
    for name, shape, values in tensors:
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
    for name, wanted in factors(config, scaling).items():
        (count,), number, offset = file.tensors[name]
        got = struct.unpack_from(f"<{count}f", file.bytes, file.data + offset)
        assert number == 0 and count == len(wanted) and all(map(same, got, wanted)), (name, got, wanted)
        seen.add(name)
        end = max(end, file.data + offset + (4 * count + 31) // 32 * 32)
    assert seen == file.tensors.keys() and end == len(file.bytes), (seen ^ file.tensors.keys(), end, len(file.bytes))
    keys = file.keys
    assert keys["general.architecture"] == architecture and keys[f"{architecture}.block_count"] == 2, keys
    heads = config.get("n_head", config.get("num_attention_heads"))
    assert keys[f"{architecture}.attention.head_count"] == heads
    assert keys[f"{architecture}.embedding_length"] == config.get("n_embd", config.get("hidden_size"))
    if kind != "gpt2":
        check_rope(keys, architecture, config, scaling)
        check_values(keys, architecture, config)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    assert keys["tokenizer.ggml.tokens"] == [*tokens, "<end>"]
    assert keys["tokenizer.ggml.token_type"] == [1] * 60 + [3]
    assert keys["tokenizer.ggml.merges"] == ["t h", "th e"]
    assert keys["tokenizer.ggml.eos_token_id"] == 60 and keys["tokenizer.ggml.pre"] == "gpt-2"
    assert keys["tokenizer.ggml.add_bos_token"] == (kind == "llama")
    assert keys["tokenizer.chat_template"] == TEMPLATE


command, folder, *rest = sys.argv[1:]
folder = pathlib.Path(folder)
if command == "tokenizer":
    make_tokenizer(folder)
elif command == "pieces":
    make_pieces(folder, [merge for merge in MERGES if merge not in rest])
elif command == "set":
    set_keys(folder, rest)
elif command == "check-pieces":
    check_pieces(folder)
else:
    check(folder, pathlib.Path(rest[0]), rest[1])
