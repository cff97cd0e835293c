#!/usr/bin/python3
"""Measures what open pages cost the server: clients follow an active run, as the page does.

    tests/bench/live.py [--build build/bench-release] [--clients 50] [--seconds 30] [--page run|list|compare] [--runs
    100]

Starts a run in its own folder (two ranks, a point of each metric every step) in addition to ended runs, a server, and
the clients. Each client has the page of this run, the first page of the list, or a comparison of this run with 3
others. Prints a table. The processor time is that of the server only.
"""

import argparse
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
RECIPE = """name: live
ranks: 2
strategy: ddp
model: {layers: 1, heads: 2, embed: 16}
data: {train: text.txt}
batch: {sequences: 2, tokens: 16}
log: {every: 1}
schedule: {steps: 100000000}
"""


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Client(threading.Thread):
    """Follows until asked to end; counts the events."""

    def __init__(self, server, path, bearer):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection(server, timeout=60)
        self.path, self.bearer = path, bearer
        self.news = self.points = self.bytes = 0
        self.first = threading.Event()

    def run(self):
        self.connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.bearer}"})
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            self.bytes += len(line)
            if line.startswith(b"data: {"):
                self.first.set()
                told = json.loads(line[6:])
                self.news += 1
                self.points += len(told.get("series", {}).get("loss", {}).get("step", []))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=pathlib.Path(__file__).resolve().parents[2] / "build" / "bench-release")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--page", choices=("run", "list", "compare"), default="run")
    parser.add_argument("--runs", type=int, default=100, help="others, that have ended")
    options = parser.parse_args()
    dtrun = str(pathlib.Path(options.build).resolve() / "bin" / "dtrun")
    with tempfile.TemporaryDirectory(prefix="dtrun-live-") as folder:
        env = {**os.environ, "XDG_STATE_HOME": folder + "/state", "XDG_CACHE_HOME": folder + "/cache",
               "XDG_CONFIG_HOME": folder + "/config", "OMP_NUM_THREADS": "1"}
        pathlib.Path(folder, "text.txt").write_text("to be, or not to be: that is the question. " * 500)
        pathlib.Path(folder, "live.yaml").write_text(RECIPE)
        call = lambda *words: subprocess.run([dtrun, *words], env=env, check=True, capture_output=True, text=True).stdout
        with open(folder + "/old.csv", "w", encoding="ascii") as file:
            file.write("run,step,loss\n")
            file.writelines(f"old{i},{step},{1 + i / (step + 1)}\n" for i in range(options.runs) for step in range(20))
        others = json.loads(call("import", "csv", folder + "/old.csv", "--json"))["runs"]
        run = call("launch", "--detach", folder + "/live.yaml").strip()
        server = subprocess.Popen([dtrun, "serve", "--listen", "127.0.0.1:0"], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        try:
            link = server.stdout.readline().strip()
            host, bearer = link.split("/")[2], link.partition("token=")[2]
            while json.loads(call("status", "--json", run))["step"] < 5:
                time.sleep(0.2)
            path = {"run": f"/api/v1/runs/{run}/live?rank=0", "list": "/api/v1/live?limit=100&offset=0",
                    "compare": f"/api/v1/live?runs={','.join([run] + others[:3])}"}[options.page]
            clients = [Client(host, path, bearer) for _ in range(options.clients)]
            for client in clients:
                client.start()
            for client in clients:
                client.first.wait(60)
            used, begun = processor_seconds(server.pid), time.monotonic()
            counted = [(c.news, c.points, c.bytes) for c in clients]
            time.sleep(options.seconds)
            seconds = time.monotonic() - begun
            used = processor_seconds(server.pid) - used
            grown = [[now - then for now, then in zip((c.news, c.points, c.bytes), old)]
                     for c, old in zip(clients, counted)]
            each = [sum(g[i] for g in grown) / len(grown) / seconds for i in range(3)]
            what = {"run": "a run that continues", "list": f"{options.runs + 1} runs, one of which continues",
                    "compare": "4 runs compared, one of which continues"}[options.page]
            print(f"| {options.clients} open pages of {what}, the server | < 5 % of a core | "
                  f"{100 * used / seconds:.1f} %; each was told {each[0]:.1f} times a second of "
                  f"{each[1]:.0f} points a curve in {each[2] / 1000:.0f} kB; load {os.getloadavg()[0]:.1f} |")
        finally:
            server.terminate()
            server.wait(20)
            call("stop", "--now", run)


if __name__ == "__main__":
    sys.exit(main())
