#!/usr/bin/env python3
"""On demand: reads the files of `dtrun export` with the programs that they are for. Needs tensorboard, pyarrow and
duckdb; a missing one is left out and reported. None is part of the suite.

    python3 -m venv V && V/bin/pip install tensorboard pyarrow duckdb
    V/bin/python tests/cli/export_peers.py build/dev/bin/dtrun RUN RUN...     # runs of the history
"""
import glob
import json
import math
import subprocess
import sys
import tempfile

dtrun, runs = sys.argv[1], sys.argv[2:]
folder = tempfile.mkdtemp(prefix="dtrun-peers-")


def call(*arguments):
    return subprocess.run([dtrun, *arguments], check=True, capture_output=True, text=True).stdout


points = [json.loads(line) for line in call("export", *runs, "--to", "jsonl").splitlines()]
number = lambda p: float(p["not_finite"]) if p["value"] is None else p["value"]
alike = lambda a, b: a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6)
print(f"{len(points)} points of {len(runs)} runs")

call("export", *runs, "--to", "parquet", folder + "/a.parquet")
try:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder + "/a.parquet")
    rows = table.to_pylist()
    assert len(rows) == len(points) and str(table.schema.field("time").type).startswith("timestamp[ms"), table.schema
    for row, p in zip(rows, points):
        assert (row["run"], row["run_name"], row["attempt"], row["step"], row["name"]) == (
            p["run"], p["run_name"], p["attempt"], p["step"], p["name"]), (row, p)
        value = number(p)
        assert row["value"] == value or (math.isnan(row["value"]) and math.isnan(value)), (row, p)
    print(f"pyarrow {pyarrow.__version__}: the same")
except ImportError:
    print("pyarrow is missing")
try:
    import duckdb

    count, names = duckdb.sql(f"SELECT count(*), count(DISTINCT name) FROM '{folder}/a.parquet'").fetchone()
    assert count == len(points) and names == len({p["name"] for p in points})
    low, = duckdb.sql(f"SELECT min(value) FROM '{folder}/a.parquet' WHERE name = 'loss'").fetchone()
    finite = [number(p) for p in points if p["name"] == "loss" and not math.isnan(number(p))]
    assert low == min(finite), (low, min(finite))
    print(f"duckdb {duckdb.__version__}: the same")
except ImportError:
    print("duckdb is missing")

call("export", *runs, "--to", "tensorboard", folder + "/board")
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    import tensorboard.version

    for run in runs:
        mine = [p for p in points if p["run"] == run]
        place, = glob.glob(f"{folder}/board/*-{run}")
        board = EventAccumulator(place, size_guidance={"scalars": 0})
        board.Reload()
        assert set(board.Tags()["scalars"]) == {p["name"] for p in mine}
        for name in board.Tags()["scalars"]:
            told = [(e.step, e.value, e.wall_time) for e in board.Scalars(name)]
            want = [p for p in mine if p["name"] == name]
            assert len(told) == len(want), (name, len(told), len(want))
            for (step, value, _), p in zip(told, want):
                assert step == p["step"] and alike(value, number(p)), (name, step, value, p)
    print(f"tensorboard {tensorboard.version.VERSION}: the same")
except ImportError:
    print("tensorboard is missing")
