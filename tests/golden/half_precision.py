"""half_precision: measures how far PyTorch's bf16 and fp16 are from the exact values of a fixture.

The engine's half precision is compared with these errors (tests/unit/test_model_golden.c): rounding to 8 or 11
bits is random in its details and differs between processors, but the size of a tensor's error does not.
"""

import copy

import torch

# name as in safetensors, dtype, factor of the loss before the backward pass: without it the small gradients of fp16 become 0
TYPES = ("BF16", torch.bfloat16, 1.0), ("F16", torch.float16, 1024.0)


def widened(logits):
    """Returns the logits that cross entropy reads: half precision is widened to fp32, as in autocast."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


def errors(model, forward, gradients, exact):
    """Returns the entries TYPE.logits and TYPE.grad.NAME, F64 (1), of an expect file: the 2-norm of the difference
    between a tensor in half precision and the exact one.

    model      with the start values in fp32; it is copied, not changed
    forward    model -> (logits, loss)
    gradients  model after a backward pass -> {NAME: gradient}
    exact      the expect file's tensors: logits and grad.NAME
    """
    out = {}
    for name, dtype, scale in TYPES:
        half = copy.deepcopy(model).to(dtype)
        logits, loss = forward(half)
        (loss * scale).backward()
        tensors = {"logits": logits.detach()}
        tensors |= {f"grad.{n}": g.double() / scale for n, g in gradients(half).items()}
        for key, tensor in tensors.items():
            error = torch.linalg.vector_norm(tensor.double() - exact[key].double())
            out[f"{name}.{key}"] = error[None]
    return out
