#!/usr/bin/env python3
"""Writes optimizer_steps.safetensors next to itself: the results of other programs' optimizers for given gradients, for
tests/unit/test_optim_golden.c.

lion        lion-pytorch's Lion
muon        torch.optim.Muon, nesterov, in bf16 as it is published
muon_fp32   the same in fp32: without its rounding to bf16, so that all of the arithmetic can be compared to a few units
            of fp32
muon_rms    muon_fp32 with adjust_lr_fn="match_rms_adamw" and without nesterov

    python3 -m venv v && v/bin/pip install torch safetensors lion-pytorch
    v/bin/python tests/golden/make_optimizer_fixture.py     (PyTorch 2.9 or later)

start.NAME, grad.NAME.STEP (from 0)          F32, the matrices' shapes
CASE.NAME, CASE.NAME.m                       F32: value and momentum after the last step
Hyperparameters are in the metadata.
"""

import pathlib

import torch
from lion_pytorch import Lion
from safetensors.torch import save_file

STEPS, LR, DECAY, LION_BETAS, MOMENTUM = 5, 0.02, 0.1, (0.9, 0.99), 0.95
SHAPES = {"wide": (12, 40), "tall": (56, 24), "square": (33, 33)}


def train(make, start, grads, state):
    params = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    optimizer = make(list(params.values()))
    for step in range(STEPS):
        for name, param in params.items():
            param.grad = grads[name][step].clone()
        optimizer.step()
    out = {name: param.detach() for name, param in params.items()}
    return out | {f"{name}.m": optimizer.state[param][state] for name, param in params.items()}


def muon(**options):
    return lambda params: torch.optim.Muon(
        params, lr=LR, weight_decay=DECAY, momentum=MOMENTUM, **options
    )


def in_fp32(case):
    """Muon requests bf16 only by name."""
    bf16, torch.bfloat16 = torch.bfloat16, torch.float32
    try:
        return case()
    finally:
        torch.bfloat16 = bf16


def main():
    torch.manual_seed(20261122)
    torch.set_num_threads(1)
    start = {name: 0.1 * torch.randn(shape) for name, shape in SHAPES.items()}
    grads = {name: torch.randn(STEPS, *shape) for name, shape in SHAPES.items()}
    lion = lambda params: Lion(params, lr=LR, betas=LION_BETAS, weight_decay=DECAY)
    rms = muon(nesterov=False, adjust_lr_fn="match_rms_adamw")
    cases = {
        "lion": train(lion, start, grads, "exp_avg"),
        "muon": train(muon(), start, grads, "momentum_buffer"),
        "muon_fp32": in_fp32(lambda: train(muon(), start, grads, "momentum_buffer")),
        "muon_rms": in_fp32(lambda: train(rms, start, grads, "momentum_buffer")),
    }
    out = {f"start.{name}": value for name, value in start.items()}
    for name, value in grads.items():
        out |= {f"grad.{name}.{step}": value[step].contiguous() for step in range(STEPS)}
    for case, tensors in cases.items():
        out |= {f"{case}.{name}": value.contiguous() for name, value in tensors.items()}
    numbers = {"steps": STEPS, "lr": LR, "decay": DECAY, "momentum": MOMENTUM}
    numbers |= {"beta1": LION_BETAS[0], "beta2": LION_BETAS[1]}
    save_file(
        out,
        pathlib.Path(__file__).with_name("optimizer_steps.safetensors"),
        {name: str(value) for name, value in numbers.items()},
    )


main()
