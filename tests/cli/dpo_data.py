#!/usr/bin/env python3
"""Makes a folder of weights with a tokenizer and a chat template, and pairs of answers.

    dpo_data.py MODEL FOLDER     MODEL: tests/golden/huggingface/llama; writes FOLDER/model and FOLDER/pairs.jsonl
"""

import json
import pathlib
import random
import shutil
import sys

TEMPLATE = ("{% for m in messages %}<u>{% if m['role'] == 'assistant' %}<a>{% endif %}{{ m['content'] }}<e>"
            "{% endfor %}{% if add_generation_prompt %}<u><a>{% endif %}")


def tokenizer():
    specials = ["<u>", "<a>", "<e>"]
    letters = list("abcdefghijklmnopqrstuvwxyz") + ["\u0120"]
    vocab = {token: number for number, token in enumerate(specials + letters)}
    added = [{"id": number, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True} for number, token in enumerate(specials)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                      "merges": []}}


def main():
    folder = pathlib.Path(sys.argv[2])
    shutil.copytree(sys.argv[1], folder / "model")
    (folder / "model" / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "model" / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<e>", "chat_template": TEMPLATE}))
    draw = random.Random(3)

    def word(letters, count):
        return "".join(draw.choice(letters) for _ in range(count))

    with open(folder / "pairs.jsonl", "w", encoding="ascii") as out:
        for i in range(40):
            prompt, good, bad = word("abc", draw.randrange(2, 9)), word("def", draw.randrange(2, 9)), word("xyz", 5)
            texts = {"prompt": prompt, "chosen": good, "rejected": bad}
            lists = {"prompt": [{"role": "user", "content": prompt}],
                     "chosen": [{"role": "assistant", "content": good}],
                     "rejected": [{"role": "assistant", "content": bad}]}
            whole = {key: lists["prompt"] + lists[key] for key in ("chosen", "rejected")}
            out.write(json.dumps((texts, lists, whole)[i % 3]) + "\n")


main()
