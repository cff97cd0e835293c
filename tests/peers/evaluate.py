#!/usr/bin/env python3
"""Compares `dtrun evaluate` with EleutherAI's lm-evaluation-harness on the same model and rows.

    tests/peers/evaluate.py build/test/bin/dtrun [--rows 200] [--keep FOLDER] [--given FOLDER]

On demand, not part of any tier: it needs torch, transformers, tokenizers and lm_eval. It makes small random models with
transformers, three tasks of 200 rows each and their lm_eval twins, and compares every metric and its standard error.
Prints a line for each value and exits with 1 if one differs: shares and errors in any digit, perplexities by more than
the rounding of fp32 (2e-6). So do rows in the forms of published benchmarks, converted by `dtrun evaluate --convert`, and
the tasks of lm_eval of the same benchmarks; their prompts and choices must be equal. --given compares the model and the tasks of tests/cli/evaluate_data.py instead.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

WORDS = ("the a small large red green old new house river tree bird stone road light water runs sings falls turns "
         "opens under over near from into where when naïve café Straße 東京 and or but not seven forty-two").split()


def sentence(rng, least, most):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def make_tokenizer(folder, texts, begin):
    """Byte-level BPE, with a begin token that every text gets, or none."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|end|>", "<|begin|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    names = {"eos_token": "<|end|>"}
    if begin:
        names["bos_token"] = "<|begin|>"
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    wrapped.save_pretrained(folder)
    return wrapped


def make_model(kind, folder, tokenizer, context):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    if kind == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=context, n_embd=64, n_layer=2,
                                           n_head=4, initializer_range=0.3, **ids))
    else:
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=context, hidden_size=64,
                                             intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                             num_key_value_heads=2, initializer_range=0.3, **ids))
    model.eval().save_pretrained(folder)
    return model


def generated(model, tokenizer, prompt, room, tokens):
    """What transformers generates, so that some answers are right."""
    ids = tokenizer(prompt, return_tensors="pt").input_ids[:, -room:]
    out = model.generate(ids, attention_mask=ids * 0 + 1, max_length=ids.shape[1] + tokens, do_sample=False,
                         pad_token_id=tokenizer.eos_token_id)
    return tokenizer.decode(out[0, ids.shape[1]:], skip_special_tokens=True)


def make_rows(rng, count, model, tokenizer, context):
    choice, answer, text = [], [], []
    for i in range(count):
        # some prompts are empty, end in white space, or are longer than the context
        prompt = "" if i % 50 == 7 else sentence(rng, 1, 2 * context // 3 if i % 20 == 3 else 12)
        prompt += " " if i % 10 == 4 else ""
        choices = [sentence(rng, 1, 6) for _ in range(rng.randint(2, 5))]
        choice.append({"prompt": prompt, "choices": choices, "answer": rng.randrange(len(choices))})
        text.append({"text": sentence(rng, 1, 3 * context if i % 20 == 3 else 20) + ("\n" if i % 9 == 0 else "")})
        prompt = sentence(rng, 1, context if i % 20 == 3 else 12)
        whole = generated(model, tokenizer, prompt, context - 8, 8)
        right = whole.split(" a")[0].split("r")[0]
        answer.append({"prompt": prompt, "answer": right if rng.random() < 0.6 and right else "nothing"})
    return {"choice": choice, "answer": answer, "text": text}


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def by_dtrun(program, model, folder, names):
    files = [argument for name in names for argument in ("--task", str(folder / f"{name}.jsonl"))]
    environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"))
    out = subprocess.run([program, "evaluate", str(model), *files, "--json"], env=environment, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return {(task, name): (metric["value"], metric["stderr"])
            for task, result in json.loads(out)["models"][0]["tasks"].items()
            for name, metric in result["metrics"].items()}


def by_lm_eval(model, folder, names):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    common = {"dataset_path": "json", "test_split": "test"}
    tasks = {
        "choice": {"output_type": "multiple_choice", "doc_to_text": "{{prompt}}", "doc_to_choice": "choices",
                   "doc_to_target": "answer",
                   "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": True}
                                   for name in ("acc", "acc_norm", "acc_bytes")]},
        "answer": {"output_type": "generate_until", "doc_to_text": "{{prompt}}", "doc_to_target": "{{answer}}",
                   "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]},
        "text": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
                 "metric_list": [{"metric": name} for name in ("word_perplexity", "byte_perplexity",
                                                               "bits_per_byte")]},
    }
    configs = []
    for name in names:
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        if "defaults" in rows[0]:
            given = rows.pop(0)["defaults"]
            tasks[name]["generation_kwargs"] = {"until": given["until"], "max_gen_toks": given["tokens"],
                                                "do_sample": False}
        key = "answer" if name != "text" else "text"
        if any(isinstance(row[key], list) for row in rows):  # a column has one type
            rows = [{**row, key: row[key] if isinstance(row[key], list) else [row[key]]} for row in rows]
            tasks[name]["doc_to_target"] = key
        write(folder / f"lm_{name}.jsonl", rows)
        configs.append({"task": name, "dataset_kwargs": {"data_files": {"test": str(folder / f"lm_{name}.jsonl")}},
                        **common, **tasks[name]})
    # batches of one: others pad on the left, which moves the last digits
    results = simple_evaluate(model="hf", model_args={"pretrained": str(model), "dtype": "float32"}, tasks=configs,
                              batch_size=1, device="cpu", bootstrap_iters=2, task_manager=TaskManager(),
                              verbosity="ERROR")["results"]
    return {(task, key.split(",")[0]): (value, values.get(key.replace(",", "_stderr,")))
            for task, values in results.items() for key, value in values.items()
            if isinstance(value, float) and "_stderr" not in key}


