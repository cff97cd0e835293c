#!/usr/bin/python3
"""The history beside MLflow's: the same points, runs and charts in both, one after the other; prints a table.

    /usr/bin/python3 -m venv V && V/bin/pip install mlflow
    tests/bench/history_mlflow.py V [--build build/bench-release] [--runs 10000] [--points 1000000] [--rounds 3]

Builds nothing: `cmake --build BUILD --target bench_store serve_store` first. MLflow keeps its runs in SQLite and gets its
best each time: points by log_batch of 1,000 straight into its store, without a server between; its lists and charts are
what its own page asks its server for (4 workers, its default). wrk, if it is there, asks ours for as many answers as it can.
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from history import ROOT, Server, find, row

EXPERIMENT = "0"
BATCH = 1000
CHART = 1000  # points or buckets that a chart asks for
WRK_SECONDS = 5

# What MLflow does by itself, in its own interpreter: the arguments are what, the store's address and a count.
FILL = """
import math, sys, time
from mlflow.entities import Metric, RunTag, ViewType
from mlflow.tracking import MlflowClient
what, store, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = MlflowClient(store)
client.search_experiments()
value = lambda step: 1.6 + 2.6 * math.exp(-step / 20000) + 0.1 * math.sin(step * 12.9)
if what == "points":
    run = client.create_run("0").info.run_id
    begun = time.monotonic()
    for first in range(0, count, 1000):
        steps = range(first, min(first + 1000, count))
        client.log_batch(run, [Metric("loss", value(step), 1763718600000 + step, step) for step in steps])
    print(time.monotonic() - begun, run)
else:
    for i in range(count):
        run = client.create_run("0", run_name=f"sweep-{i % 97}").info.run_id
        client.log_batch(run, [Metric(name, value(step), 1763718600000 + step, step)
                               for step in range(250, 2001, 250) for name in ("loss", "valid_loss")])
        client.set_terminated(run)
"""


class Tracking:
    """MLflow's server over its store."""

    def __init__(self, programs, store):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([programs / "mlflow", "server", "--port", str(self.port), "--backend-store-uri", store],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                        cwd=os.path.dirname(store.removeprefix("sqlite:///")))

    def __enter__(self):
        end = time.monotonic() + 120
        while True:
            try:
                self.ask("GET", "/health", plain=True)
                return self
            except OSError:
                assert time.monotonic() < end, "MLflow's server does not begin"
                time.sleep(0.3)

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ask(self, method, path, body=None, plain=False):
        """Milliseconds, and what was answered."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        milliseconds = (time.monotonic() - begun) * 1000
        connection.close()
        assert answer.status == 200, text
        return milliseconds, text if plain else json.loads(text)


def beside(measure, ours, theirs, unit, more_is_better=False):
    """Medians of what was measured in turn, and how many times better ours is."""
    a, b = statistics.median(ours), statistics.median(theirs)
    times = a / b if more_is_better else b / a
    print(f"| {measure} | ≥ 20× | {a:,.{0 if a >= 10 else 1}f} {unit} | {b:,.0f} {unit} | {times:,.0f}× |", flush=True)


def ingest(options, bench, python, folder):
    """The last store of each side stays, for its chart."""
    ours, theirs = [], []
    for at in range(options.rounds):
        store, peer = f"{folder}/one-{at}.db", f"sqlite:///{folder}/peer-{at}.db"
        text = subprocess.run([bench, store, "points", str(options.points), "1", "one"], check=True, capture_output=True,
                              text=True).stdout
        ours.append(json.loads(text)["points_per_second"])
        seconds, run = subprocess.run([python, "-c", FILL, "points", peer, str(options.points)], check=True,
                                      capture_output=True, text=True).stdout.split()
        theirs.append(options.points / float(seconds))
    beside(f"ingest of {options.points:,} points of one curve", ours, theirs, "points/s", True)
    return store, peer, run


def charts(options, serve, programs, store, peer, run):
    chart = (f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?run_ids={run}&metric_key=loss&max_results={CHART}")
    with Server(serve, store) as us, Tracking(programs, peer) as them:
        ours = lambda: us.get(f"/api/v1/runs/one/metrics?name=loss&buckets={CHART}")
        theirs = lambda: them.ask("GET", chart)
        assert len(theirs()[1]["metrics"]) >= CHART // 2 and sum(ours()[1]["series"]["loss"]["points"]) == options.points
        found = [(ours()[0], theirs()[0]) for _ in range(5 * options.rounds)]
    beside(f"chart of {options.points:,} points", *zip(*found), "ms")


def lists(options, bench, serve, python, programs, folder):
    store, peer = f"{folder}/runs.db", f"sqlite:///{folder}/runs-peer.db"
    subprocess.run([bench, store, "runs", str(options.runs)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([python, "-c", FILL, "runs", peer, str(options.runs)], check=True, stdout=subprocess.DEVNULL)
    search = "/api/2.0/mlflow/runs/search"
    with Server(serve, store) as us, Tracking(programs, peer) as them:
        for what, path, order in (("the newest 100", "", []), ("the best 100 by loss", "&sort=loss", ["metrics.loss ASC"])):
            ours = lambda: us.get("/api/v1/runs?limit=100" + path)
            theirs = lambda: them.ask("POST", search, {"experiment_ids": [EXPERIMENT], "max_results": 100, "order_by": order})
            assert len(ours()[1]["runs"]) == len(theirs()[1]["runs"]) == min(100, options.runs)
            found = [(ours()[0], theirs()[0]) for _ in range(5 * options.rounds)]
            beside(f"list of {options.runs:,} runs, {what}", *zip(*found), "ms")
    requests(serve, store)


def requests(serve, store):
    wrk = shutil.which("wrk")
    if wrk is None:
        print("wrk is not there: no answers a second", file=sys.stderr)
        return
    with Server(serve, store) as server:
        name = server.get("/api/v1/runs?limit=1")[1]["runs"][0]["id"]
        for what, path in (("a run", f"runs/{name}"), ("the newest run", "runs?limit=1"), ("the newest 100 runs", "runs?limit=100")):
            text = subprocess.run([wrk, "-t1", "-c8", f"-d{WRK_SECONDS}", "-H", f"Authorization: Bearer {server.token}",
                                   f"{server.url}api/v1/{path}"], check=True, capture_output=True, text=True).stdout
            assert "Non-2xx" not in text, text
            rate = next(line.split()[1] for line in text.splitlines() if line.startswith("Requests/sec"))
            row(f"answers of the API, {what}", "≥ 2,000/s", f"{float(rate):,.0f}/s | | ")
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        row("most memory of the server meanwhile", "< 100 MB", f"{peak / 1000:.0f} MB | | ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlflow", help="the folder of a virtual environment that has it")
    parser.add_argument("--build", default=ROOT / "build" / "bench-release")
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args()
    programs = pathlib.Path(options.mlflow).resolve() / "bin"
    python = programs / "python"
    bench, serve = find(options.build, "bench_store"), find(options.build, "serve_store")
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    version = subprocess.run([python, "-c", "import mlflow; print(mlflow.__version__)"], check=True, capture_output=True,
                             text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="dtrun-history-", dir=options.folder) as folder:
        print(f"| measure | bar | dtrun | MLflow {version} | |\n|---|---|---|---|---|")
        charts(options, serve, programs, *ingest(options, bench, python, folder))
        lists(options, bench, serve, python, programs, folder)


if __name__ == "__main__":
    main()
