#!/usr/bin/env python3
"""A program of several ranks without a library: counts steps, and fails in one of many ways.

    program.py FAULT DETAIL RANK STEP
"""
import ctypes
import os
import resource
import signal
import sys
import time

fault, detail, victim, at = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rank = int(os.environ["RANK"])


def provoke():
    print(f"fault at {time.time():.3f}", flush=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if fault == "exit":
        print("cannot go on: no such thing", file=sys.stderr)
        sys.exit(int(detail))
    if fault == "early":
        sys.exit(0)
    if fault == "raise":
        if detail == "UnicodeDecodeError":
            b"\xff".decode()
        if detail == "RecursionError":
            provoke_again(0)
        raise getattr(__builtins__, detail)(f"sample 4711 of rank {rank}")
    if fault == "crash":
        if detail == "segv":
            ctypes.string_at(8)
        os.kill(os.getpid(), {"abort": signal.SIGABRT, "kill": signal.SIGKILL, "bus": signal.SIGBUS}[detail])
    while fault == "program_sleep":
        time.sleep(1000)


def provoke_again(depth):
    provoke_again(depth + 1)


for step in range(1, 100000):
    time.sleep(0.1)
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step == at and rank == victim and fault not in ("program_freeze", "none"):
        provoke()
    if fault == "program_sleep" and step == at:
        provoke()
    if fault == "early" and step == at + 5:
        time.sleep(1000)  # as others do that wait for it
