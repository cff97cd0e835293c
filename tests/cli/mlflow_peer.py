#!/usr/bin/env python3
"""On demand: `dtrun export --to mlflow` and `dtrun import mlflow` with a real tracking server, which this starts.
Exports are interrupted, repeated, refused, and followed while a run continues and the server dies; runs are imported
again.

    python3 -m venv V && V/bin/pip install mlflow
    V/bin/python tests/cli/mlflow_peer.py build/dev/bin/dtrun
"""
import json
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import mlflow
from mlflow.tracking import MlflowClient

folder = tempfile.mkdtemp(prefix="dtrun-mlflow-")
env = {**os.environ, "XDG_STATE_HOME": folder + "/state", "XDG_CACHE_HOME": folder + "/cache", "OMP_NUM_THREADS": "1"}
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
url = f"http://127.0.0.1:{port}"
client = MlflowClient(url)
server = None


def call(*words, code=0, **more):
    done = subprocess.run([sys.argv[1], *words], env={**env, **more}, capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def wait(what, seconds=120):
    end = time.monotonic() + seconds
    while True:
        try:
            found = what()
            if found:
                return found
        except Exception:
            pass
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.3)


def start():
    global server
    server = subprocess.Popen([str(pathlib.Path(sys.executable).parent / "mlflow"), "server", "--port", str(port), "--workers", "1",
                               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"], cwd=folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    wait(lambda: client.search_experiments())


def stop():
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def ours(run, experiment="dtrun"):
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id], f"tags.`dtrun.run` = '{run}'")
    assert len(found) == 1, found
    return found[0]


def history(run_id, name):
    return sorted((m.step, m.value, m.timestamp) for m in client.get_metric_history(run_id, name))


def assert_same(run, mine):
    points = [json.loads(line) for line in call("export", run, "--to", "jsonl").splitlines()]
    names = {p["name"] for p in points}
    assert set(mine.data.metrics) == names, (names, set(mine.data.metrics))
    for name in names:
        want = [(p["step"], p["value"]) for p in points if p["name"] == name]
        told = [(step, value) for step, value, _ in history(mine.info.run_id, name)]
        assert len(told) == len(want), (name, len(told), len(want))
        for (a, x), (b, y) in zip(told, want):
            assert a == b and (x == y or y is None or math.isclose(x, y, rel_tol=1e-12)), (name, a, b, x, y)
    return len(points)


pathlib.Path(folder, "text.txt").write_text("to be, or not to be: that is the question. " * 500)
pathlib.Path(folder, "tiny.yaml").write_text(
    "name: tiny\nmodel: {layers: 1, heads: 2, embed: 16}\ndata: {train: text.txt}\nlog: {every: 1}\n"
    "batch: {sequences: 2, tokens: 16}\nschedule: {steps: 300}\n")
try:
    start()
    run = json.loads(call("launch", "--wait", "--json", folder + "/tiny.yaml"))["run"]
    # interrupted repeatedly, then complete; and once more
    for milliseconds in (150, 300, 450, 600, 900):
        broken = subprocess.Popen([sys.argv[1], "export", run, "--to", "mlflow", url], env=env, stderr=subprocess.DEVNULL)
        time.sleep(milliseconds / 1000)
        broken.kill()
        broken.wait()
    for _ in range(2):
        call("export", run, "--to", "mlflow", url)
        mine = ours(run)
        count = assert_same(run, mine)
        assert mine.info.status == "FINISHED" and mine.info.run_name == "tiny" and mine.data.params["model.layers"] == "1"
    print(f"mlflow {mlflow.__version__}: {count} points of a run, whole after 5 that were broken off, and again")

    # followed: the server dies, and the run ends meanwhile
    run = call("launch", "--detach", folder + "/tiny.yaml", "--set", "schedule.steps=100000000",
               "--set", "log.every=200").strip()
    follower = subprocess.Popen([sys.argv[1], "export", run, "--to", "mlflow", url, "--follow", "--experiment", "live"],
                                env=env, stderr=subprocess.PIPE, text=True)
    wait(lambda: ours(run, "live").data.metrics["loss"])
    assert ours(run, "live").info.status == "RUNNING"
    stop()
    before = json.loads(call("status", run, "--json"))["step"]
    wait(lambda: json.loads(call("status", run, "--json"))["step"] > before + 100)
    call("stop", run)
    assert follower.poll() is None, follower.stderr.read()
    start()
    said = follower.communicate(timeout=180)[1]
    assert follower.returncode == 0, said
    count = assert_same(run, ours(run, "live"))
    assert ours(run, "live").info.status == "KILLED"
    print(f"followed: {count} points, whole after the server was away; it said: {said.strip().splitlines()}")

    # refused, and not reachable
    print(call("export", run, "--to", "mlflow", url + "/nosuch", code=2).strip())
    print(call("export", run, "--to", "mlflow", "http://127.0.0.1:1", code=3).strip())

    # runs that others logged are imported, also two runs of one name
    mlflow.set_tracking_uri(url)
    mlflow.set_experiment("others")
    for rate in (0.1, 0.2):
        with mlflow.start_run(run_name="same"):
            mlflow.log_param("lr", rate)
            for step in range(30):
                mlflow.log_metric("loss", math.nan if step == 7 else rate / (step + 1), step=step)
    ids = json.loads(call("import", "mlflow", url, "--json"))["runs"]
    assert len(ids) == 2, ids
    lines = [json.loads(line) for line in call("export", *ids, "--to", "jsonl").splitlines()]
    assert len(lines) == 60 and {line["run_name"] for line in lines} >= {"same"}, lines[:3]
    assert "0.1" in call("compare", *ids) and "0.2" in call("compare", *ids)
    call("import", "mlflow", url, "--experiment", "nosuch", code=2)
    print("imported: 2 runs, 60 points, compared by their params")
finally:
    stop()
    for line in json.loads(call("list", "--json", "--limit", "0"))["runs"]:
        if line["state"] not in ("finished", "failed", "stopped"):
            call("stop", "--now", line["run"])
    subprocess.run(["rm", "-rf", folder], check=True)
