#!/usr/bin/env python3
"""The peer of Llama, translation and decoding: PyTorch and transformers; prints one JSON line.

    peer_models.py --mode llama --layers 30 --heads 9 --kv-heads 3 --embed 576 --ffn 1536 --vocab 49152 \
        --tokens 1024 --batch 4 --dtype bf16 --threads 2
    peer_models.py --mode lora --rank 16 --layers 30 ... --dtype bf16
    peer_models.py --mode translation --layers 6 --heads 4 --embed 512 --ffn 1024 --vocab 10000 --batch 4096
    peer_models.py --mode decode --layers 30 ... --batch 1 --dtype bf16
    peer_models.py --mode beam --layers 6 --heads 4 --embed 512 --ffn 1024 --vocab 10000 --tokens 25 --batch 16 --beams 4
    peer_models.py --mode read

llama        training: transformers' LlamaForCausalLM, random tokens; tokens/s, median over steps after warm-up
lora         the same with PEFT's adapter on every matrix of a block; in bf16 the base is in bf16, and the adapter in
             fp32 under autocast
translation  training: torch.nn.Transformer in fairseq's shape (post-norm, shared target embedding, label smoothing),
             pairs of lengths like those of measures_models.py, sorted, up to --batch tokens of a side with padding;
             target tokens/s over all batches
decode       greedy text with a KV cache: tokens/s from the time of long texts less that of short ones;
             compile: transformers' static cache and its compiled step
beam         translations by a MarianMTModel with random weights: --batch sources of --tokens tokens become
             translations of as many tokens, ends forced; written tokens/s, median of --steps batches
read         bytes a second that the processor reads of 1 GB
Training steps are forward, backward, clip and AdamW; bf16 is autocast over fp32 weights, as ours keeps them.
"""

import argparse
import json
import math
import random
import resource
import statistics
import time

import torch
import torch.nn.functional as F


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--mode", choices=["llama", "lora", "translation", "decode", "beam", "read"], required=True)
    for name in ("layers", "heads", "kv-heads", "embed", "ffn", "vocab", "tokens", "batch"):
        add("--" + name, type=int)
    add("--beams", type=int, default=4)
    add("--rank", type=int, default=16)
    add("--dtype", choices=["fp32", "bf16"], default="fp32")
    add("--threads", type=int, default=2)
    add("--steps", type=int, default=3)
    add("--warmup", type=int, default=1)
    add("--compile", choices=["eager", "compile"], default="eager")
    return parser.parse_args()


def llama(args):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=args.vocab, hidden_size=args.embed, intermediate_size=args.ffn,
                         num_hidden_layers=args.layers, num_attention_heads=args.heads,
                         num_key_value_heads=args.kv_heads, max_position_embeddings=2048, rope_theta=100000.0,
                         tie_word_embeddings=True, attn_implementation="sdpa", use_cache=False)
    return LlamaForCausalLM(config)


def adapted(args):
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = llama(args).to(torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    return get_peft_model(model, LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules=targets,
                                            lora_dropout=0.0, task_type="CAUSAL_LM"))


