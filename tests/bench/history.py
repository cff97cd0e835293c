#!/usr/bin/python3
"""Measures the history: ingest, lists, charts, and the page in Chromium; prints a table.

    tests/bench/history.py [--build build/bench-release] [--runs 10000] [--points 1000000]
                           [--overlaid 10] [--folder FOLDER] [--no-browser]

Builds nothing: `cmake --build BUILD --target bench_store serve_store` first. The store is made in FOLDER (a temporary
one; 40 bytes a point). Cold means a server that has just started, and a store that is not in the page cache. Elapsed
times are those of the client, on loopback; processor times are those of the server.
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


def find(build, name):
    for path in sorted(pathlib.Path(build).rglob(name)):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    sys.exit(f"{name} is not in {build}: build it first")


def row(measure, bar, found):
    print(f"| {measure} | {bar} | {found} |", flush=True)


class Server:
    """Starts serve_store on the store again; cold: removes the file from the page cache first."""

    def __init__(self, program, store, cold=False):
        if cold:
            with open(store, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.process = subprocess.Popen([program, store], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.link = self.process.stdout.readline().strip()
        self.token = self.link.split("token=")[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)

    def processor_ms(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / TICKS

    def get(self, path):
        """Returns the milliseconds and the answer."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection(self.url.split("/")[2], timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        milliseconds = (time.monotonic() - begun) * 1000
        connection.close()
        assert answer.status == 200, body
        return milliseconds, json.loads(body)

    def median(self, path, times=15):
        before = self.processor_ms()
        taken = [self.get(path)[0] for _ in range(times)]
        used = (self.processor_ms() - before) / times
        return f"{statistics.median(taken):.0f} ms (least {min(taken):.0f}; processor {used:.0f})"


def floor(folder, megabytes=64):
    block = os.urandom(1 << 20)
    path = os.path.join(folder, "floor")
    begun = time.monotonic()
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.monotonic() - begun
    os.unlink(path)
    row(f"{megabytes} MB written and synced, the disk's own", "", f"{megabytes / seconds:.0f} MB/s")


def ingest(bench, folder, points):
    for curves in (1, 10, 100):
        best = None
        for at in range(3):
            store = os.path.join(folder, f"ingest-{curves}-{at}.db")
            before = os.times()
            text = subprocess.run([bench, store, "points", str(points), str(curves)], check=True,
                                  capture_output=True, text=True).stdout
            after = os.times()
            used = after.children_user + after.children_system - before.children_user \
                - before.children_system
            found = (json.loads(text)["points_per_second"], points / used)
            best = found if best is None else max(best, found)
            size = os.path.getsize(store)
            os.unlink(store)
        row(f"ingest of {points:,} points in {curves} curve{'s' if curves > 1 else ''}, pyramid included",
            "≥ 500,000/s", f"{best[0]:,.0f}/s; {best[1]:,.0f} a second of a core; "
            f"{size / points:.0f} bytes a point")


def lists(serve, store, runs):
    with Server(serve, store) as server:
        server.get("/api/v1/runs?limit=1")
        for what, path in ((f"list of {runs:,} runs, the first 100", "limit=100"),
                           ("the same, the last page by loss", f"limit=100&sort=loss&offset={runs - 100}"),
                           ("the same, searched", "limit=100&q=sweep-42")):
            row(what, "< 50 ms", server.median("/api/v1/runs?" + path))


