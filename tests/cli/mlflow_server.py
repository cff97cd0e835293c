#!/usr/bin/env python3
"""A tracking server for mlflow.sh: the part of MLflow's REST API 2.0 that dtrun uses, in memory, with scripted faults.

    mlflow_server.py FOLDER     writes FOLDER/port; FOLDER/asked gets a line "METHOD PATH AUTHORIZATION" a request

A request whose path ends with the first word of a line of FOLDER/faults gets the fault of this line, and removes the
line:

    status CODE [HEADER: VALUE]   this answer, not carried out
    late CODE                     carried out, with this answer
    dropped                       carried out, and the connection closed without an answer
    garbage, endless, stalled     an answer that is not JSON, that has no end, or that comes byte by byte without end
    slow                          the right answer, in a hundred pieces
"""
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

folder = pathlib.Path(sys.argv[1])
lock = threading.Lock()
experiments, runs = {}, {}
HISTORY_PAGE = 7  # so that a curve needs several pages


def newest(run):
    return [max(points, key=lambda p: (p["step"], p["timestamp"])) for points in run["metrics"].values() if points]


def shown(run):
    pairs = lambda of: [{"key": k, "value": v} for k, v in of.items()]
    return {"info": run["info"], "data": {"metrics": newest(run), "params": pairs(run["params"]), "tags": pairs(run["tags"])}}


def answer(path, query, body):
    """Returns (status, JSON) for one request."""
    no = lambda status, code: (status, {"error_code": code, "message": code})
    if path == "experiments/get-by-name":
        name = query["experiment_name"]
        return (200, {"experiment": experiments[name]}) if name in experiments else no(404, "RESOURCE_DOES_NOT_EXIST")
    if path == "experiments/create":
        if body["name"] in experiments:
            return no(400, "RESOURCE_ALREADY_EXISTS")
        experiments[body["name"]] = {"experiment_id": str(len(experiments)), "name": body["name"]}
        return 200, {"experiment_id": experiments[body["name"]]["experiment_id"]}
    if path == "experiments/search":
        return 200, {"experiments": list(experiments.values())}
    if path == "runs/search":
        found = [r for r in runs.values() if r["info"]["experiment_id"] in body["experiment_ids"]]
        if "filter" in body:
            found = [r for r in found if body["filter"] == f"tags.`dtrun.run` = '{r['tags'].get('dtrun.run')}'"]
        return 200, {"runs": [shown(r) for r in found[:body["max_results"]]]}
    if path == "runs/create":
        id = f"{len(runs):032x}"
        runs[id] = {"info": {"run_id": id, "experiment_id": body["experiment_id"], "run_name": body["run_name"], "status": "RUNNING"},
                    "params": {}, "tags": {t["key"]: t["value"] for t in body["tags"]}, "metrics": {}}
        return 200, {"run": shown(runs[id])}
    if path == "runs/update":
        runs[body["run_id"]]["info"]["status"] = body["status"]
        return 200, {}
    if path == "runs/log-batch":
        run = runs[body["run_id"]]
        for kind in "params", "tags":
            run[kind].update((item["key"], item["value"]) for item in body.get(kind, []))
        for point in body.get("metrics", []):
            curve = run["metrics"].setdefault(point["key"], [])
            if point not in curve:  # with the key of its table
                curve.append(point)
        return 200, {}
    if path == "metrics/get-history":
        points, at = runs[query["run_id"]]["metrics"][query["metric_key"]], int(query.get("page_token") or 0)
        more = {"next_page_token": str(at + HISTORY_PAGE)} if at + HISTORY_PAGE < len(points) else {}
        return 200, {"metrics": points[at:at + HISTORY_PAGE], **more}
    if path == "all":  # only for the test
        return 200, {"runs": list(runs.values()), "experiments": list(experiments)}
    return no(404, "ENDPOINT_NOT_FOUND")


def fault_of(path):
    file = folder / "faults"
    lines = file.read_text().strip().splitlines() if file.exists() else []
    for at, line in enumerate(lines):
        if path.endswith(line.split()[0]):
            (folder / "faults.new").write_text("\n".join(lines[:at] + lines[at + 1:]))
            (folder / "faults.new").rename(file)
            return line.split(None, 3)[1:]
    return [""]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, text, header=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        if header:
            self.send_header(*header.split(": ", 1))
        self.end_headers()
        self.wfile.write(text)

    def drip(self, text, forever):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        size = 1 + len(text) // 100
        while text or forever:
            self.wfile.write(b" " if forever else text[:size])
            self.wfile.flush()
            text = text[size:]
            time.sleep(0.01)

    def flood(self):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b" " * (1 << 20))

    def handle_one(self):
        where = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(where.query).items()}
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        with lock:
            fault, *words = fault_of(where.path)
            with open(folder / "asked", "a") as asked:
                asked.write(f"{self.command} {where.path} {self.headers.get('Authorization', '-')}\n")
            status, said = (200, {}) if fault == "status" else answer(where.path.removeprefix("/api/2.0/mlflow/"), query, body)
        text = json.dumps(said).encode()
        if fault == "status":
            self.send(int(words[0]), b'{"message": "by the script"}', words[1] if len(words) > 1 else "")
        elif fault == "late":
            self.send(int(words[0]), b"no JSON")
        elif fault == "dropped":
            self.close_connection = True
        elif fault == "garbage":
            self.send(200, b"<html>\x1b[31mwait</html>")
        elif fault == "endless":
            self.flood()
        elif fault in ("slow", "stalled"):
            self.drip(text, fault == "stalled")
        else:
            self.send(status, text)

    def do_GET(self):
        try:
            self.handle_one()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_POST = do_GET

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
(folder / "port.new").write_text(str(server.server_port))
(folder / "port.new").rename(folder / "port")
server.serve_forever()
