"""The libraries that tests/bench/tokens.py compares with: models learned from a text, texts encoded, jsonl prepared.

Runs in a Python that has tokenizers, sentencepiece and datasets. Each call prints one JSON object."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys
import time
from array import array


def cut(text, count):
    """Cuts the text as tokens_show does: parts of equal size, each up to the end of its line."""
    parts, start = [], 0
    for i in range(1, count + 1):
        end = len(text)
        if i < count:
            end = max(start, text.find(b"\n", max(start, i * len(text) // count)) + 1) or len(text)
        if end > start:
            parts.append(text[start:end].decode())
        start = max(start, end)
    return parts


def digest(lists):
    made = hashlib.sha256()
    for ids in lists:
        made.update(array("i", ids).tobytes())
    return made.hexdigest()


def from_sentencepiece(model, out):
    """Makes a tokenizer.json as that of Llama 2: the pieces of a BPE model of sentencepiece, and the merges that make
    them."""
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocab = {pieces.id_to_piece(i): i for i in range(pieces.get_piece_size())}
    merges = []
    for piece, number in vocab.items():
        halves = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
        halves = [(left, right) for left, right in halves if left in vocab and right in vocab]
        merges += sorted((number, vocab[left], vocab[right], left, right) for left, right in halves)
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    json.dump({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": text, **special} for i, text in enumerate(("<unk>", "<s>", "</s>"))],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": vocab, "merges": [f"{left} {right}" for *_, left, right in sorted(merges)]}},
        open(out, "w", encoding="utf-8"), ensure_ascii=False)


def learn(args):
    """Makes FILE.model and FILE.json, the same model for sentencepiece and for tokenizers."""
    import sentencepiece

    out = pathlib.Path(args.tokenizer)
    sentencepiece.SentencePieceTrainer.train(
        input=args.text, model_prefix=str(out.with_suffix("")), vocab_size=args.vocab, model_type="bpe",
        byte_fallback=True, split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, character_coverage=0.99995, input_sentence_size=200000,
        shuffle_input_sentence=True, minloglevel=2)
    from_sentencepiece(out.with_suffix(".model"), out)
    return {}


def encoder(args):
    if args.library == "sentencepiece":
        import sentencepiece

        pieces = sentencepiece.SentencePieceProcessor(
            model_file=str(pathlib.Path(args.tokenizer).with_suffix(".model")))
        return lambda texts: pieces.encode(texts, num_threads=args.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if args.threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(args.tokenizer)
    return lambda texts: [made.ids for made in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def encode(args):
    texts, run = cut(pathlib.Path(args.text).read_bytes(), args.documents), encoder(args)
    wall, processor = [], []
    for _ in range(args.rounds):
        begun, used = time.perf_counter(), time.process_time()
        ids = run(texts)
        wall.append(time.perf_counter() - begun)
        processor.append(time.process_time() - used)
    return {"wall": wall, "processor": processor, "tokens": sum(map(len, ids)), "digest": digest(ids)}


def prepare(args):
    """Prepares the data as Hugging Face's examples do: map over batches with several processes, then save."""
    import datasets
    from tokenizers import Tokenizer

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    datasets.disable_progress_bars()
    tokenizer = Tokenizer.from_file(args.tokenizer)
    folder = pathlib.Path(args.cache)
    shutil.rmtree(folder, ignore_errors=True)

    def tokens(batch):
        return {"ids": [made.ids for made in tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)]}

    begun = time.perf_counter()
    rows = datasets.load_dataset("json", data_files=args.text, split="train", cache_dir=str(folder / "read"))
    rows = rows.map(tokens, batched=True, num_proc=args.threads, remove_columns=rows.column_names)
    rows.save_to_disk(str(folder / "made"))
    wall = time.perf_counter() - begun
    used = sum(os.times()[:4])
    ids = [row["ids"] for row in rows]
    shutil.rmtree(folder)
    return {"wall": [wall], "processor": [used], "tokens": sum(map(len, ids)),
            "digest": digest(one + [args.end] if args.end >= 0 else one for one in ids)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("learn", "encode", "prepare"))
    parser.add_argument("--library", default="tokenizers")
    parser.add_argument("--tokenizer")
    parser.add_argument("--text")
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--cache")
    parser.add_argument("--end", type=int, default=-1, help="the token after each document")
    args = parser.parse_args()
    json.dump({"learn": learn, "encode": encode, "prepare": prepare}[args.what](args), sys.stdout)


if __name__ == "__main__":
    main()
