#!/usr/bin/env python3
"""Measures the queue: how soon an urgent run makes its first step, what waits in between, and how many steps are lost.

    tests/bench/preemption.py [--only here|ranks|crowd|hosts|large] [--rounds 10] [--waiting 1000]

Times are medians over the rounds, on an otherwise idle machine. `hosts` needs root, for hosts in network namespaces.
"""

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

from measures_hosts import Hosts
from runs import BUILD, Failed, build, when

LARGE = ["--set", "model={kind: gpt2, layers: 12, heads: 12, embed: 768, vocab_size: 50257}", "--set", "batch.sequences=1"]
SMALL = """
model: {kind: gpt2, layers: 2, heads: 2, embed: 64}
data: {train: text.txt}
batch: {sequences: 4, tokens: 32}
schedule: {kind: constant, steps: 100000000}
checkpoint: {every: 0}
evaluate: {every: 0}
log: {every: 1}
"""


class Place:
    """A folder with a recipe, and dtrun with a state of its own."""

    def __init__(self, env, folder):
        self.folder, self.env = folder, env
        with open(f"{folder}/text.txt", "w") as text:
            text.writelines(f"{i} {i * i}\n" for i in range(20000))
        self.write("small", SMALL)

    def write(self, name, recipe):
        with open(f"{self.folder}/{name}.yaml", "w") as file:
            file.write(f"name: {name}\n{recipe}")

    def dtrun(self, *words):
        done = subprocess.run([BUILD / "bin" / "dtrun", *map(str, words)], capture_output=True, text=True, env=self.env,
                              cwd=self.folder, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 4):
            raise Failed(f"dtrun {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout.strip()

    def launch(self, *words):
        return self.dtrun("launch", "small.yaml", "--queue", "--detach", *words)

    def status(self, run):
        return json.loads(self.dtrun("status", run, "--json"))

    def await_step(self, run, step=1):
        while self.status(run)["step"] < step:
            time.sleep(0.05)

    def points(self, run):
        return [json.loads(line) for line in self.dtrun("metrics", run, "--format", "jsonl").splitlines()]

    def store(self):
        return sqlite3.connect(self.env["XDG_STATE_HOME"] + "/dtrun/store.db")


def here(folder):
    env = {**os.environ, **{f"XDG_{kind}_HOME": f"{folder}/{kind.lower()}" for kind in ("STATE", "CACHE", "CONFIG")}}
    return Place(env, folder)


def preempt(place, rounds, *sets, least=20):
    """Seconds from the launch of an urgent run to its first step, and from the end of the save."""
    place.dtrun("queue", "guarantee", "0s")
    victim, times, after = place.launch("--name", "victim", *sets), [], []
    for i in range(rounds):
        place.await_step(victim, place.status(victim)["step"] + least)
        asked = time.time()
        urgent = place.launch("--name", f"urgent{i}", "--priority", "1", "--set", f"schedule.steps={least}", *sets)
        place.dtrun("wait", urgent)
        first = min(when(point["time"]) for point in place.points(urgent) if point["name"] == "loss")
        (saved,) = place.store().execute("SELECT max(time_ms) FROM checkpoints JOIN runs USING (run) WHERE id = ?", (victim,)).fetchone()
        times.append(first - asked)
        after.append(first - saved / 1000)
    place.dtrun("stop", victim)
    return statistics.median(times), statistics.median(after)


def crowd(place, waiting):
    """Seconds of `dtrun queue` and processor seconds of a decision with so many runs that wait."""
    place.dtrun("queue", "guarantee", "1d")
    victim = place.launch("--name", "blocker")
    place.await_step(victim)
    for i in range(waiting):
        place.launch("--name", f"w{i}")
    place.dtrun("stop", "w0")
    listing = []
    for _ in range(5):
        begun = time.monotonic()
        listed = json.loads(place.dtrun("queue", "--json"))
        listing.append(time.monotonic() - begun)
    assert len(listed) == waiting, len(listed)
    pids = subprocess.run(["pgrep", "-f", "dtrun arbiter$"], capture_output=True, text=True).stdout.split()
    mine = [pid for pid in pids if place.env["XDG_STATE_HOME"].encode() in open(f"/proc/{pid}/environ", "rb").read()]
    def ticks():
        return sum(map(int, open(f"/proc/{mine[0]}/stat").read().split()[13:15])) / os.sysconf("SC_CLK_TCK")
    before, changes = ticks(), 20
    for i in range(changes):
        place.dtrun("queue", "priority", f"w{i + 1}", str(-1 - i))
        time.sleep(0.3)
    return statistics.median(listing), (ticks() - before) / changes


def repeated(place):
    """Steps done twice by 8 ranks in 1,600 steps with 4 preemptions."""
    place.dtrun("queue", "guarantee", "0s")
    sets = ["--set", "ranks=8", "--set", "threads=1", "--set", "strategy.kind=ddp"]
    victim = place.launch("--name", "long", *sets, "--set", "schedule.steps=1600")
    for i in range(4):
        place.await_step(victim, 1 + 300 * (i + 1))
        urgent = place.launch("--name", f"short{i}", "--priority", "1", *sets, "--set", "schedule.steps=5")
        place.dtrun("wait", urgent)
    place.dtrun("wait", victim)
    rows = place.store().execute("SELECT metrics.step, count(*) FROM metrics JOIN series USING (series) JOIN runs USING (run)"
                                 " WHERE id = ? AND series.name = 'loss' GROUP BY metrics.step", (victim,)).fetchall()
    attempts = place.store().execute("SELECT count(*) FROM attempts JOIN runs USING (run) WHERE id = ?", (victim,)).fetchone()[0]
    return attempts - 1, len(rows), sum(count - 1 for _, count in rows)


def preempt_here(place, args):
    print("preemption, this machine: %.2f s from the launch to the first step, %.2f s from the save" %
          preempt(place, args.rounds))


def repeat_ranks(place, args):
    print("8 ranks: %d preemptions, %d steps recorded, %d of them twice" % repeated(place))


def crowd_of(place, args):
    print("%d waiting: `queue` %.2f s, a decision %.3f s of a processor" % (args.waiting, *crowd(place, args.waiting)))
    place.dtrun("stop", "blocker", "--now")


def preempt_hosts(place, args):
    print("preemption, two hosts: %.2f s from the launch to the first step, %.2f s from the save" %
          preempt(place, args.rounds, "--set", 'nodes=["host1", "host2"]', "--set", "threads=1"))


def preempt_large(place, args):
    print("preemption, two hosts, 124M: %.2f s from the launch to the first step, %.2f s from the save" %
          preempt(place, 3, "--set", 'nodes=["host1", "host2"]', "--set", "threads=1", *LARGE, least=1))


HERE = {"here": preempt_here, "ranks": repeat_ranks, "crowd": crowd_of}
ON_HOSTS = {"hosts": preempt_hosts, "large": preempt_large}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=[*HERE, *ON_HOSTS])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--waiting", type=int, default=1000)
    args = parser.parse_args()
    build()
    for name, measure in HERE.items():
        if args.only not in (None, name):
            continue
        folder = tempfile.mkdtemp(prefix="dtqueue.")
        try:
            measure(here(folder), args)
        finally:
            subprocess.run(["pkill", "-f", "dtrun arbiter$"])
            shutil.rmtree(folder, ignore_errors=True)
    for name, measure in ON_HOSTS.items():
        if args.only not in (None, name):
            continue
        os.environ["NET_HOME_SIZE"] = "6g"
        hosts = Hosts(2)
        try:
            os.makedirs(f"{hosts.net}/launch", exist_ok=True)
            measure(Place(hosts.env, f"{hosts.net}/launch"), args)
        finally:
            hosts.down()


if __name__ == "__main__":
    main()
