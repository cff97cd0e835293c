#!/usr/bin/env python3
"""Writes mlp_NAME_start.safetensors and mlp_NAME_expect.safetensors next to itself, for three models on rows of
numbers: classes through relu, classes through tanh, two numbers through GELU.

Three layers with odd sizes, computed by PyTorch in double precision from fp32 start values: loss
and every gradient of the first batch, then twenty steps of gradient descent.

    python3 tests/golden/make_mlp_fixture.py      (PyTorch 2.x, safetensors)

start   parameters F32, weights (out,in); rows F32 (20,B,I); targets I32 (20,B), where -1 is not counted, or F32
        (20,B,O)
expect  loss F64 (1): mean over counted targets, grad.NAME F32, losses F64 (20)
Hyperparameters are in both files' metadata.
"""

import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

LAYERS, WIDTH, INPUTS, B, STEPS = 3, 19, 7, 11, 20
LR = 0.1

# name: activation, loss, outputs
MODELS = {
    "relu": (F.relu, "cross_entropy", 5),
    "tanh": (torch.tanh, "cross_entropy", 5),
    "gelu": (F.gelu, "squared_error", 2),
}


class Mlp(torch.nn.Module):
    def __init__(self, activation, outputs):
        super().__init__()
        self.activation = activation
        self.layers = torch.nn.ModuleList(
            [torch.nn.Linear(INPUTS if i == 0 else WIDTH, WIDTH) for i in range(LAYERS)]
        )
        self.head = torch.nn.Linear(WIDTH, outputs)

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.head(x)


def loss_of(kind, outputs, targets):
    if kind == "cross_entropy":
        return F.cross_entropy(outputs, targets.long(), ignore_index=-1)
    return F.mse_loss(outputs, targets)


def train(model, kind, rows, targets):
    """Returns the losses before each of the steps of gradient descent."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    losses = []
    for x, target in zip(rows, targets):
        optimizer.zero_grad()
        loss = loss_of(kind, model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def make(name, activation, kind, outputs):
    torch.manual_seed(1)
    model = Mlp(activation, outputs)
    rows = torch.randn(STEPS, B, INPUTS)
    if kind == "cross_entropy":
        targets = torch.randint(-1, outputs, (STEPS, B), dtype=torch.int32)
    else:
        targets = torch.randn(STEPS, B, outputs)
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    start |= {"rows": rows, "targets": targets}
    model.double()
    rows, targets = rows.double(), targets if targets.dtype == torch.int32 else targets.double()
    loss = loss_of(kind, model(rows[0]), targets[0])
    loss.backward()
    expect = {f"grad.{n}": p.grad.float() for n, p in model.named_parameters()}
    expect["loss"] = loss.detach().reshape(1)
    expect["losses"] = train(model, kind, rows, targets)
    metadata = {
        "layers": LAYERS, "width": WIDTH, "inputs": INPUTS, "outputs": outputs, "batch": B,
        "steps": STEPS, "lr": LR,
    }
    metadata = {key: str(value) for key, value in metadata.items()}
    folder = pathlib.Path(__file__).parent
    save_file(start, folder / f"mlp_{name}_start.safetensors", metadata)
    save_file(expect, folder / f"mlp_{name}_expect.safetensors", metadata)


for name, (activation, kind, outputs) in MODELS.items():
    make(name, activation, kind, outputs)
