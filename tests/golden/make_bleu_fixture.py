#!/usr/bin/env python3
"""Makes tests/golden/bleu/cases.json: lines, references, and sacreBLEU's counts.

    pip install sacrebleu && tests/golden/make_bleu_fixture.py
    tests/golden/make_bleu_fixture.py --check build/test/bin/dtrun 200   # compares, writes nothing
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from sacrebleu.metrics import BLEU

OUT = pathlib.Path(__file__).parent / "bleu" / "cases.json"
WORDS = ["the", "cat", "sat", "on", "a", "mat", "1,000.5", "3.", ".5", "U.S.", "it's", "re-do", "7-fold", "7-", "--",
         "straße", "日本", "日本。", "\u00abja\u00bb", "x\u00a0y", "a\u2003b", "&quot;", "&amp;lt;", "&gt;", "<skipped>",
         "(a)", "a/b", "{~}", "[`]", ":;@", "...", ",,", "é.", ".é", "1.é", "a\tb", "a\x1cb", "\u0085", "\u200b", "🙂🙂",
         "$5", "50%", "#&", "'", "_", "^", "\r", "0", "a,1", "1,a", "<skip<skipped>ped>", "&&amp;amp;"]
FIXED = [
    (["the cat sat on the mat"], ["the cat sat on the mat"]),
    (["the the the the the the the"], ["the cat is on the mat"]),
    ([""], [""]), ([""], ["a b c d"]), (["a b c d"], [""]), (["a b c"], ["a b c"]),
    (["a b x c d", ""], ["a b c d e f", "g"]), (["x y z w v"], ["a b c d e"]),
    (["a b c d e", "a"], ["a c b e d", "a"]), (["Hello , world ."], ["Hello, world."]),
]


def line(draw, most):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def near(draw, text):
    words = text.split(" ")
    for _ in range(draw.randint(0, 3)):
        at = draw.randrange(len(words))
        words[at : at + draw.randint(0, 2)] = [draw.choice(WORDS)]
    return " ".join(words)


def corpus(draw, lines, most):
    references = [line(draw, most) for _ in range(lines)]
    return [near(draw, text) for text in references], references


def case(hypotheses, references, tokenizer):
    s = BLEU(tokenize=tokenizer).corpus_score(hypotheses, [references])
    return {"tokenize": tokenizer, "hypotheses": hypotheses, "references": references, "score": s.score,
            "matched": s.counts, "made": s.totals, "length": s.sys_len, "reference_length": s.ref_len,
            "precisions": s.precisions, "brevity": s.bp}


def check(dtrun, count):
    draw = random.Random(11)
    for i in range(count):
        wanted = case(*corpus(draw, draw.choice([1, 3, 50]), draw.choice([3, 12, 60])), ["13a", "none", "char"][i % 3])
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder) / name for name in ("hypotheses", "references")}
            for name, path in files.items():
                path.write_text("".join(text + "\n" for text in wanted[name]), newline="\n")
            got = json.loads(subprocess.run(
                [dtrun, "score", "--hypothesis", files["hypotheses"], "--reference", files["references"], "--tokenize",
                 wanted["tokenize"], "--json"], check=True, capture_output=True).stdout)
        same = (got["hypothesis_words"], got["reference_words"]) == (wanted["length"], wanted["reference_length"])
        if not same or abs(got["bleu"] - wanted["score"]) > 1e-9:
            sys.exit(f"corpus {i} ({wanted['tokenize']}): {got['bleu']}, and sacreBLEU has {wanted['score']}")
    print(f"{count} corpora: as sacreBLEU has them")


if sys.argv[1:2] == ["--check"]:
    check(sys.argv[2], int(sys.argv[3]))
else:
    draw = random.Random(14)
    cases = [case(*pair, tokenizer) for pair in FIXED for tokenizer in ("13a", "char")]
    cases += [case(*corpus(draw, 4, 14), tokenizer) for _ in range(8) for tokenizer in ("13a", "none", "char")]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
