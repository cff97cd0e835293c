#!/usr/bin/env python3
"""Writes dpo_llama.safetensors next to itself: the loss and the gradients of TRL's DPOTrainer for a tiny Llama with an
adapter of PEFT, whose reference is the model with the adapter off. Computed in double precision, but for what TRL itself
rounds to fp32, from fp32 start values.

    python3 tests/golden/make_dpo_fixture.py      (PyTorch 2.x, transformers, peft, trl)

Parameters by dtrun's names, F32. tokens, targets, starts, positions I32 (B,T), weights F32 (B,T): a row has both answers
of a pair, each after the prompt, with the weights 1 and -1. reference F32 (B,1): the log ratios of the reference. loss, margin,
accuracy F64 (1): means over pairs; grad.NAME F32. The configuration is in the metadata.
"""

import pathlib
import random
import tempfile

import datasets
import peft
import tokenizers
import torch
import torch.nn.functional as F
import transformers
import trl
from safetensors.torch import save_file

VOCAB, B, T, RANK, ALPHA, BETA = 61, 4, 48, 3, 5.0, 0.3
SIZES = {"heads": 4, "kv_heads": 2, "embed": 24, "head_width": 6, "ffn": 40}
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def make_base():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=6, max_position_embeddings=T, tie_word_embeddings=False, rms_norm_eps=1e-5,
        attn_implementation="sdpa", bos_token_id=None, eos_token_id=1, pad_token_id=2))  # fmt: skip


def make_trainer(folder):
    """Adds a new adapter, so that the reference is the model with it off."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w1", pad_token="w2")
    draw = random.Random(2)

    def text(count):
        return " ".join(f"w{draw.randrange(3, VOCAB)}" for _ in range(count))

    pairs = [{"prompt": text(draw.randrange(2, 7)) + " ", "chosen": text(draw.randrange(1, 12)),
              "rejected": text(draw.randrange(1, 12))} for _ in range(B)]  # fmt: skip
    config = trl.DPOConfig(output_dir=folder, per_device_train_batch_size=B, beta=BETA, report_to=[], use_cpu=True,
                           bf16=False, gradient_checkpointing=False, max_length=T, save_strategy="no")  # fmt: skip
    adapter = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, lora_dropout=0.0, task_type="CAUSAL_LM")
    return trl.DPOTrainer(model=make_base(), args=config, train_dataset=datasets.Dataset.from_list(pairs),
                          processing_class=words, peft_config=adapter)  # fmt: skip


def log_ratios(model, batch):
    """Returns log p(chosen) - log p(rejected) of each pair, with the adapter off."""
    with torch.no_grad(), model.disable_adapter():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1].double()
    each = -F.cross_entropy(logits.flatten(0, 1), batch["input_ids"][:, 1:].flatten(), reduction="none")
    chosen, rejected = (each.view(2 * B, -1) * batch["completion_mask"][:, 1:]).sum(1).chunk(2)
    return (chosen - rejected).float()[:, None]


def rows_of(batch):
    """Returns the inputs of dtrun: both answers of a pair in a row."""
    out = {name: torch.zeros((B, T), dtype=torch.int32) for name in ("tokens", "targets", "starts", "positions")}
    out["targets"][:] = -1
    out["starts"][:] = torch.arange(T)
    out["weights"] = torch.zeros((B, T))
    for b in range(B):
        at = 0
        for row, sign in ((b, 1.0), (B + b, -1.0)):
            count = int(batch["attention_mask"][row].sum())
            ids, answer = batch["input_ids"][row, :count].int(), batch["completion_mask"][row, :count].bool()
            out["tokens"][b, at : at + count] = ids
            out["starts"][b, at : at + count] = at
            out["positions"][b, at : at + count] = torch.arange(count)
            trained = torch.nonzero(answer[1:])[:, 0]
            out["targets"][b, at + trained] = ids[1:][trained]
            out["weights"][b, at + trained] = sign
            at += count
    return out


def ours(key):
    return key.removeprefix("base_model.model.").replace(".base_layer.", ".").replace(".default.", ".")


def main():
    torch.set_num_threads(1)
    noise = torch.Generator().manual_seed(13)
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(folder)
        model = trainer.model
        assert all(".default." in key for key, _ in model.named_parameters() if "lora" in key)
        with torch.no_grad():
            for key, p in model.named_parameters():
                value = torch.randn(p.shape, generator=noise)
                p.copy_((0.2 if "lora" in key else 0.08) * value + (1.0 if "norm" in key else 0.0))
        values = {ours(key): p.detach().float().clone() for key, p in model.named_parameters()}
        model.double()
        batch = next(iter(trainer.get_train_dataloader()))
        loss = trainer.compute_loss(model, batch)
        loss.backward()
        metrics = trainer._metrics["train"]
    out = values | rows_of(batch) | {
        "reference": log_ratios(model, batch), "loss": loss.detach()[None].double(),
        "margin": torch.tensor(metrics["rewards/margins"]).double(),
        "accuracy": torch.tensor(metrics["rewards/accuracies"]).double(),
    }  # fmt: skip
    out |= {"grad." + ours(key): p.grad.float() for key, p in model.named_parameters() if p.requires_grad}
    about = SIZES | {"rank": RANK, "scale": ALPHA / RANK, "beta": BETA, "own_lm_head": 1, "qkv_bias": 0, "context": T,
                     "targets": " ".join(TARGETS), "trl": trl.__version__, "peft": peft.__version__}  # fmt: skip
    save_file(out, pathlib.Path(__file__).parent / "dpo_llama.safetensors", {key: str(value) for key, value in about.items()})
    print("loss", loss.item(), "margin", metrics["rewards/margins"], "accuracy", metrics["rewards/accuracies"])


main()
