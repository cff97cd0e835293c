#!/usr/bin/env python3
"""Writes tests/golden/tokens/: tiny tokenizers, and the ids that the libraries `tokenizers` and `tiktoken` give texts
with them.

    python3 tests/golden/make_tokens_fixture.py [FILE...]     (tokenizers, tiktoken, sentencepiece)

Files that are not named stay unchanged: what is learned depends on the current documents of this project.


gpt2.json, llama3.json, qwen.json, smollm2.json   byte-level, with the normalizers, pre-tokenizers and model
                                        options of these families, learned from the documents of this project
llama2.json                             characters with byte fallback, spaces by the normalizer
metaspace.json, metaspace_split.json    the same, spaces by the pre-tokenizer
deepseek_v3.json, deepseek_coder.json, deepseek_v2.json   byte-level, split in stages as these families split
o200k.json                              byte-level, split as GPT-4o's and Llama 4's
t5.json, albert.json, xlmr.json         Unigram, learned by SentencePiece, with the normalizers and pre-tokenizers of
                                        these families and small maps of characters
unigram_bytes.json                      Unigram with byte fallback on whole texts
unigram_ties.json                       Unigram of a few pieces: equal sums, equal pieces, unknown characters in a row
                                        that together are a piece
tekken.json, qwen35.json                byte-level, split as Mistral's and Qwen3.5's
gemma.json, barthez.json, seamless.json   of transformers' classes for these families
split_after.json                        characters, with a Split that joins matches with the text before them
metaspace_digits.json                   Unigram, with single digits after Metaspace
bert.json, bert_cased.json              WordPiece, lower case without accents, and with other options
gpt2.tiktoken, cl100k_base.tiktoken, o200k_base.tiktoken   the tokens of gpt2.json, llama3.json and o200k.json as
                                        tiktoken has them
cases.json                              {FILE: [[text, [id, ...]], ...]}, without the tokens that a post-processor adds
"""

import base64
import importlib
import io
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
import tiktoken
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
# Returns the stages of Split in DeepSeek's files; None: single digits. The ranges of V2's letters are shortened here.
DEEPSEEK = {
    "v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
           r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
           r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", None],
    "v2": ["[\r\n]", r"\s?[A-Za-z" + "\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0370-\u0373"
           "\u0376\u0377\u037b-\u037d\u03f7-\u0481\u1e00-\u1f15\u2126\u212a-\u212d\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a"
           "\U00010400-\U0001044f]+", r"\s?[!-/:-~" + "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
           "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", None]}
MARK = "\u2581"
# Returns a map of characters, of the kind that SentencePiece compiles: keys and their replacements.
RULES = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u2028": " ", "\ufb01": "fi", "\u212b": "\u00c5",
         "e\u0301": "\u00e9", "\u00bd": "1\u20442", "\u2167": "VIII", "\uff21": "A", "\u00ad": "", "\u200d": "",
         "\u0344": "\u0308\u0301", "\u1112\u1161\u11ab": "\ud55c"}

FIRST = ("gpt2.json", "llama3.json", "qwen.json", "smollm2.json", "llama2.json", "metaspace.json", "metaspace_split.json",
         "gpt2.tiktoken", "cl100k_base.tiktoken")
TIKTOKEN = {"gpt2": ("gpt2.json", GPT2), "cl100k_base": ("llama3.json", CL100K), "o200k_base": ("o200k.json", O200K)}

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


def texts(mixed):
    source = random.Random(1)
    out = ["", " ", "\n", "a", "Hello, world!", "  Hello   world  \n\n", "I'll we'VE it'S he'd 12345 x1y2",
           "line one\r\nline two\r\n\r\n  indented\tand tabbed  "] + WORDS
    for _ in range(mixed):
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
    """Bytes are tokens of the model, not added tokens, as in Llama 2's file."""
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


def staged(stages, special):
    steps = [pre_tokenizers.Split(Regex(stage), "isolated") if stage else pre_tokenizers.Digits(individual_digits=True)
             for stage in stages]
    out = Tokenizer(models.BPE())
    out.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    out.decoder = decoders.ByteLevel()
    return learn_bytes(out, special)


