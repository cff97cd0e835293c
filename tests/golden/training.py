"""training: shared code of the fixtures of gpt2, llama and transformer: start values, batches of tokens, twenty AdamW
steps with clipping and a cosine learning rate, and the two files.
"""

import math
import pathlib

import torch
from safetensors.torch import save_file

STEPS = 20
LR, MIN_LR, WARMUP, BETAS, EPS, DECAY, CLIP = 1e-2, 1e-3, 4, (0.9, 0.99), 1e-8, 0.1, 1.0


def start_values(model, random, matrix, bias):
    """Moves biases and norms away from 0 and 1, so that a mistake in one of them shows."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=random)
            if p.ndim == 2:
                value = matrix * noise
            elif name.endswith("bias"):
                value = bias * noise
            else:
                value = 1 + 0.1 * noise
            p.copy_(value.float())


def batches(random, vocab, samples, length):
    """Returns tokens and targets, I32 (STEPS, samples, length)."""
    tokens = torch.randint(vocab, (STEPS, samples, length), generator=random)
    # learnable: the next token mostly follows from the last one
    targets = torch.where(
        torch.rand(tokens.shape, generator=random) < 0.8,
        (tokens * 7 + 3) % vocab,
        torch.randint(vocab, tokens.shape, generator=random),
    )
    targets[torch.rand(tokens.shape, generator=random) < 0.2] = -1
    targets[0, 1, :] = -1  # a whole sequence in which nothing counts
    return tokens.int(), targets.int()


def rate_of(step):
    if step < WARMUP:
        return MIN_LR + (LR - MIN_LR) * step / WARMUP
    return MIN_LR + 0.5 * (LR - MIN_LR) * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def train(model, loss_at):
    """Trains with the loss loss_at(step); returns losses, norms and rates of an expect file."""
    named = dict(model.named_parameters())
    groups = [
        {"params": [p for p in named.values() if p.ndim >= 2], "weight_decay": DECAY},
        {"params": [p for p in named.values() if p.ndim < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        for group in adamw.param_groups:
            group["lr"] = rate_of(step)
        adamw.zero_grad()
        loss = loss_at(step)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        adamw.step()
        losses.append(loss.item())
        rates.append(rate_of(step))
    curves = {"losses": losses, "norms": norms, "rates": rates}
    return {key: torch.tensor(values, dtype=torch.float64) for key, values in curves.items()}


def save(name, start, expect, about):
    """Writes both files, with `about` and the hyperparameters as metadata, and prints the steps."""
    about = about | {
        "steps": STEPS, "lr": LR, "min_lr": MIN_LR, "warmup": WARMUP, "beta1": BETAS[0], "beta2": BETAS[1],
        "eps": EPS, "weight_decay": DECAY, "clip": CLIP, "torch": torch.__version__.split("+")[0],
    }  # fmt: skip
    about = {k: str(v) for k, v in about.items()}
    here = pathlib.Path(__file__).parent
    save_file(start, here / f"{name}_start.safetensors", about)
    save_file(expect, here / f"{name}_expect.safetensors", about)
    for step in range(STEPS):
        loss, norm, rate = (expect[key][step].item() for key in ("losses", "norms", "rates"))
        print(f"{name} {step:3d}  loss {loss:.9f}  norm {norm:.6f}  rate {rate:.6f}")
