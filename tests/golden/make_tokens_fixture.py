#!/usr/bin/env python3
"""Writes tests/golden/tokens/: tiny tokenizers, and what the libraries `tokenizers` and `tiktoken`
make of texts with them.

    python3 tests/golden/make_tokens_fixture.py     (tokenizers, tiktoken)

gpt2.json, llama3.json, qwen.json, smollm2.json   byte-level, with the normalizers, pre-tokenizers and model
                                        options of these families, learned from the documents of this project
llama2.json                             characters with byte fallback, spaces by the normalizer
metaspace.json, metaspace_split.json    the same, spaces by the pre-tokenizer
gpt2.tiktoken, cl100k_base.tiktoken     the tokens of gpt2.json and llama3.json as tiktoken has them
cases.json                              {FILE: [[text, [id, ...]], ...]}, without what a post-processor adds
"""

import base64
import json
import pathlib
import random

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
MARK = "\u2581"

WORDS = ["the", "The", "THE", " ", "  ", "   ", "\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "'s",
         "'S", "'\u017f", "'ll", "'LL", "'re", "'x", "'", "''", "don't", "I'M", "0", "7", "42", "1234", "1234567",
         "\u00bd", "\u2167", "\u0663\u0664", "caf\u00e9", "cafe\u0301", "na\u00efve", "\u00df", "\u01c5", "\u4f60\u597d",
         "\u3053\u3093", "\ud55c\uad6d", "\u1112\u1161\u11ab", "\u0915\u094d\u0937", "\u0939\u093f", "\u05e9\u05dc",
         "\u0645\u0631", "\U0001f600", "\U0001f469\u200d\U0001f680", "\u0301", "\u0323\u0307", "\u212b", "\u0344",
         "\ufb01", "\u2126", "\U0002f800", "\U00010400", "\x7f", "\u00ad", "\ufeff", "\ufffd", "_", "-", "--",
         "...", "?!", "(", ")", "{}", "//", "#", "$5", "a_b", "x=1;", MARK, MARK * 2, "<|endoftext|>", "<|endof",
         "<|im_start|>", "<|eot_id|>", "<s>", "</s>", "<unk>", "<0x41>", "<mask>", "\n\n", " \n ", "\n  x", "tokens",
         "training", "checkpoint", "ing", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]


def corpus():
    for path in sorted(ROOT.glob("docs/*.md"))[:9] + [ROOT / "README.md"]:
        yield from path.read_text(encoding="utf-8").splitlines(keepends=True)
    yield from WORDS * 5


def texts():
    source = random.Random(1)
    out = ["", " ", "\n", "a", "Hello, world!", "  Hello   world  \n\n", "I'll we'VE it'S he'd 12345 x1y2",
           "line one\r\nline two\r\n\r\n  indented\tand tabbed  "] + WORDS
    for _ in range(160):
        out.append("".join(source.choice(WORDS) for _ in range(source.randint(1, 14))))
    return out


def byte_level(split, normalizer=None, digits=False, **options):
    out = Tokenizer(models.BPE(**options))
    if normalizer:
        out.normalizer = normalizer
    own = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    steps = ([pre_tokenizers.Split(Regex(split), "isolated")] if split else []) + [own]
    if digits:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    out.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else own
    out.decoder = decoders.ByteLevel()
    return out


def learn(tokenizer, size, special, alphabet):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def learn_bytes(tokenizer, special):
    return learn(tokenizer, 420, special, pre_tokenizers.ByteLevel.alphabet())


def learn_characters(normalizer, pre_tokenizer):
    """Bytes are tokens of the model, and not added ones, as in Llama 2's file."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    learn(tokenizer, 560, ["<unk>", "<s>", "</s>"] + names, [])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(document))


def ranks_of(tokenizer):
    """The tokens of a byte-level tokenizer in the order in which they were learned, without the special ones."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = [byte for byte in range(256) if 0x21 <= byte <= 0x7e or 0xa1 <= byte <= 0xac or byte >= 0xae]
    others = [byte for byte in range(256) if byte not in plain]
    code = {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}
    assert set(letters) == set(code)
    ranks = {bytes([byte]): byte for byte in range(256)}
    for pair in json.loads(tokenizer.to_str())["model"]["merges"]:
        ranks.setdefault(bytes(code[c] for c in "".join(pair)), len(ranks))
    return ranks


def main():
    out = HERE / "tokens"
    out.mkdir(exist_ok=True)
    made = {
        "gpt2.json": learn_bytes(byte_level(None), ["<|endoftext|>"]),
        "llama3.json": learn_bytes(byte_level(LLAMA3, ignore_merges=True), ["<|begin_of_text|>", "<|end_of_text|>",
                                                                           "<|eot_id|>"]),
        "qwen.json": learn_bytes(byte_level(QWEN, normalizers.NFC()), ["<|endoftext|>", "<|im_start|>"]),
        "smollm2.json": learn_bytes(byte_level(None, digits=True), ["<|endoftext|>", "<|im_start|>"]),
        "llama2.json": learn_characters(normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
                                        None),
        "metaspace.json": learn_characters(None, pre_tokenizers.Metaspace(MARK, "first", False)),
        "metaspace_split.json": learn_characters(None, pre_tokenizers.Metaspace(MARK, "always", True)),
    }
    made["qwen.json"].add_tokens([AddedToken("<mask>", lstrip=True, rstrip=True), AddedToken("<|endof", normalized=False)])
    made["llama2.json"].add_tokens([AddedToken("<mask>", normalized=True)])
    cases = {}
    for name, tokenizer in made.items():
        (out / name).write_text(tokenizer.to_str(pretty=False) + "\n", encoding="utf-8")
        cases[name] = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts()]
    for name, source, pattern in (("gpt2", "gpt2.json", GPT2), ("cl100k_base", "llama3.json", CL100K)):
        ranks = ranks_of(made[source])
        (out / f"{name}.tiktoken").write_text(
            "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        special = {"<|endoftext|>": len(ranks) + (name == "cl100k_base")}
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        cases[f"{name}.tiktoken"] = [[text, encoding.encode(text, allowed_special="all")] for text in texts()]
    lines = [f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in of) + "]"
             for name, of in cases.items()]
    (out / "cases.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