def charts(serve, store, points, overlaid):
    path = "/api/v1/runs/{}/metrics?name=loss&buckets=1000{}"
    cold, processor = [], []
    for _ in range(5):
        with Server(serve, store, cold=True) as server:
            cold.append(server.get(path.format("one", ""))[0])
            processor.append(server.processor_ms())
    row(f"chart of {points:,} points, cold", "< 100 ms",
        f"{statistics.median(cold):.0f} ms (least {min(cold):.0f}; processor with the server's start "
        f"{statistics.median(processor):.0f})")
    with Server(serve, store) as server:
        row("the same, warm", "", server.median(path.format("one", "")))
        row("a zoom into a tenth, warm", "", server.median(
            path.format("one", f"&from={points // 2}&to={points // 2 + points // 10}")))
    names = [f"many{at}" for at in range(overlaid)]
    with Server(serve, store, cold=True) as server:
        answers = [server.get(path.format(name, "")) for name in names]
        warm = [server.get(path.format(name, ""))[0] for name in names]
    row(f"{overlaid} runs x {points:,} points, one after the other, cold / warm", "",
        f"{sum(taken for taken, _ in answers):.0f} ms / {sum(warm):.0f} ms")
    band = "/api/v1/band?name=loss&buckets=1000&runs=" + ",".join(names)
    cold = []
    for _ in range(3):
        with Server(serve, store, cold=True) as server:
            cold.append(server.get(band)[0])
            warm = server.median(band)
    row(f"{overlaid} runs x {points:,} points as a band, cold", "< 1 s", f"{statistics.median(cold):.0f} ms (least {min(cold):.0f})")
    row("the same, warm", "< 100 ms", warm)
    database = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    for name, (_, answer) in zip(names, answers):
        low, high, count = database.execute(
            "SELECT min(value), max(value), count(*) FROM metrics JOIN series USING (series)"
            " JOIN runs USING (run) WHERE id = ? AND series.name = 'loss'", (name,)).fetchone()
        loss = answer["series"]["loss"]
        assert (min(loss["min"]), max(loss["max"]), sum(loss["points"])) == (low, high, count)


def browse(serve, store, points):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    with Server(serve, store) as server:
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            browser.get(server.link)
            wait = lambda code: WebDriverWait(browser, 60, 0.02).until(
                lambda _: browser.execute_script("return " + code))
            taken = []
            for _ in range(5):
                browser.get(server.url)
                wait("document.querySelectorAll('#runs tbody tr').length === 100")
                taken.append(browser.execute_script(
                    "return performance.getEntriesByType('paint').find((p) => p.name ==="
                    " 'first-contentful-paint').startTime"))
            row("list in Chromium, first paint", "< 500 ms", f"{statistics.median(taken):.0f} ms")
            browser.get(server.url + "runs/one")
            wait("(globalThis.Chart && Chart.getChart('loss-chart')"
                 "?.data.datasets[0]?.data.length) > 100")
            drawn = browser.execute_script("""
                const chart = Chart.getChart('loss-chart');
                const time = (times, work) => {
                  const begun = performance.now();
                  for (let i = 0; i < times; i++) work();
                  return (performance.now() - begun) / times;
                };
                const buckets = time(20, () => chart.update('none'));
                const dataset = chart.data.datasets[0];
                const raw = Array.from({length: arguments[0]}, (_, x) => ({x, y: 2 + Math.sin(x * 12.9)}));
                chart.data.datasets = [{...dataset, data: raw}];
                return [dataset.data.length, buckets, time(2, () => chart.update('none'))];""", points)
            row("drawing it with Chart.js", "",
                f"{drawn[0]} buckets with their band {drawn[1]:.0f} ms; all points {drawn[2]:.0f} ms")
        finally:
            browser.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build" / "bench-release")
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--overlaid", type=int, default=10)
    parser.add_argument("--folder")
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    bench, serve = find(options.build, "bench_store"), find(options.build, "serve_store")
    with tempfile.TemporaryDirectory(prefix="dtrun-history-", dir=options.folder) as folder:
        store = os.path.join(folder, "store.db")
        print("| measure | bar | dtrun |\n|---|---|---|")
        floor(folder)
        ingest(bench, folder, options.points)
        fill = lambda *words: subprocess.run([bench, store, *map(str, words)], check=True,
                                             stdout=subprocess.DEVNULL)
        fill("runs", options.runs)
        fill("points", options.points, 1, "one")
        for at in range(options.overlaid):
            fill("points", options.points, 1, f"many{at}")
        lists(serve, store, options.runs)
        charts(serve, store, options.points, options.overlaid)
        if not options.no_browser:
            browse(serve, store, options.points)


if __name__ == "__main__":
    main()