def make_benchmarks(rng, count, model, tokenizer, context):
    """Rows in the forms in which benchmarks are published, and the file that lm_eval reads if that is another one."""
    def marks(text):
        for mark in (" [title]", " [step]", "[substeps] ", "  ", "[a", "]"):
            if rng.random() < 0.3:
                at = rng.randint(0, len(text))
                text = text[:at] + mark + text[at:]
        return text

    rows = {name: [] for name in ("hellaswag", "arc_easy", "piqa", "mmlu_world_religions", "gsm8k")}
    for i in range(count):
        few = [sentence(rng, 1, 4) for _ in range(4)]
        rows["hellaswag"].append({
            "ind": i, "activity_label": sentence(rng, 1, 3).title(), "ctx_a": marks(sentence(rng, 1, 9)),
            "ctx_b": rng.choice(["", "ÉTÉ ", "ßa ", "ﬁN ", "ΟΔΟΣ ", "İx ", "A "]) + marks(sentence(rng, 1, 4)),
            "endings": [marks(" " + text) + "." for text in few], "label": str(rng.randrange(4))})
        labels = list("ABCD" if i % 3 else "1234")[:rng.choice([3, 4])]
        rows["arc_easy"].append({"id": f"r{i}", "question": sentence(rng, 2, 9) + "?",
                                 "choices": {"text": few[:len(labels)], "label": labels},
                                 "answerKey": rng.choice(labels)})
        rows["piqa"].append({"goal": sentence(rng, 2, 8), "sol1": few[0], "sol2": few[1] + " ", "label": i % 2})
        rows["mmlu_world_religions"].append({"question": f" {sentence(rng, 2, 9)}:\n", "subject": "world_religions",
                                             "choices": [few[0] + ", \"so\"", *few[1:]], "answer": rng.randrange(4)})
        question = sentence(rng, 2, 9)
        said = generated(model, tokenizer, f"Question: {question}\nAnswer:", context - 24, 24)
        numbers = re.findall(r"-?[$0-9.,]{2,}|-?[0-9]+", said)  # for gsm8k-flexible; this model writes no "#### "
        right = numbers[-1] if numbers and i % 4 else "1,234"
        rows["gsm8k"].append({"question": question, "answer": f"{sentence(rng, 1, 5)}\n#### 3\n#### {right}"})
    return rows


def nested(row):
    """A row of ARC as its authors publish it."""
    choices = [{"text": text, "label": label} for text, label in zip(row["choices"]["text"], row["choices"]["label"])]
    return {**row, "question": {"stem": row["question"], "choices": choices}, "choices": None}


def converted(program, folder, rows):
    """Files of tasks by `dtrun evaluate --convert`: each form of a benchmark is a task, with its task in lm_eval."""
    sources = {"arc_nested": [nested(row) for row in rows["arc_easy"]],
               "mmlu_letters": [{**row, "answer": "ABCD"[row["answer"]]} for row in rows["mmlu_world_religions"]],
               "gsm8k-flexible": rows["gsm8k"], **rows}
    for name, source in sources.items():
        write(folder / f"from_{name}.jsonl", source)
    with open(folder / "world_religions_test.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([row["question"], *row["choices"], "ABCD"[row["answer"]]]
                                   for row in rows["mmlu_world_religions"])
    made = {"mmlu_csv": ("mmlu", folder / "world_religions_test.csv")}
    for name in sources:
        made[name] = (name.split("_")[0], folder / f"from_{name}.jsonl")
    for name, (benchmark, file) in made.items():
        target = folder / f"{name}.jsonl"
        subprocess.run([program, "evaluate", "--convert", benchmark, str(file), "-o", str(target), "--force"],
                       check=True, stderr=subprocess.DEVNULL)
        if benchmark.startswith("gsm8k"):
            target.write_text(target.read_text(encoding="utf-8").replace('{"defaults":{', '{"defaults":{"tokens":24,'))
    return {name: {"arc": "arc_easy", "mmlu": "mmlu_world_religions", "gsm8k-flexible": "gsm8k"}.get(benchmark, benchmark)
            for name, (benchmark, _) in made.items()}


