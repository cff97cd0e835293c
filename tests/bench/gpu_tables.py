"""Prints what gpu_run.py has measured so far: results.json as Markdown tables."""

NAMES = ["first", "124m", "124m-kept", "ops", "attention", "graphs", "fp16", "xl", "124m-torch", "attention-torch", "xl-torch"]
VOCAB = 50257

# bf16 with fp32 sums, dense: the data sheets, as in runner/predict/predict.c.
PEAK_TFLOPS = {"H100": 989.4, "H200": 989.4, "A100": 312.0, "L40S": 362.0, "4090": 165.2}

MODELS = {  # layers, heads, embed, sequences of 1,024 tokens
    "124m": (12, 12, 768, 32),
    "xl": (48, 25, 1600, 8),
    "quick": (2, 2, 32, 2),
}


def mfu(tokens_per_second, model, peak):
    """6 N + 12 L C T FLOPs a token (recipes/architecture/gpt2.c) over the card's published rate."""
    layers, _, embed, _ = MODELS[model]
    flops = 6 * (12 * layers * embed**2 + VOCAB * embed) + 12 * layers * embed * 1024
    return flops * tokens_per_second / (peak * 1e12)


def cell(one, shown):
    """Returns a measured value as text, or the reason why there is none."""
    if one is None:
        return "not there"
    if "failed" in one:
        return "failed: " + one["failed"].replace("|", "/")
    return shown(one)


def ratio(ours, theirs, key, over=False):
    if not ours or not theirs or not ours.get(key) or not theirs.get(key):
        return ""
    return f"{theirs[key] / ours[key] if over else ours[key] / theirs[key]:.2f}x"


def of_model(results, model, title, bar_ratio, bar_mfu):
    ours, peer, peak = results.get(model), results.get(model + "-torch"), results["machine"]["peak_tflops"]
    way = f" ({peer['way']})" if peer and "way" in peer else ""
    yield (f"{title}, tokens/s", bar_ratio, cell(ours, lambda one: f"{one['tokens_per_second']:,.0f}"),
           cell(peer, lambda one: f"{one['tokens_per_second']:,.0f}{way}"), ratio(ours, peer, "tokens_per_second"))  # fmt: skip
    if peak:
        def share(one):
            return f"{mfu(one['tokens_per_second'], model, peak):.1%}"

        yield (f"{title}, MFU: (6N + 12LCT) x tokens/s over {peak} TFLOP/s", bar_mfu, cell(ours, share), cell(peer, share), "")
    held = ours and ours.get("memory_bytes")
    yield (f"{title}, peak memory of the card", "<= 0.8 of PyTorch", f"{held / 1e9:.2f} GB" if held else "not there",
           cell(peer, lambda one: f"{one['reserved_bytes'] / 1e9:.2f} GB reserved"),
           f"{held / peer['reserved_bytes']:.2f}x" if held and peer and "reserved_bytes" in peer else "")  # fmt: skip


def of_attention(results):
    ours, peer = results.get("attention"), results.get("attention-torch")
    for name, bar in (("forward", 0.9), ("backward", 0.8)):
        key = f"{name}_ms"
        for whose, title in (("own", "ours"), ("fastest", "ours or cuDNN's, the faster one")):
            mine = {key: ours[whose][name]} if ours and "failed" not in ours else ours
            yield (f"attention {name}, d 64, T 1024, causal, 32 x 12 heads: {title}", f">= {bar}x" if whose == "own" else "reported",
                   cell(mine, lambda one: f"{one[key]:.3f} ms"),
                   cell(peer, lambda one: f"{one[key]:.3f} ms ({one[name + '_way']})"), ratio(mine, peer, key, over=True))  # fmt: skip