def field_of(message, wanted):
    """Returns the bytes of a field in a protocol buffers message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 2:
            size = number()
            if key >> 3 == wanted:
                return message[at:at + size]
            at += size
        else:
            at += {1: 8, 5: 4}[key & 7] if key & 7 else 0
            if key & 7 == 0:
                number()
    return b""


def learn_pieces(size, rules=None, texts=None, **options):
    """Returns pieces with their scores, and the map of characters in base64, as SentencePiece learns them."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        if isinstance(rules, dict):
            for key, value in rules.items():
                file.write("\t".join(" ".join(f"{ord(c):X}" for c in part) for part in (key, value)) + "\n")
            file.flush()
            options["normalization_rule_tsv"] = file.name
        else:
            options["normalization_rule_name"] = rules
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts or [line.rstrip("\n") for line in corpus() if "\0" not in line]),
            model_writer=model, vocab_size=size, model_type="unigram", minloglevel=2, num_threads=1, **options)
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [(learned.id_to_piece(i), learned.get_score(i)) for i in range(learned.get_piece_size())]
    return pieces, base64.b64encode(field_of(field_of(model.getvalue(), 3), 2)).decode()


def charsmap(text):
    """Returns a normalizer of the library, which only accepts the map as JSON."""
    return normalizers.Precompiled(base64.b64decode(text))


def unigram(pieces, unknown, normalizer=None, pre_tokenizer=None, bytes_=False):
    out = Tokenizer(models.Unigram(pieces, unknown, bytes_))
    if normalizer:
        out.normalizer = normalizer
    if pre_tokenizer:
        out.pre_tokenizer = pre_tokenizer
    out.decoder = decoders.Metaspace(MARK, "always")
    return out


def special(text, **options):
    return AddedToken(text, normalized=False, special=True, **options)


def t5(size=360, rules=RULES, texts=None):
    pieces, map_ = learn_pieces(size, rules, texts, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    out = unigram(pieces, 2, charsmap(map_), pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")]))
    out.add_special_tokens([special("<pad>"), special("</s>"), special("<unk>"), special("<extra_id_0>")])
    out.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return out


def albert(size=320, rules=RULES, texts=None):
    pieces, map_ = learn_pieces(size, rules, texts, pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    out = unigram(pieces, 1, normalizers.Sequence(
        [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
         normalizers.Lowercase(), charsmap(map_), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(MARK, "always"))
    out.add_special_tokens([special("<pad>"), special("<unk>"), special("[MASK]", lstrip=True)])
    return out


def xlmr(size=360, rules=RULES, texts=None):
    pieces, map_ = learn_pieces(size, rules, texts, pad_id=-1, unk_id=0, bos_id=1, eos_id=2)
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + pieces[3:] + [("<mask>", 0.0)]
    out = unigram(pieces, 3, normalizers.Sequence(
        [charsmap(map_), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), MARK)]),
        pre_tokenizers.Metaspace(MARK, "first"))
    out.add_special_tokens([special("<s>"), special("<pad>"), special("</s>"), special("<unk>"), special("<mask>", lstrip=True)])
    return out


def unigram_bytes():
    pieces, _ = learn_pieces(240, "identity", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    pieces = pieces[:3] + [(f"<0x{byte:02X}>", 0.0) for byte in range(256)] + pieces[3:]
    out = unigram(pieces, 0, normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]), None, True)
    out.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    out.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    return out


def unigram_ties():
    pieces = [("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -2.0), ("ba", -2.0), ("aba", -3.0), ("abab", -4.0),
              ("a", -1.5), (MARK, -1.0), (MARK + "a", -2.0), ("the", -2.0), ("t", 1.0), ("h", 0.0), ("e", -3.0), ("th", 1.0),
              ("he", -3.0), ("xy", 100.0), ("\u4f60", -1.0), ("", -2.0), ("\u4f60\u597d", -20.0), ("aaaaaaaa", -8.0)]
    return unigram(pieces, 0, None, pre_tokenizers.Metaspace(MARK, "never"))


def of_transformers(module, name, parts):
    """Returns the tokenizer that a class of transformers makes of a vocabulary, which `parts` learns for its pre-tokenizer
    and normalizer."""
    made = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    return made(**parts(made()._tokenizer))._tokenizer


def merged(tokenizer, size, first, alphabet=()):
    """Returns the vocabulary and the merges that a BPE learns with a tokenizer's own steps, and special tokens first."""
    learn(tokenizer, size, list(first), list(alphabet))
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


def gemma():
    first = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    out = of_transformers("gemma", "GemmaTokenizer", lambda own: merged(own, 620, first))
    document = json.loads(out.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    out = Tokenizer.from_str(json.dumps(document))
    out.add_tokens([AddedToken(text, normalized=False) for text in ("\n\n", "\n\n\n", MARK * 2, MARK * 3, "<table>")])
    return out


def split_after():
    """Gemma's Split without the normalizer that makes it idle, on bytes and on characters."""
    out = Tokenizer(models.BPE(unk_token="<unk>"))
    out.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("e", "merged_with_previous"),
                                                 pre_tokenizers.Split(" ", "merged_with_previous")])
    return learn(out, 400, ["<unk>"], [])


def qwen35():
    def parts(own):
        return merged(own, 420, ["<|endoftext|>"], pre_tokenizers.ByteLevel.alphabet())
    return of_transformers("qwen3_5", "Qwen3_5Tokenizer", parts)


def barthez():
    pieces, _ = learn_pieces(360, "identity", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return of_transformers("barthez", "BarthezTokenizer", lambda own: {"vocab": first + pieces[3:] + [("<mask>", 0.0)]})


def seamless():
    first = ["<pad>", "<unk>", "<s>", "</s>", "__eng__", "__fra__"]
    return of_transformers("seamless_m4t", "SeamlessM4TTokenizer", lambda own: merged(own, 420, first))


def metaspace_digits():
    pieces, map_ = learn_pieces(360, RULES, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    return unigram(pieces, 0, charsmap(map_), pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(MARK, "always"), pre_tokenizers.Digits(individual_digits=True)]))


def bert(**options):
    first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    out = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    out.normalizer = normalizers.BertNormalizer(**options)
    out.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    out.decoder = decoders.WordPiece()
    out.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=900, special_tokens=first, show_progress=False))
    out.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
    return out


