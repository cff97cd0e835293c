#!/usr/bin/env python3
"""Writes made-up conversations about animals, and the folder of a tokenizer with a chat template.

    python3 examples/chat_corpus.py [DIR]     # examples/ where DIR is left out

chats.jsonl                      3,000 conversations, a line each
chat/chat_template.jinja         how a conversation becomes text
chat/tokenizer_config.json       the token that ends a text
chat/words.txt                   the text from which 'dtrun data train-tokenizer' learns chat/tokenizer.json
"""
import json
import pathlib
import random
import sys

TEMPLATE = """{%- for message in messages -%}
{{ '<|turn|>' + message.role + '\\n' + message.content | trim + '<|end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|turn|>assistant\\n' }}
{%- endif -%}
"""
ANIMALS = """badger beaver crow deer duck eagle falcon fox frog goose hare hawk hedgehog heron horse lynx mole moose mouse
otter owl rabbit raven salmon seal snail sparrow squirrel stork swan toad trout turtle weasel wolf""".split()
FOODS = "acorns apples berries clover fish grass insects mice moss mushrooms nuts roots seeds slugs worms".split()
HOMES = "a burrow|a cave|a den|a hollow tree|a lake|a meadow|a nest|a pond|a river|the high reeds|the old barn".split("|")
TIMES = "at dawn|at dusk|at night|in the morning|in the rain|at noon".split("|")
QUESTIONS = {  # of the first turn, and of a later one, which names no animal
    "eats": ("What does the {} eat?", "And what does it eat?", "The {} eats {}."),
    "lives": ("Where does the {} live?", "Where does it live?", "The {} lives in {}."),
    "wakes": ("When does the {} wake up?", "When does it wake up?", "The {} wakes up {}."),
}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/..").resolve()
    draw = random.Random(7)
    facts = {a: {"eats": draw.choice(FOODS), "lives": draw.choice(HOMES), "wakes": draw.choice(TIMES)} for a in ANIMALS}
    lines = []
    for _ in range(3000):
        messages = []
        if draw.random() < 0.2:
            messages.append({"role": "system", "content": "You know the animals of the valley."})
        for _ in range(draw.choice([1, 1, 2])):
            animal = draw.choice(ANIMALS)
            for turn, what in enumerate(draw.sample(list(QUESTIONS), draw.randint(1, 2))):
                messages.append({"role": "user", "content": QUESTIONS[what][min(turn, 1)].format(animal)})
                answer = QUESTIONS[what][2].format(animal, facts[animal][what])
                messages.append({"role": "assistant", "content": answer})
        lines.append(messages)
    chat = folder / "chat"
    chat.mkdir(parents=True, exist_ok=True)
    (folder / "chats.jsonl").write_text("".join(json.dumps({"messages": m}) + "\n" for m in lines))
    (chat / "chat_template.jinja").write_text(TEMPLATE)
    (chat / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}) + "\n")
    (chat / "words.txt").write_text("".join(f"{m['role']}\n{m['content']}\n" for line in lines for m in line))


main()