class Translator(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.scale = math.sqrt(args.embed)
        self.source = torch.nn.Embedding(args.vocab, args.embed, padding_idx=0)
        self.target = torch.nn.Embedding(args.vocab, args.embed, padding_idx=0)
        self.body = torch.nn.Transformer(args.embed, args.heads, args.layers, args.layers, args.ffn, dropout=0.0,
                                         batch_first=True)
        at = torch.arange(256)[:, None] * torch.exp(torch.arange(0, args.embed, 2) * (-math.log(10000.0) / args.embed))
        self.register_buffer("positions", torch.cat([at.sin(), at.cos()], 1))

    def forward(self, source, given, wanted):
        pad, width = source == 0, given.shape[1]
        later = torch.triu(torch.ones(width, width, dtype=torch.bool), 1)
        x = self.source(source) * self.scale + self.positions[: source.shape[1]]
        y = self.target(given) * self.scale + self.positions[:width]
        y = self.body(x, y, tgt_mask=later, src_key_padding_mask=pad, memory_key_padding_mask=pad, tgt_is_causal=True)
        return F.cross_entropy(F.linear(y, self.target.weight).flatten(0, 1), wanted.flatten(), ignore_index=0,
                               label_smoothing=0.1)


def pairs(args):
    """Makes batches of (source, given, wanted), and counts their target tokens; lengths are drawn as in
    measures_models.py."""
    draw = random.Random(1)
    lengths = sorted((max(3, min(100, round(draw.lognormvariate(3.0, 0.5)))) for _ in range(6000)))
    batches, held = [], []
    for length in lengths + [None]:
        if length is None or (len(held) + 1) * (length + 1) > args.batch:
            if held:
                batches.append(held)
            held = []
        if length is not None:
            held.append(length)
    random.Random(2).shuffle(batches)
    for held in batches:
        width = max(held) + 1
        rows = torch.randint(4, args.vocab, (3, len(held), width))
        for row, length in enumerate(held):
            rows[:, row, length + 1 :] = 0
        yield rows, sum(held) + len(held)


def trained(args, model, batch_of):
    step_of = torch.compile(model, dynamic=args.mode == "translation" or None) if args.compile == "compile" else model
    adamw = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    seconds, tokens = [], []
    for step in range(args.warmup + args.steps):
        begun = time.perf_counter()
        inputs, count = batch_of(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = step_of(**inputs) if isinstance(inputs, dict) else step_of(*inputs)
        (loss.loss if args.mode in ("llama", "lora") else loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begun)
        tokens.append(count)
    seconds, tokens = seconds[args.warmup :], tokens[args.warmup :]
    if args.mode == "translation":
        return sum(tokens) / sum(seconds)
    return statistics.median(count / taken for count, taken in zip(tokens, seconds))


def decoded(args, model):
    model = model.to(torch.bfloat16 if args.dtype == "bf16" else torch.float32).eval()
    ids = torch.randint(4, args.vocab, (args.batch, 4))
    ways = {"cache_implementation": "static"} if args.compile == "compile" else {}

    @torch.inference_mode()
    def seconds(count):
        begun = time.perf_counter()
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count,
                       do_sample=False, pad_token_id=0, use_cache=True, **ways)
        return time.perf_counter() - begun

    if args.compile == "compile":
        model.forward = torch.compile(model.forward)
    seconds(8), seconds(args.tokens)
    short, long = seconds(8), seconds(args.tokens)
    return args.batch * (args.tokens - 8) / (long - short)


def searched(args):
    from transformers import MarianConfig, MarianMTModel

    side = dict(layers=args.layers, attention_heads=args.heads, ffn_dim=args.ffn)
    config = MarianConfig(vocab_size=args.vocab, d_model=args.embed, activation_function="relu", scale_embedding=True,
                          max_position_embeddings=256, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2,
                          forced_eos_token_id=2, attn_implementation="sdpa",
                          **{f"{name}_{key}": value for name in ("encoder", "decoder") for key, value in side.items()})
    model = MarianMTModel(config).eval()
    ids = torch.randint(4, args.vocab, (args.batch, args.tokens))
    ids[:, -1] = config.eos_token_id
    ways = {"cache_implementation": "static"} if args.compile == "compile" else {}
    if args.compile == "compile":
        model.forward = torch.compile(model.forward)

    @torch.inference_mode()
    def seconds():
        begun = time.perf_counter()
        found = model.generate(ids, attention_mask=torch.ones_like(ids), num_beams=args.beams, do_sample=False,
                               min_new_tokens=args.tokens, max_new_tokens=args.tokens, use_cache=True, **ways)
        assert found.shape == (args.batch, 1 + args.tokens)
        return time.perf_counter() - begun

    for _ in range(args.warmup):
        seconds()
    return args.batch * args.tokens / statistics.median(seconds() for _ in range(args.steps))


def bytes_read():
    numbers, taken = torch.ones(1 << 28), []
    for _ in range(7):
        begun = time.perf_counter()
        numbers.sum()
        taken.append(time.perf_counter() - begun)
    return numbers.nbytes / statistics.median(taken)


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    if args.mode == "read":
        speed = bytes_read()
    elif args.mode == "decode":
        speed = decoded(args, llama(args))
    elif args.mode == "beam":
        speed = searched(args)
    elif args.mode in ("llama", "lora"):
        tokens = torch.randint(args.vocab, (args.batch, args.tokens))
        model = llama(args) if args.mode == "llama" else adapted(args)
        speed = trained(args, model, lambda _: ({"input_ids": tokens, "labels": tokens}, tokens.numel()))
    else:
        batches = list(pairs(args))
        speed = trained(args, Translator(args), lambda step: batches[step % len(batches)])
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({args.compile: {"tokens_per_second": round(speed, 1), "peak_bytes": peak},
                      "peer": "torch " + torch.__version__}))


main()
