#!/usr/bin/env python3
"""Writes huggingface/gpt2_torch and huggingface/gpt2_torch_parts: the model of huggingface/gpt2 as torch.save writes it.

gpt2_torch         pytorch_model.bin: some tensors share a storage, the head is the embedding, one is a Parameter
gpt2_torch_parts   the same in bf16, in two files with an index

    python3 tests/golden/make_torch_fixture.py      (PyTorch, safetensors)
"""

import collections
import json
import pathlib
import shutil

import torch
from safetensors.torch import load_file

FOLDER = pathlib.Path(__file__).parent / "huggingface"


def whole(state):
    """Two vectors in one storage, behind numbers that are in neither; a dictionary with attributes, as modules make it."""
    state = collections.OrderedDict(state)
    first, second = [name for name in state if state[name].dim() == 1][:2]
    shared = torch.cat([torch.zeros(3), state[first], state[second]])
    state[first] = shared[3:3 + len(state[first])]
    state[second] = shared[3 + len(state[first]):]
    prefix = "transformer." if any(name.startswith("transformer.") for name in state) else ""
    state[prefix + "wpe.weight"] = torch.nn.Parameter(state[prefix + "wpe.weight"])
    state["lm_head.weight"] = state[prefix + "wte.weight"]
    state._metadata = {"": {"version": 1}}
    return state


def copy_configs(to):
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in ("config.json", "generation_config.json"):
        shutil.copy(FOLDER / "gpt2" / name, to)


def main():
    state = load_file(FOLDER / "gpt2/model.safetensors")
    copy_configs(FOLDER / "gpt2_torch")
    torch.save(whole(state), FOLDER / "gpt2_torch/pytorch_model.bin")
    copy_configs(FOLDER / "gpt2_torch_parts")
    names, index = sorted(state), {}
    for i, part in enumerate((names[::2], names[1::2])):
        file = f"pytorch_model-0000{i + 1}-of-00002.bin"
        torch.save({name: state[name].bfloat16() for name in part}, FOLDER / "gpt2_torch_parts" / file)
        index.update({name: file for name in part})
    (FOLDER / "gpt2_torch_parts/pytorch_model.bin.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index}, indent=1) + "\n")


if __name__ == "__main__":
    main()
