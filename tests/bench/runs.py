"""Shared code of the measures: whole runs of dtrun, the peer, and the machine they share."""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench-release"
PROGRAMS = ["dtrun", "dtrun-agent", "dtrun-engine", "dtrun-reach", "bench_step"]
PEER_SECONDS = 420


class Failed(Exception):
    """A run of dtrun or of the peer failed; the text has the reason."""


def build(programs=PROGRAMS):
    """Builds the programs as people run them, and those that belong to the tests."""
    options = ["-G", "Ninja", "-DDT_TESTS=ON"]
    for command in (["cmake", "-S", ROOT, "-B", BUILD, *options],
                    ["cmake", "--build", BUILD, "--target", *programs]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def output(program, *args):
    done = subprocess.run([BUILD / "bin" / program, *map(str, args)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Failed(f"{program} {' '.join(map(str, args))}: exit {done.returncode}: {why(done)}")
    return done.stdout


def why(done):
    """Returns the error of a program that failed: with --json from its object, else from stderr."""
    try:
        end = json.loads(done.stdout)
        return end.get("reason") or end["error"]["message"]
    except (ValueError, AttributeError, KeyError, TypeError):
        return done.stderr.strip() or done.stdout.strip() or "it says nothing"


class PeakMemory(threading.Thread):
    """Watches the most memory that any rank of our runs has resident (VmHWM), while they run. Our ranks are recognised
    by the state folder in their command line or environment."""

    def __init__(self):
        super().__init__(daemon=True)
        self.state = os.environ["XDG_STATE_HOME"].encode()
        self.peak_bytes = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.25):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    self.look(process)
                except OSError:
                    pass  # the process has ended

    def look(self, process):
        if (process / "comm").read_text().strip() != "dtrun-engine":
            return
        words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        held = re.search(r"VmHWM:\s*(\d+) kB", (process / "status").read_text())
        if held and self.state in words:
            self.peak_bytes = max(self.peak_bytes, int(held[1]) * 1024)


def launch(recipe, keep=False, **sets):
    """Makes a whole run. Returns its final object, its points, the seconds to the first step, and a rank's memory.

    A key of `sets` is a path of the recipe with '__' for '.'. Deletes the checkpoints unless asked to keep them."""
    args = [word for key, value in sets.items()
            for word in ("--set", f"{key.replace('__', '.')}={value}")]
    memory = PeakMemory()
    memory.start()
    asked = time.time()
    end = json.loads(output("dtrun", "launch", ROOT / "examples" / recipe, "--wait", "--json",
                            *args))
    memory.over.set()
    memory.join()
    points = output("dtrun", "metrics", end["run"], "--format", "jsonl").splitlines()
    end["points"] = [json.loads(line) for line in points]
    end["first_step_seconds"] = min(when(point["time"]) for point in end["points"]) - asked
    end["peak_bytes"] = memory.peak_bytes
    runs = pathlib.Path(os.environ["XDG_STATE_HOME"]) / "dtrun" / "runs"
    if not keep:
        shutil.rmtree(runs / end["run"] / "checkpoints", ignore_errors=True)
    return end


def when(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def values(run, name, skip=0):
    """Returns a metric's values, without the first `skip` points."""
    return [point["value"] for point in run["points"] if point["name"] == name][skip:]


def peer(python, script="peer_torch.py", **options):
    """Returns the peer's answer for one mode, eager or compile."""
    args = [word for key, value in options.items()
            for word in (f"--{key.replace('_', '-')}", str(value))]
    try:
        done = subprocess.run([python, ROOT / "tests" / "bench" / script, *args], capture_output=True, text=True,
                              timeout=PEER_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"the peer took over {PEER_SECONDS} s: {' '.join(args)}") from None
    if done.returncode != 0:
        raise Failed(f"the peer failed: {why(done)}")
    return json.loads(done.stdout.splitlines()[-1])[options["compile"]]


def machine():
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", cpu)[1]
    units = [name for name in ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
             if re.search(rf"\b{name}\b", cpu)]
    return f"{model}, {os.cpu_count()} cores, {units[0] if units else 'no AVX2'}"