def benchmarks_by_lm_eval(model, folder, rows):
    """Results, and the prompts with their choices, of the tasks that come with lm_eval, without examples."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    configs = []
    for name, source in rows.items():
        if name == "hellaswag":
            source = [{**row, "ctx": "", "source_id": "x"} for row in source]
        write(folder / f"lm_{name}.jsonl", source)
        path = str(folder / f"lm_{name}.jsonl")
        configs.append({"task": name, "dataset_path": "json", "dataset_name": None,
                        "dataset_kwargs": {"data_files": {split: path for split in ("train", "validation", "test",
                                                                                    "dev")}}})
        if name == "gsm8k":
            configs[-1]["generation_kwargs"] = {"until": ["Question:", "</s>", "<|im_end|>"], "do_sample": False,
                                                "max_gen_toks": 24}
    out = simple_evaluate(model="hf", model_args={"pretrained": str(model), "dtype": "float32"},
                          tasks=[{"group": "benchmarks", "task": configs}], num_fewshot=0, batch_size=1, device="cpu", bootstrap_iters=2, task_manager=TaskManager(),
                          log_samples=True, verbosity="ERROR")
    prompts = {name: {sample["doc_id"]: [request for request in sample["arguments"]] for sample in samples}
               for name, samples in out["samples"].items()}
    return out["results"], prompts


def compare_benchmarks(program, folder, rows, label):
    wrong = 0
    tasks = converted(program, folder, rows)
    ours = by_dtrun(program, folder / "model", folder, list(tasks))
    results, prompts = benchmarks_by_lm_eval(folder / "model", folder, rows)
    for name, task in tasks.items():
        made = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        made = [row for row in made if "defaults" not in row]
        differ = 0
        for i, row in enumerate(made):
            requests = [tuple(request) for request in prompts[task][i]]
            if "choices" in row:
                differ += requests != [(row["prompt"], " " + choice) for choice in row["choices"]]
            else:
                differ += requests[0][0] != row["prompt"]
        wrong += differ > 0 or len(made) != len(prompts[task])
        print(f"{'equal ' if differ == 0 else 'DIFFER'} {label:14} {name:20} {len(made)} prompts")
        given = "flexible-extract" if "flexible" in name else "strict-match" if task == "gsm8k" else "none"
        theirs = {(name, key.split(",")[0]): (value, results[task].get(key.replace(",", "_stderr,")))
                  for key, value in results[task].items()
                  if isinstance(value, float) and key.endswith("," + given) and "_stderr" not in key}
        wrong += compare(ours, theirs, label) + (not theirs)
    return wrong


def same(ours, theirs, exact):
    if not isinstance(theirs, float) or math.isnan(theirs):
        return True
    return ours == theirs if exact else abs(ours - theirs) <= 2e-6 * abs(theirs)


def compare(ours, theirs, label):
    wrong = 0
    for key, (value, error) in sorted(theirs.items()):
        share = key[1].startswith("acc") or key[1] == "exact_match"
        mine, mine_error = ours[key]
        good = same(mine, value, share) and (not isinstance(error, float) or abs(mine_error - error) < 1e-15)
        wrong += not good
        print(f"{'equal ' if good else 'DIFFER'} {label:14} {key[0]:7} {key[1]:16} dtrun {mine:.9g} +- "
              f"{mine_error if mine_error is None else format(mine_error, '.9g')}   lm_eval {value:.9g} +- {error}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dtrun")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--keep")
    parser.add_argument("--given", type=pathlib.Path)
    options = parser.parse_args()
    program, names, wrong = os.path.abspath(options.dtrun), ("choice", "answer", "text"), 0
    if options.given:
        model = options.given / "model"
        sys.exit(compare(by_dtrun(program, model, options.given, names), by_lm_eval(model, options.given, names),
                         options.given.name) > 0)
    with tempfile.TemporaryDirectory() as temporary:
        top = pathlib.Path(options.keep or temporary)
        for kind, begin, context in (("gpt2", False, 128), ("llama", True, 96)):
            rng = random.Random(11)
            folder = top / kind
            (folder / "model").mkdir(parents=True, exist_ok=True)
            tokenizer = make_tokenizer(folder / "model", [sentence(rng, 5, 30) for _ in range(400)], begin)
            model = make_model(kind, folder / "model", tokenizer, context)
            rows = make_rows(rng, options.rows, model, tokenizer, context)
            rows["answer"].insert(0, {"defaults": {"until": [" a", "r"], "tokens": 8}})
            for name in names:
                write(folder / f"{name}.jsonl", rows[name])
            ours = by_dtrun(program, folder / "model", folder, names)
            wrong += compare(ours, by_lm_eval(folder / "model", folder, names), kind)
            rows = make_benchmarks(rng, options.rows, model, tokenizer, context)
            wrong += compare_benchmarks(program, folder, rows, kind)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