def ranks_of(tokenizer):
    """Returns the tokens of a byte-level tokenizer in the order in which they were learned, without the special
    ones."""
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
        "o200k.json": learn_bytes(byte_level(O200K, ignore_merges=True), ["<|endoftext|>"]),
        "deepseek_v3.json": staged(DEEPSEEK["v3"], ["<|end_of_text|>"]),
        "deepseek_coder.json": staged(DEEPSEEK["coder"], ["<|end_of_text|>"]),
        "deepseek_v2.json": staged(DEEPSEEK["v2"], ["<|end_of_text|>"]),
        "t5.json": t5(),
        "albert.json": albert(),
        "xlmr.json": xlmr(),
        "unigram_bytes.json": unigram_bytes(),
        "unigram_ties.json": unigram_ties(),
        "tekken.json": learn_bytes(byte_level(TEKKEN, ignore_merges=True), ["<unk>", "<s>", "</s>", "[INST]"]),
        "qwen35.json": qwen35(),
        "gemma.json": gemma(),
        "split_after.json": split_after(),
        "barthez.json": barthez(),
        "seamless.json": seamless(),
        "metaspace_digits.json": metaspace_digits(),
        "bert.json": bert(),
        "bert_cased.json": bert(lowercase=False, handle_chinese_chars=False, clean_text=False, strip_accents=True),
    }
    made["qwen.json"].add_tokens([AddedToken("<mask>", lstrip=True, rstrip=True), AddedToken("<|endof", normalized=False)])
    made["llama2.json"].add_tokens([AddedToken("<mask>", normalized=True)])
    wanted = sys.argv[1:] or list(made) + [f"{name}.tiktoken" for name in TIKTOKEN]
    cases = json.loads((out / "cases.json").read_text())
    for name in wanted:
        mixed = texts(160 if name in FIRST else 50)
        if name in made:
            (out / name).write_text(made[name].to_str(pretty=False) + "\n", encoding="utf-8")
            cases[name] = [[text, made[name].encode(text, add_special_tokens=False).ids] for text in mixed]
            continue
        source, pattern = TIKTOKEN[name.removesuffix(".tiktoken")]
        ranks = ranks_of(made[source])
        (out / name).write_text(
            "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                                     special_tokens={"<|endoftext|>": len(ranks) + (source != "gpt2.json")})
        cases[name] = [[text, encoding.encode(text, allowed_special="all")] for text in mixed]
    lines = [f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in of) + "]"
             for name, of in cases.items()]
    (out / "cases.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
