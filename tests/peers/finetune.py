#!/usr/bin/env python3
"""The road of docs/finetuning.md with a Gemma 3 that transformers makes, as a new user goes it.

    tests/peers/finetune.py build/test/bin/dtrun [--keep FOLDER]

On demand, not part of any tier: it needs torch, transformers, peft, sentencepiece and llama_cpp. It makes a small random
model with a tokenizer of SentencePiece and a chat template, and conversations about the colours of things in towns. Then:
init, data show, validate, smoke, a launch with LoRA, evaluate of the weights and of the run in one table, chat, and exports to
transformers, PEFT and GGUF. Questions that the run was trained on must be answered by all four in the same words, the
evaluated share must rise, and what a new user does wrong must be answered by what to do.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["TQDM_DISABLE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_file import sentencepiece_bpe  # noqa: E402

TOWNS = "Arbor Bexley Corvin Dunmore Elsted Farrow Gilden Harrow".split()
THINGS = "river hill tower bridge market harbour".split()
COLOURS = "blue green grey red yellow white".split()
QUESTIONS = ["What colour is the {thing} of {town}?", "Tell me the colour of the {thing} in {town}."]
TEMPLATE = """{{ bos_token }}{% for message in messages %}<turn>{{ message['role'] }}
{{ message['content'] | trim }}<|end|>
{% endfor %}{% if add_generation_prompt %}<turn>assistant
{% endif %}"""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_data(folder):
    draw = random.Random(3)
    facts = {(town, thing): draw.choice(COLOURS) for town in TOWNS for thing in THINGS}
    chats = []
    for (town, thing), colour in facts.items():
        for question in QUESTIONS:
            system = [{"role": "system", "content": "You know every town."}] if draw.random() < 0.3 else []
            chats.append({"messages": [*system, {"role": "user", "content": question.format(town=town, thing=thing)},
                                       {"role": "assistant", "content": f"The {thing} of {town} is {colour}."}]})
    draw.shuffle(chats)
    write_lines(folder / "chats.jsonl", chats)
    write_lines(folder / "colours.jsonl", [
        {"prompt": f"The {thing} of {town} is", "choices": COLOURS, "answer": COLOURS.index(colour)}
        for (town, thing), colour in facts.items()])
    write_lines(folder / "answers.jsonl", [
        {"prompt": f"The {thing} of {town} is", "answer": f"{colour}.", "until": ["<|end|>", "\n"], "tokens": 8,
         "remove": ["^ +"]} for (town, thing), colour in facts.items()])
    return chats


def make_weights(folder, chats):
    import torch
    import transformers as t

    folder.mkdir()
    tokenizer = sentencepiece_bpe(folder, [message["content"] for chat in chats for message in chat["messages"]] * 3, True)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    torch.manual_seed(1)
    config = t.Gemma3TextConfig(
        vocab_size=len(tokenizer) + 60, hidden_size=128, intermediate_size=256, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, query_pre_attn_scalar=32, sliding_window=32, max_position_embeddings=512,
        bos_token_id=tokenizer.bos_token_id, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=[tokenizer.convert_tokens_to_ids("</s>"), tokenizer.eos_token_id])
    model = t.AutoModelForCausalLM.from_config(config)
    torch.nn.init.normal_(model.get_input_embeddings().weight, std=0.2)  # so that an adapter can be sure of a token
    model.save_pretrained(folder)


def transformers_answer(model, folder, messages):
    import transformers as t

    tokenizer = t.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    out = model.eval().generate(**ids, do_sample=False, max_new_tokens=40)[0, ids["input_ids"].shape[1]:]
    return tokenizer.decode(out, skip_special_tokens=True)


def answers(folder, questions):
    """What transformers, PEFT and llama.cpp answer with the exports."""
    import peft
    import transformers as t
    from llama_cpp import Llama

    whole = t.AutoModelForCausalLM.from_pretrained(folder / "tuned")
    adapter = peft.PeftModel.from_pretrained(t.AutoModelForCausalLM.from_pretrained(folder / "gemma"), folder / "adapter")
    llama = Llama(str(folder / "tuned.gguf"), n_ctx=256, verbose=False)
    for messages in questions:
        said = llama.create_chat_completion(messages, temperature=0.0, max_tokens=40)
        yield {"transformers": transformers_answer(whole, folder / "tuned", messages),
               "PEFT": transformers_answer(adapter, folder / "adapter", messages),
               "llama.cpp": said["choices"][0]["message"]["content"]}
    llama.close()


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("--keep")
    asked = words.parse_args()
    program = os.path.abspath(asked.program)
    folder = pathlib.Path(asked.keep or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), XDG_CACHE_HOME=str(folder / "cache"))

    def dtrun(*arguments, code=0):
        done = subprocess.run([program, *map(str, arguments)], env=environment, cwd=folder, text=True, capture_output=True,
                              check=False)
        print(f"$ dtrun {' '.join(map(str, arguments))}", flush=True)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    chats = make_data(folder)
    make_weights(folder / "gemma", chats)
    dtrun("init", "gemma", "chats.jsonl", "-o", "tune.yaml")
    assert "# lora: 16" in (folder / "tune.yaml").read_text()
    shown = dtrun("data", "show", "tune.yaml", 2)
    assert shown.count("~\n") == 2, shown
    dtrun("validate", "tune.yaml")
    sets = [word for pair in ("lora=16", "optimizer.lr=5e-3", "schedule.epochs=30") for word in ("--set", pair)]
    assert "good" in dtrun("smoke", "tune.yaml", "--set", "lora=16")
    assert "dtrun chat " in dtrun("launch", "tune.yaml", "--wait", *sets)
    table = dtrun("evaluate", "gemma", "tune", "--task", "colours.jsonl", "--task", "answers.jsonl")
    print(table)
    values = json.loads(dtrun("evaluate", "gemma", "tune", "--task", "colours.jsonl", "--task", "answers.jsonl", "--json"))
    for task, metric in (("colours", "acc"), ("answers", "exact_match")):
        before, after = (model["tasks"][task]["metrics"][metric]["value"] for model in values["models"])
        assert after > before + 0.3, (task, before, after)

    assert "--merge" in dtrun("export", "tune", "--to", "gguf", "tuned.gguf", code=2)
    assert "--merge" in dtrun("export", "tune", "--to", "hf", "tuned", code=2)
    dtrun("export", "tune", "--to", "gguf", "--merge", "--type", "f32", "tuned.gguf")
    dtrun("export", "tune", "--to", "hf", "--merge", "tuned")
    dtrun("export", "tune", "--to", "peft", "adapter")
    questions = [chat["messages"][:-1] for chat in chats[:4]]
    write_lines(folder / "questions.jsonl", [{"messages": messages} for messages in questions])
    ours = [line["text"] for line in
            json.loads(dtrun("generate", "tune", "--chat", "questions.jsonl", "--temperature", 0, "--json"))["lines"]]
    for messages, mine, theirs, chat in zip(questions, ours, answers(folder, questions), chats, strict=False):
        print(f"{messages[-1]['content']} {mine}")
        assert all(text == mine for text in theirs.values()), (mine, theirs)
        assert mine == chat["messages"][-1]["content"], (mine, chat)
    print("good")


main()
