"""FOLDER TEXT KIND: the tokenizer.json of an exported model of characters or bytes gives the ids of dtrun. It is read
by the library tokenizers if it is installed, otherwise by the rules below.
"""
import json
import pathlib
import sys

folder, text, kind = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes(), sys.argv[3]
made = json.loads((folder / "tokenizer.json").read_text())
assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
if kind == "char":
    known = {c: i for i, c in enumerate(sorted(set(text.decode())))}
    ids = [known[c] for c in text.decode()]
    assert made["model"]["type"] == "WordLevel" and made["model"]["vocab"] == known, made["model"]
else:
    ids = list(text)
    assert made["model"]["type"] == "BPE" and made["model"]["merges"] == []
    assert sorted(made["model"]["vocab"].values()) == list(range(256))
    assert made["model"]["vocab"]["\u0120"] == 32 and made["model"]["vocab"]["a"] == 97
try:
    import tokenizers
except ImportError:
    sys.exit(0)
library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
assert library.encode(text.decode()).ids == ids
assert library.decode(ids).encode() == text
if kind == "char":
    try:
        library.encode("\u4e00")
    except Exception:
        sys.exit(0)
    raise AssertionError("a character that is no token has an id")
