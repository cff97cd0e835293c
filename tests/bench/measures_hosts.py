"""Measures lines that hosts share: the same file is decoded on one host of one core, and on two.

The hosts are those of tests/net/net.sh (network namespaces with a real sshd); the processes of each are bound to one
core, so that the machine needs a core for each host.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from runs import BUILD, ROOT, Failed, why

NET = ROOT / "tests" / "net" / "net.sh"
LINES = (2000, 20000)
# The numbers of examples/translation.yaml, with a model that is large enough for a minute of decoding.
SIZE = ["model.embed=192", "model.ffn=768", "model.layers=3"]


class Hosts:
    """Hosts 1 to `count`, host N on core N - 1, and the environment of the commands that reach them."""

    def __init__(self, count):
        done = subprocess.run([NET, "up", str(count)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(why(done))
        self.net = done.stdout.strip()
        words = subprocess.run(["bash", "-c", '. "$1/env"; env -0', "env", self.net], check=True, capture_output=True)
        self.env = dict(word.split("=", 1) for word in words.stdout.decode().split("\0") if word)
        config = (pathlib.Path(self.net) / "ssh_config").read_text()
        self.address = config.split("Host host1\n", 1)[1].split("HostName ", 1)[1].split()[0]
        try:
            for host in range(1, count + 1):
                self.bind(f"host{host}", host - 1)
        except (Failed, subprocess.CalledProcessError):
            self.down()
            raise

    def bind(self, host, core):
        """What sshd starts later inherits the core."""
        pids = subprocess.run([NET, "pids", self.net, host], check=True, capture_output=True, text=True).stdout.split()
        if not pids:
            raise Failed("hosts on 127.0.0.1 cannot be bound to a core: namespaces need root")
        for pid in pids:
            subprocess.run(["taskset", "-acp", str(core), pid], check=True, stdout=subprocess.DEVNULL)

    def dtrun(self, *args):
        done = subprocess.run([BUILD / "bin" / "dtrun", *map(str, args)], capture_output=True, text=True, env=self.env)
        if done.returncode != 0:
            raise Failed(f"dtrun {' '.join(map(str, args))}: exit {done.returncode}: {why(done)}")
        return done.stdout

    def down(self):
        subprocess.run([NET, "down", self.net], check=True)


def train(hosts, folder, steps):
    subprocess.run([sys.executable, ROOT / "examples" / "translation_corpus.py", folder], check=True)
    sets = [f"data.train={folder}/train", f"data.validation={folder}/valid", f"data.tokenizer={folder}",
            f"schedule.steps={steps}", f"schedule.warmup_steps={steps // 3}", "evaluate.every=0",
            "checkpoint.best_by=valid_loss", "optimizer.lr=1e-3",
            *SIZE]
    hosts.dtrun("launch", ROOT / "examples" / "translation.yaml", "--wait", "--json",
                *(word for one in sets for word in ("--set", one)))


def decode(hosts, source, nodes):
    """Returns the seconds of the command, its result, and the seconds from the first rank to the last line."""
    output = pathlib.Path(hosts.net) / "launch" / "decoded"
    begun = time.monotonic()
    run = json.loads(hosts.dtrun("generate", "translation", "--input", source, "--output", output, "--force", "--beam", 4,
                                 "--threads", 1, "--nodes", ",".join(nodes), "--json"))
    return time.monotonic() - begun, output.read_bytes(), run["seconds"]


def lines_on_hosts(settings):
    hosts, rows = Hosts(2), []
    try:
        folder = pathlib.Path(hosts.net) / "launch"
        train(hosts, folder, 20 if settings.quick else 300)
        words = (folder / "train.words").read_text().splitlines(keepends=True)
        few = folder / "few"
        few.write_text("one\ntwo\nten\nsix\n")
        one, two = ["host1"], ["host1", "host2"]
        decode(hosts, few, two)  # the engine and the checkpoint are sent to the hosts
        for lines in (100,) if settings.quick else LINES:
            source = folder / "source"
            source.write_text("".join((words * (lines // len(words) + 1))[:lines]))
            seconds, outputs = {1: [], 2: []}, set()
            for _ in range(settings.rounds):
                for nodes in (one, two):
                    taken, output, of_run = decode(hosts, source, nodes)
                    print(f"{len(nodes)} hosts: {taken:.1f} s, {of_run:.1f} s of them the run", file=sys.stderr, flush=True)
                    seconds[len(nodes)].append(taken)
                    outputs.add(output)
            if len(outputs) != 1:
                raise Failed("two hosts write other lines than one")
            slow, fast = (statistics.median(seconds[count]) for count in (1, 2))
            rows.append((f"{lines:,} lines translated (beam 4) by two hosts of one core, against one", "≥ 1.8×",
                         f"{slow / fast:.2f}×: {lines / fast:.1f} against {lines / slow:.1f} lines/s", "", settings.rounds))
    finally:
        hosts.down()
    return rows


MEASURES = {"lines_on_hosts": lines_on_hosts}
