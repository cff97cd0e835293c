#!/usr/bin/env python3
"""Measures what docs/performance.md shows of CPUs and hosts, and prints its tables.

    tests/bench/run.py [--shakespeare FILE] [--torch PYTHON] [--seeds 3] [--rounds 2]
                       [--only NAME]... [--quick]

Builds the programs first (build/bench-release). --shakespeare: the tinyshakespeare text; without
it those rows are left out. --torch: a Python that has PyTorch 2; without it there are no peers.
--seeds: runs of char-Shakespeare; --rounds: of each setting of the 124M. --only: first_step, char,
bf16, fp32, ranks, tensor, save, llama_bf16, llama_fp32, lora_bf16 (with peft beside PyTorch),
translation, beam, decode_bf16, decode_fp32 and both with _16, of 16 texts side by side (these with
transformers beside PyTorch), lines_on_hosts, startup and faults (as root, since their hosts are
network namespaces; the last two with torchrun, whose PYTHON may not be under /root). --quick tests
the script with tiny sizes: its figures mean nothing.
The first seven take 30 minutes on two cores, which should have nothing else to do.
"""

import argparse
import datetime
import os
import pathlib
import sys
import tempfile
import time

import runs
import measures_hosts
import measures_models
import measures_start
from measures import MEASURES, Settings


ALL = {**MEASURES, **measures_models.MEASURES, **measures_hosts.MEASURES, **measures_start.MEASURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shakespeare", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--torch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=ALL, action="append")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()

    runs.build()
    settings = Settings(args)
    failed = False
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        settings.gpt2_data(state)
        print(f"{datetime.date.today()}, {runs.machine()}; medians\n")
        print("| measure | bar | dtrun | PyTorch | runs |\n|---|---|---|---|---|")
        for name, measure in ALL.items():
            if args.only and name not in args.only:
                continue
            start = time.monotonic()
            try:
                for row in measure(settings):
                    print("| " + " | ".join(map(str, row)) + " |", flush=True)
            except runs.Failed as why:
                failed = True
                print(f"{name}: {why}", file=sys.stderr, flush=True)
            print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