def rows(results):
    yield from of_model(results, "124m", "GPT-2 124M, bf16, T 1024, batch 32", ">= 1.2x, >= 400k", ">= 50 %")
    yield from of_model(results, "xl", "GPT-2 1.5B, bf16, T 1024, batch 8", "reported", ">= 60 %")
    if "fp16" in results:
        half, full = results["fp16"], results.get("124m")
        yield ("GPT-2 124M, fp16 with loss scale, tokens/s over bf16", ">= 0.97",
               cell(half, lambda one: f"{one['tokens_per_second']:,.0f}"), "", ratio(half, full, "tokens_per_second"))  # fmt: skip
    if "124m-kept" in results:
        kept = results["124m-kept"]
        yield ("GPT-2 124M, bf16, with activation_checkpointing: keep_all, tokens/s over none", "reported",
               cell(kept, lambda one: f"{one['tokens_per_second']:,.0f}, {(one['memory_bytes'] or 0) / 1e9:.2f} GB"), "",
               ratio(kept, results.get("124m"), "tokens_per_second"))  # fmt: skip
    if "graphs" in results and "failed" not in results["graphs"]:
        recorded, launched = results["graphs"]["true"], results["graphs"]["false"]
        yield ("GPT-2 124M, bf16, batch 1, tokens/s of recorded steps over launched ones", "reported",
               f"{recorded['tokens_per_second']:,.0f}", "", ratio(recorded, launched, "tokens_per_second"))  # fmt: skip
    yield from of_attention(results)
    for op in ("layernorm_forward", "layernorm_backward", "optimizer_step", "cross_entropy_backward"):
        for copy, rate in of_op(results, op):
            yield (f"{op}, share of measured copy bandwidth", ">= 85 %", f"{rate / copy:.0%}", "", "")


def of_op(results, op):
    ops = results.get("ops")
    if isinstance(ops, list):
        copy = next((row[3] for row in ops if row[0] == "copy"), None)
        yield from ((copy, row[3]) for row in ops if row[0] == op and copy)


def table_of_ops(results):
    ops, peak = results.get("ops"), results["machine"]["peak_tflops"]
    if not isinstance(ops, list) or not any(row[0] == "copy" for row in ops):
        return []
    copy = next(row[3] for row in ops if row[0] == "copy") or 1.0  # times below the precision are 0.0
    fastest = max((row[4] or 0) for row in ops)
    top = (peak * 1e3 if peak else fastest) or 1.0
    lines = ["", f"Ops, bf16, 124M at 32 x 1024. Copy {copy:,.0f} GB/s measured; peak {top / 1e3:,.1f} TFLOP/s published, "
             f"{fastest / 1e3:,.1f} measured at best:", "",
             "| op | rows, in, out | ms | GB/s | of copy | GFLOP/s | of peak | share of the limit |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for op, shape, ms, bytes_rate, flops_rate in ops:
        of_copy, of_peak = bytes_rate / copy, (flops_rate or 0) / top
        lines.append(f"| {op} | {shape} | {ms:.3f} | {bytes_rate:,.0f} | {of_copy:.0%} | {f'{flops_rate:,.0f}' if flops_rate else ''} | "
                     f"{f'{of_peak:.0%}' if flops_rate else ''} | {max(of_copy, of_peak):.0%} |")  # fmt: skip
    return lines


def text(results):
    machine = results["machine"]
    torch = next((one["torch"] for one in results.values() if isinstance(one, dict) and "torch" in one), None)
    lines = [f"## {machine['date']}: {machine['name']}, driver {machine['driver']}, {f'PyTorch {torch}' if torch else 'without PyTorch'}", ""]
    if machine["quick"]:
        lines += ["A quick try with a tiny model: these figures mean nothing.", ""]
    if "first" in results:
        lines += ["First look at 124M, 30 steps: " + cell(results["first"], lambda one: f"{one['tokens_per_second']:,.0f} tokens/s, "
                  f"loss {one['first_loss']:.3f} to {one['last_loss']:.3f}"), ""]  # fmt: skip
    lines += ["| measure | bar | dtrun | PyTorch | ratio |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(results)]
    return "\n".join(lines + table_of_ops(results)) + "\n"
