#!/usr/bin/python3
"""What open pages cost the server: clients that follow a run which goes on, as the page does.

    tests/bench/live.py [--build build/bench-release] [--clients 50] [--seconds 30]

Starts a run of its own in a folder of its own (two ranks, a point of each metric every step), a server, and the
clients; prints a table. The processor's time is that of the server alone.
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
    """Follows until told to end; counts what came."""

    def __init__(self, server, run, bearer):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection(server, timeout=60)
        self.path, self.bearer = f"/api/v1/runs/{run}/live?rank=0", bearer
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
    options = parser.parse_args()
    dtrun = str(pathlib.Path(options.build).resolve() / "bin" / "dtrun")
    with tempfile.TemporaryDirectory(prefix="dtrun-live-") as folder:
        env = {**os.environ, "XDG_STATE_HOME": folder + "/state", "XDG_CACHE_HOME": folder + "/cache",
               "XDG_CONFIG_HOME": folder + "/config", "OMP_NUM_THREADS": "1"}
        pathlib.Path(folder, "text.txt").write_text("to be, or not to be: that is the question. " * 500)
        pathlib.Path(folder, "live.yaml").write_text(RECIPE)
        call = lambda *words: subprocess.run([dtrun, *words], env=env, check=True, capture_output=True, text=True).stdout
        run = call("launch", "--detach", folder + "/live.yaml").strip()
        server = subprocess.Popen([dtrun, "serve", "--listen", "127.0.0.1:0"], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        try:
            link = server.stdout.readline().strip()
            host, bearer = link.split("/")[2], link.partition("token=")[2]
            while json.loads(call("status", "--json", run))["step"] < 5:
                time.sleep(0.2)
            clients = [Client(host, run, bearer) for _ in range(options.clients)]
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
            print(f"| {options.clients} open pages of a run that goes on, the server | < 5 % of a core | "
                  f"{100 * used / seconds:.1f} %; each was told {each[0]:.1f} times a second of "
                  f"{each[1]:.0f} points a curve in {each[2] / 1000:.0f} kB; load {os.getloadavg()[0]:.1f} |")
        finally:
            server.terminate()
            server.wait(20)
            call("stop", "--now", run)


if __name__ == "__main__":
    sys.exit(main())
