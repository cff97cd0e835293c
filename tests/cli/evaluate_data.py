#!/usr/bin/env python3
"""FOLDER KIND: makes FOLDER/model, a tiny model of tests/golden/huggingface with a tokenizer of letters, and three tasks:
choice.jsonl, answer.jsonl and text.jsonl. Some prompts are empty, end in a space, or exceed the context of 16 tokens.
`tests/peers/evaluate.py BIN --given FOLDER` compares them with lm_eval.
"""
import json
import pathlib
import random
import shutil
import sys

top, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
golden = pathlib.Path(__file__).parent.parent / "golden" / "huggingface" / kind
top.mkdir(parents=True, exist_ok=True)
shutil.copytree(golden, top / "model", dirs_exist_ok=True)
letters = "abcdefghijklmnopqrstuvwxyz0123456789.,:;!?()'-+=ABCDEFGHIJK"
vocab = {letter: i for i, letter in enumerate("\u0120" + letters)}
end = len(vocab)
assert end == 60, end
vocab["<end>"] = end
added = [{"id": end, "content": "<end>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
          "special": True}]
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
(top / "model" / "tokenizer.json").write_text(json.dumps(
    {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None,
     "decoder": byte_level, "truncation": None, "padding": None,
     "model": {"type": "BPE", "vocab": vocab, "merges": []}}))
(top / "model" / "tokenizer_config.json").write_text(json.dumps(
    {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "pad_token": "<end>"}))
config = json.loads((top / "model" / "config.json").read_text())
config["max_position_embeddings" if kind != "gpt2" else "n_positions"] = 16
(top / "model" / "config.json").write_text(json.dumps(config))

rng = random.Random(5)


def words(least, most):
    return " ".join("".join(rng.choice("abcdefgh") for _ in range(rng.randint(1, 4))) for _ in
                    range(rng.randint(least, most)))


choice, answer, text = [], [{"defaults": {"until": ["9", "B"], "tokens": 4}}], []
for i in range(24):
    choices = [words(1, 2) for _ in range(3)]
    prompt = "" if i == 3 else words(1, 3) + (" " if i == 4 else "")
    choice.append({"prompt": prompt, "choices": choices, "answer": [0, 2] if i == 9 else rng.randrange(3), "id": i})
    answer.append({"prompt": words(1, 3), "answer": ["++++", "22xu"] if i % 3 > 0 else "no"})
    text.append({"text": words(1, 12) + (" " if i % 5 == 0 else "")})
for name, rows in (("choice", choice), ("answer", answer), ("text", text)):
    (top / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
