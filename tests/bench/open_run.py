#!/usr/bin/python3
"""Measures how long a long run takes to open, in `dtrun top` on a terminal and in `dtrun show`; prints a table.

    tests/bench/open_run.py [--build build/test] [--steps 400000] [--metrics 100] [--store FOLDER]

Builds nothing: `cmake --build BUILD --target dtrun bench_store` first. The store is made in FOLDER, or in a temporary
one (32 bytes a point); a store in FOLDER is reused. Times are to the first complete frame, the best of five.
"""

import argparse
import os
import pathlib
import pty
import subprocess
import tempfile
import time


def first_frame(command, environment):
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    seen = b""
    while b"q quit" not in seen:
        seen += os.read(terminal, 1 << 16)
    took = time.monotonic() - began
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return took


def whole(command, environment):
    began = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/test")
    parser.add_argument("--steps", type=int, default=400000)
    parser.add_argument("--metrics", type=int, default=100)
    parser.add_argument("--store")
    options = parser.parse_args()
    programs = pathlib.Path(options.build).resolve() / "bin"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.store or temporary) / "dtrun"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "store.db").exists():
            subprocess.run([programs / "bench_store", folder / "store.db", "points",
                            str(options.steps * options.metrics), str(options.metrics), "long"],
                           check=True, stdout=subprocess.DEVNULL)
        environment = {**os.environ, "XDG_STATE_HOME": str(folder.parent)}
        dtrun = str(programs / "dtrun")
        for name, time_of, arguments in (("the list of `dtrun top --all`", first_frame, ["top", "--all"]),
                                         ("`dtrun top RUN`", first_frame, ["top", "last"]),
                                         ("`dtrun show RUN`", whole, ["show", "last"])):
            best = min(time_of([dtrun, *arguments], environment) for _ in range(5))
            print(f"| {name} | {best * 1000:.0f} ms |", flush=True)


main()
