#!/usr/bin/env python3
"""Writes cases.tsv: 500 labelled cases of faults and of healthy stalls, drawn with a fixed seed.

    tests/verdicts/cases.py > tests/verdicts/cases.tsv

A case is a run on hosts, what is done to it, and what dtrun must say of it:
  case      number
  fault     what is done (verdicts.py has a function for each)
  detail    a signal, an exit code, an exception, seconds
  hosts     number of hosts, each with `ranks` ranks
  when      the step from which on it is done; 0: before the launch
  victim    rank that is hit; -1: none, or all
  cause     label of the verdict (CAUSES in verdicts.py)
  rank,node what the verdict must name; -: nothing
"""
import random

COLUMNS = ["case", "fault", "detail", "hosts", "ranks", "when", "victim", "cause", "rank", "node"]
EXCEPTIONS = ["ValueError", "KeyError", "ZeroDivisionError", "FileNotFoundError", "AssertionError", "RuntimeError", "ImportError",
              "UnicodeDecodeError", "RecursionError", "MemoryError", "NotImplementedError", "TimeoutError"]

# fault, details, cause, number of cases, what the verdict names, how many hosts (weights), first step
KINDS = [
    # the engine's ranks
    ("kill", ["9", "11", "6", "7", "8", "15", "4", "5"], "signal", 100, "rank", (2, 2, 2, 3, 3, 4, 8), 1),
    ("freeze", ["-"], "stopped", 24, "rank", (2, 3, 4), 1),
    # machines and networks
    ("agent", ["9"], "agent", 20, "node", (2, 3, 4), 1),
    ("cut", ["-"], "cut", 20, "node", (2, 3, 4), 1),
    ("reboot", ["-"], "reboot", 16, "node", (2, 3, 4), 1),
    ("full", ["-"], "full", 16, "node", (2, 3), 1),
    ("readonly", ["-"], "prepare", 12, "node", (2, 3), 0),
    ("gone", ["-"], "unreachable", 10, "node", (2, 3), 0),
    # data and recipes
    ("data", ["missing", "empty", "short", "differs"], "data", 24, "none", (2, 3), 0),
    ("diverge", [str(seed) for seed in range(1, 19)], "diverged", 18, "none", (2, 3), 1),
    ("recipe", ["optimizer.lr=fast", "ranks=0", "model.heads=3", "strategy.kind=dpp", "schedule.steps=-1", "batch.tokens=0",
                "optimizer.beta1=2", "model.layers=many"], "recipe", 24, "none", (2,), 0),
    # programs
    ("exit", ["1", "2", "3", "7", "42", "77", "99", "124", "126", "127", "200", "255"], "exit", 48, "rank", (2, 2, 3, 4), 1),
    ("early", ["0"], "early", 12, "rank", (2, 3), 1),
    ("raise", EXCEPTIONS, "exception", 72, "rank", (2, 2, 3), 1),
    ("crash", ["segv", "abort", "kill", "bus"], "signal", 32, "rank", (2, 3), 1),
    ("program_freeze", ["-"], "stopped", 12, "rank", (2, 3), 1),
    ("program_sleep", ["-"], "asleep", 8, "none", (2, 3), 1),
    # nothing is wrong, or somebody wants it so
    ("stop", ["-"], "stop", 12, "none", (2, 3, 4), 1),
    ("supervisor", ["9"], "healthy", 8, "none", (2, 3), 1),
    ("pause", ["5", "10", "20"], "healthy", 6, "none", (2, 3), 1),
    ("slow_network", ["300", "2000"], "healthy", 4, "none", (2, 3), 1),
    ("short_cut", ["4"], "healthy", 2, "none", (2,), 1),
]


def main():
    draw = random.Random(20261128)
    rows = []
    for fault, details, cause, count, names, hosts, first in KINDS:
        for i in range(count):
            many, ranks = draw.choice(hosts), draw.choice((1, 1, 2))
            if many >= 8:
                ranks = 1
            victim = draw.randrange(many * ranks)
            detail = details[i % len(details)]
            label = "told" if (fault, detail) == ("kill", "15") else cause
            rows.append([fault, detail, many, ranks, first and draw.choice((2, 5, 20, 60)),
                         victim if names != "none" else -1, label, victim if names == "rank" else "-",
                         f"host{victim // ranks + 1}" if names != "none" else "-"])
    print("\t".join(COLUMNS))
    for i, row in enumerate(rows):
        print("\t".join(map(str, [i + 1, *row])))


if __name__ == "__main__":
    main()
