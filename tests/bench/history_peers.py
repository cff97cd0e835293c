#!/usr/bin/python3
"""Compares the history with those of MLflow, TensorBoard and trackio: the same points, runs and charts, one after the
other.

    /usr/bin/python3 -m venv V && V/bin/pip install mlflow tensorboard trackio
    tests/bench/history_peers.py V [--quick] [--build build/bench-release] [--runs 10000] [--points 1000000]
                                   [--rounds 3] [--only ingest|lists|charts|band]

Builds nothing: `cmake --build BUILD --target bench_store serve_store` first. Prints a table; 'x' is how many times
faster dtrun is. Each peer is used in its fastest way: 1,000 points a call directly into its store, without a server
(MLflow with SQLite: log_batch; TensorBoard: its summary Writer; trackio: bulk_log). Reads are, for MLflow and
TensorBoard, the requests of their pages, and for trackio the functions that its server calls. Filling ends after a
minute: a peer with fewer points by then is charted with those, and its column has their number. wrk, if it is
installed, measures the most answers a second of dtrun.
"""

import argparse
import contextlib
import http.client
import json
import math
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
import urllib.parse

BATCH = 1000
CHART = 1000  # points or buckets that a chart requests
FILL_SECONDS = 60
WRK_SECONDS = 5
FIRST_MS = 1763718600000


# --- the peers, each in the interpreter of the virtual environment

def value(step):
    return 1.6 + 2.6 * math.exp(-step / 20000) + 0.1 * math.sin(step * 12.9)


def name_of(curve):
    return "loss" if curve == 0 else f"metric-{curve}"


class Filling:
    """Adds points to a peer through its own interface, and counts only the seconds of the calls."""

    def __init__(self, seconds):
        self.seconds, self.most, self.points = 0.0, seconds, 0

    def run(self, name, points, curves, times=None):
        every = max(1, BATCH // curves)
        steps = times or range(points // curves)
        for first in range(0, len(steps), every):
            if self.seconds > self.most:
                break
            some = steps[first:first + every]
            begun = time.monotonic()
            self.add(name, some, curves)
            self.seconds += time.monotonic() - begun
            self.points += len(some) * curves
        begun = time.monotonic()
        self.end(name)
        self.seconds += time.monotonic() - begun

    def end(self, name):
        pass


class Mlflow(Filling):
    def __init__(self, place, seconds):
        super().__init__(seconds)
        from mlflow.entities import Metric
        from mlflow.tracking import MlflowClient
        self.metric, self.client, self.runs = Metric, MlflowClient(f"sqlite:///{place}/mlflow.db"), {}
        self.client.search_experiments()

    def add(self, name, steps, curves):
        if name not in self.runs:
            self.runs[name] = self.client.create_run("0", run_name=name).info.run_id
        self.client.log_batch(self.runs[name], [
            self.metric(name_of(curve), value(step), FIRST_MS + step, step) for step in steps for curve in range(curves)])

    def end(self, name):
        self.client.set_terminated(self.runs[name])


class Tensorboard(Filling):
    def __init__(self, place, seconds):
        super().__init__(seconds)
        from tensorboard.summary import Writer
        self.place, self.open, self.writer, self.runs = place, Writer, None, {}

    def add(self, name, steps, curves):
        if self.writer is None:
            self.writer = self.open(f"{self.place}/tensorboard/{name}")
        for step in steps:
            for curve in range(curves):
                self.writer.add_scalar(name_of(curve), value(step), step, wall_time=(FIRST_MS + step) / 1000)

    def end(self, name):
        self.writer.close()
        self.writer = None
        self.runs[name] = name


class Trackio(Filling):
    def __init__(self, place, seconds):
        super().__init__(seconds)
        os.environ["TRACKIO_DIR"] = f"{place}/trackio"
        from trackio.sqlite_storage import SQLiteStorage
        self.store, self.runs = SQLiteStorage, {}

    def add(self, name, steps, curves):
        self.store.bulk_log("history", name, [{name_of(curve): value(step) for curve in range(curves)} for step in steps],
                            steps=list(steps), run_id=name)
        self.runs[name] = name


PEERS = {"mlflow": Mlflow, "tensorboard": Tensorboard, "trackio": Trackio}


def fill(peer, what, place, *numbers):
    """Prints as JSON what was added: points, seconds, and the peer's names of the runs."""
    filling = PEERS[peer](place, float(numbers[0]))
    numbers = list(map(int, numbers[1:]))
    if what == "points":
        runs, points, curves = numbers
        for run in range(runs):
            filling.run(f"many{run}", points, curves)
    else:
        for run in range(numbers[0]):
            if filling.seconds < filling.most:
                filling.run(f"sweep-{run}", 0, 2, list(range(250, 2001, 250)))
    print(json.dumps({"points": filling.points, "seconds": filling.seconds, "runs": filling.runs}))


def ask_trackio(place, what, rounds):
    """Prints the milliseconds of each round, and the size of the answer."""
    os.environ["TRACKIO_DIR"] = f"{place}/trackio"
    from trackio.sqlite_storage import SQLiteStorage
    from trackio import sqlite_storage
    runs = [{"run": run["name"], "run_id": run["id"]} for run in SQLiteStorage.get_run_records("history")]
    calls = {"list": lambda: SQLiteStorage.get_run_records("history"),
             "chart": lambda: SQLiteStorage.get_logs("history", runs[0]["run"], max_points=CHART, run_id=runs[0]["run_id"]),
             "band": lambda: SQLiteStorage.get_logs_batch("history", runs, max_points=CHART)}
    taken = []
    for _ in range(int(rounds)):
        begun = time.monotonic()
        answer = calls[what]()
        taken.append((time.monotonic() - begun) * 1000)
    print(json.dumps({"taken": taken, "count": len(answer)}))


# --- dtrun

class Served:
    """Runs a peer's server on its store."""

    def __init__(self, command, place):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.begun = time.monotonic()
        self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True, cwd=place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def until(self, is_there, *question):
        """Returns the seconds from the server's start until it gives this answer."""
        while time.monotonic() < self.begun + 600:
            with contextlib.suppress(OSError, AssertionError, ValueError):
                if is_there(self.ask(*question)[1]):
                    return time.monotonic() - self.begun
            time.sleep(0.05)
        sys.exit(f"{self.process.args[0]} does not answer {question}")

    def ask(self, method, path, body=None, form="application/json"):
        """Returns the milliseconds and the answer."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, {"Content-Type": form})
        answer = connection.getresponse()
        text = answer.read()
        milliseconds = (time.monotonic() - begun) * 1000
        connection.close()
        assert answer.status == 200, text
        return milliseconds, json.loads(text)


class Bench:
    """Holds the folder, the programs and the peers of this measurement."""

    def __init__(self, options, folder):
        from history import find
        self.options, self.folder = options, folder
        self.bench, self.serve = find(options.build, "bench_store"), find(options.build, "serve_store")
        self.programs = pathlib.Path(options.venv).absolute() / "bin"
        self.count = 0

    def place(self, what):
        self.count += 1
        path = f"{self.folder}/{self.count}-{what}"
        os.mkdir(path)
        return path

    def peer(self, *words):
        """Runs this file in the peers' interpreter."""
        return json.loads(subprocess.run([self.programs / "python", __file__, "--in-peer", *map(str, words)], check=True,
                                         capture_output=True, text=True).stdout.splitlines()[-1])

    def ours(self, store, points, curves, run):
        text = subprocess.run([self.bench, store, "points", str(points), str(curves), run], check=True,
                              capture_output=True, text=True).stdout
        return json.loads(text)["points_per_second"]

    def mlflow(self, place):
        return Served([self.programs / "mlflow", "server", "--backend-store-uri", f"sqlite:///{place}/mlflow.db"], place)

    def tensorboard(self, place):
        return Served([self.programs / "tensorboard", "--logdir", f"{place}/tensorboard"], place)


def number(amount):
    return f"{amount:,.0f}" if amount >= 10 else f"{amount:.1f}"


def row(measure, bar, ours, unit, peers, more_is_better=False):
    """Returns a row: dtrun's value, and for each peer the median, a remark, and how many times faster dtrun is."""
    a = statistics.median(ours)
    cells = []
    for peer in PEERS:
        if peer not in peers:
            cells.append("")
            continue
        found, note = peers[peer]
        b = statistics.median(found)
        cells.append(f"{number(b)} {unit}{note}: {a / b if more_is_better else b / a:,.0f}×")
    print(f"| {measure} | {bar} | {number(a)} {unit} | " + " | ".join(cells) + " |", flush=True)


def fewer(filled, points):
    return "" if filled["points"] >= points else f" ({filled['points']:,} points)"


def ingest(b):
    """Returns the folders of the last stores with one curve, for the charts."""
    points, kept = b.options.points, None
    for curves in (1, 100):
        ours, peers, place = [], {}, b.place("ingest")
        for at in range(b.options.rounds):
            ours.append(b.ours(f"{place}/{at}.db", points, curves, "many0"))
        filled = {peer: b.peer("fill", peer, "points", place, FILL_SECONDS, 1, points, curves) for peer in PEERS}
        for peer, found in filled.items():
            peers[peer] = [found["points"] / found["seconds"]], fewer(found, points)
        row(f"ingest of {points:,} points in {curves} curve{'s' if curves > 1 else ''}", "≥ 500,000/s, ≥ 20× MLflow", ours,
            "points/s", peers, True)
        kept = kept or (place, f"{place}/{b.options.rounds - 1}.db", filled)
    return kept


def charts(b, place, store, filled):
    from history import Server
    rounds, points = 5 * b.options.rounds, b.options.points
    run = next(iter(filled["mlflow"]["runs"].values()))
    questions = {
        "mlflow": f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?run_ids={run}&metric_key=loss&max_results={CHART}",
        "tensorboard": "/data/plugin/scalars/scalars?tag=loss&run=many0"}
    last = filled["tensorboard"]["points"] - 1
    whole = {"mlflow": lambda found: len(found["metrics"]) >= CHART // 2, "tensorboard": lambda found: found[-1][1] == last}
    ours, cold, peers, peers_cold = [], [], {}, {}
    for _ in range(b.options.rounds):
        begun = time.monotonic()
        with Server(b.serve, store, cold=True) as us:
            answer = us.get(f"/api/v1/runs/many0/metrics?name=loss&buckets={CHART}")[1]
            cold.append((time.monotonic() - begun) * 1000)
            ours += [us.get(f"/api/v1/runs/many0/metrics?name=loss&buckets={CHART}")[0] for _ in range(5)]
        assert sum(answer["series"]["loss"]["points"]) == points
    for peer, begin in (("mlflow", b.mlflow), ("tensorboard", b.tensorboard)):
        with begin(place) as them:
            note = fewer(filled[peer], points)
            peers_cold[peer] = [1000 * them.until(whole[peer], "GET", questions[peer])], note
            peers[peer] = [them.ask("GET", questions[peer])[0] for _ in range(rounds)], note
    peers["trackio"] = b.peer("trackio", place, "chart", rounds)["taken"], fewer(filled["trackio"], points)
    row(f"chart of {points:,} points", "≥ 20× MLflow", ours, "ms", peers)
    row("the same, with the server's start", "", cold, "ms", peers_cold)


def lists(b):
    from history import Server
    runs, rounds, place = b.options.runs, 5 * b.options.rounds, b.place("lists")
    store = f"{place}/runs.db"
    subprocess.run([b.bench, store, "runs", str(runs)], check=True, stdout=subprocess.DEVNULL)
    filled = {peer: len(b.peer("fill", peer, "runs", place, FILL_SECONDS, runs)["runs"]) for peer in PEERS}
    note = {peer: "" if count == runs else f" ({count:,} runs)" for peer, count in filled.items()}
    orders = {"the newest 100": ("", []), "the best 100 by loss": ("&sort=loss", ["metrics.loss ASC"])}
    with Server(b.serve, store) as us:
        ours = {what: [us.get("/api/v1/runs?limit=100" + path)[0] for _ in range(rounds)] for what, (path, _) in orders.items()}
    with b.mlflow(place) as them:
        them.until(lambda _: True, "POST", "/api/2.0/mlflow/experiments/search", '{"max_results": 1}')
        peers = {}
        for what, (_, order) in orders.items():
            body = json.dumps({"experiment_ids": ["0"], "max_results": 100, "order_by": order})
            found = [them.ask("POST", "/api/2.0/mlflow/runs/search", body) for _ in range(rounds)]
            assert len(found[0][1]["runs"]) == min(100, filled["mlflow"])
            peers[what] = {"mlflow": ([taken for taken, _ in found], note["mlflow"])}
    with b.tensorboard(place) as them:
        them.until(lambda found: len(found) == filled["tensorboard"], "GET", "/data/runs")
        peers["the newest 100"]["tensorboard"] = ([them.ask("GET", "/data/runs")[0] for _ in range(rounds)],
                                                  f" (all names){note['tensorboard']}")
    found = b.peer("trackio", place, "list", rounds)
    assert found["count"] == filled["trackio"]
    peers["the newest 100"]["trackio"] = found["taken"], f" (all names){note['trackio']}"
    for what in orders:
        row(f"list of {runs:,} runs, {what}", "≥ 20× MLflow", ours[what], "ms", peers[what])
    requests(b, store)


def our_band(b, place, runs, points):
    """Returns the milliseconds of a few answers."""
    from history import Server
    store = f"{place}/many-{points}.db"
    for run in range(runs):
        b.ours(store, points, 1, f"many{run}")
    path = f"/api/v1/band?name=loss&buckets={CHART}&runs=" + ",".join(f"many{run}" for run in range(runs))
    with Server(b.serve, store) as us:
        return [us.get(path)[0] for _ in range(5 * b.options.rounds)]


def band(b):
    """Peers have no band: their pages request all curves. They get as many points as they can add in about a minute."""
    runs, rounds, place, count = 100, b.options.rounds, b.place("band"), b.options.band_peer_points
    filled = {peer: b.peer("fill", peer, "points", place, FILL_SECONDS * 10, runs, count, 1) for peer in PEERS}
    assert all(found["points"] == runs * count for found in filled.values())
    peers = {}
    with b.mlflow(place) as them:
        ids = "".join(f"&run_ids={run}" for run in filled["mlflow"]["runs"].values())
        question = f"/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?metric_key=loss&max_results={CHART}{ids}"
        them.until(lambda found: len(found["metrics"]) >= runs * min(count, CHART) // 2, "GET", question)
        peers["mlflow"] = [them.ask("GET", question)[0] for _ in range(rounds)], ""
    with b.tensorboard(place) as them:
        body = urllib.parse.urlencode([("tag", "loss"), *(("runs", f"many{run}") for run in range(runs))])
        question = ("POST", "/data/plugin/scalars/scalars_multirun", body, "application/x-www-form-urlencoded")
        them.until(lambda found: len(found) == runs and all(one[-1][1] == count - 1 for one in found.values()), *question)
        peers["tensorboard"] = [them.ask(*question)[0] for _ in range(rounds)], ""
    peers["trackio"] = b.peer("trackio", place, "band", rounds)["taken"], ""
    row(f"band of {runs} runs × {count:,} points; the peers: 100 curves", "≥ 20× MLflow", our_band(b, place, runs, count), "ms", peers)
    points = b.options.band_points
    row(f"band of {runs} runs × {points:,} points", "< 100 ms", our_band(b, place, runs, points), "ms", {})


def requests(b, store):
    from history import Server
    wrk = shutil.which("wrk")
    if wrk is None:
        print("wrk is not there: no answers a second", file=sys.stderr)
        return
    with Server(b.serve, store) as server:
        name = server.get("/api/v1/runs?limit=1")[1]["runs"][0]["id"]
        for what, path in (("a run", f"runs/{name}"), ("the newest run", "runs?limit=1"), ("the newest 100 runs", "runs?limit=100")):
            text = subprocess.run([wrk, "-t1", "-c8", f"-d{WRK_SECONDS}", "-H", f"Authorization: Bearer {server.token}",
                                   f"{server.url}api/v1/{path}"], check=True, capture_output=True, text=True).stdout
            assert "Non-2xx" not in text, text
            rate = next(line.split()[1] for line in text.splitlines() if line.startswith("Requests/sec"))
            row(f"answers of the API, {what}", "≥ 2,000/s", [float(rate)], "/s", {})
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        row("most memory of the server meanwhile", "< 100 MB", [peak / 1000], "MB", {})


def main():
    if sys.argv[1:2] == ["--in-peer"]:
        sys.path.pop(0)  # this folder has modules of the same names
        return {"fill": fill, "trackio": ask_trackio}[sys.argv[2]](*sys.argv[3:])
    from history import ROOT
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("venv", help="the folder of a virtual environment that has the peers")
    parser.add_argument("--build", default=ROOT / "build" / "bench-release")
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--band-points", type=int, default=1000000, help="of each of 100 runs; 35 bytes each")
    parser.add_argument("--band-peer-points", type=int, default=2000, help="the same, beside the peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=["ingest", "charts", "lists", "band"])
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything")
    parser.add_argument("--folder")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.points, options.band_points = options.runs // 100, options.points // 100, options.band_points // 100
        options.band_peer_points, options.rounds = options.band_peer_points // 10, 1
    wanted = options.only or ["ingest", "charts", "lists", "band"]
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # the peer's server is faster without it
    with tempfile.TemporaryDirectory(prefix="dtrun-history-", dir=options.folder) as folder:
        b = Bench(options, folder)
        versions = subprocess.run([b.programs / "python", "-c", "from importlib.metadata import version\n"
                                   f"for name in {list(PEERS)}: print(name, version(name))"], check=True,
                                  capture_output=True, text=True).stdout.split("\n")
        print("| measure | bar | dtrun | " + " | ".join(filter(None, versions)) + " |\n|" + "---|" * (3 + len(PEERS)))
        if "ingest" in wanted or "charts" in wanted:
            kept = ingest(b)
            if "charts" in wanted:
                charts(b, *kept)
        if "lists" in wanted:
            lists(b)
        if "band" in wanted:
            band(b)


if __name__ == "__main__":
    main()
