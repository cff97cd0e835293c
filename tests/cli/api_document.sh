#!/usr/bin/env bash
# Compares docs/openapi.json with the server: the addresses and arguments are those of the source, and the answers for a
# finished and an active run match it. Also checks the metrics for Prometheus.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 --set name=going
running=$(cat "$work/out")
within 60 step_reached "$running" 5
python3 - "$work/state/dtrun/store.db" "$running" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
db.execute("""UPDATE runs SET name = 'a"b\\' || char(10) || '{x="1"} 7' || char(27) || '[2J' WHERE id = ?""", (sys.argv[2],))
db.commit()
PY
: >"$work/out"
"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/out" 2>"$work/err" &
server=$!
within 60 test -s "$work/out"
cp "$work/out" "$work/served"
subject="the API"
python3 - "$work/served" "$running" <<'PY' || fail "the document and the server differ"
import json, math, re, sys, urllib.error, urllib.request
doc = json.load(open("docs/openapi.json"))
served = json.load(open(sys.argv[1]))
url, token = served["url"].rstrip("/"), served["link"].rpartition("=")[2]
routes = open("web/routes.c").read()
known = {pattern.replace("/ID", "/{run}") for pattern, page in re.findall(r'\{"(/[^"]*)", (dt_web_\w+)', routes)
         if page not in ("dt_web_file", "dt_web_run_page")}
assert known == set(doc["paths"]), known ^ set(doc["paths"])
import glob
asked = {name for file in glob.glob("web/*.c")
         for name in re.findall(r'(?:dt_web_argument(?:s|_int|_list)?|kept_argument)\([^;{]*?"(\w+)"', open(file).read())} - {"token"} | {"word"}
told = {p["name"] for path in doc["paths"].values() if "get" in path for p in path["get"].get("parameters", []) if p["in"] == "query"}
assert asked == told, asked ^ told
try:
    import jsonschema
except ImportError:
    jsonschema = None

def get(path):
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            kind = answer.headers["Content-Type"]
            first = lambda: b"".join(iter(answer.readline, b"\n"))  # of a stream, which has no end
            return answer.status, kind, (first() if kind.startswith("text/event-stream") else answer.read()).decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()

def check(text, schema):
    value = json.loads(text, parse_constant=lambda word: 1 / 0)
    assert set(schema["required"]) <= set(value), (schema["required"], list(value))
    assert set(value) <= set(schema["properties"]), set(value) - set(schema["properties"])
    if jsonschema:
        jsonschema.validate(value, {**schema, "components": doc["components"]})

for path, item in doc["paths"].items():
    if "get" not in item or path == "/api/v1/changes/{run}":  # tests/cli/serve_write.sh
        continue
    get_it = item["get"]
    (kind, content), = get_it["responses"]["200"]["content"].items()
    if path == "/api/v1/command":  # tests/cli/server.sh
        status, got, text = get(path + "?word=list")
        assert status == 200 and got == kind and text.endswith("x 0\n"), (status, got, text)
        continue
    if path == "/api/v1/runs/{run}/file":  # tests/cli/files_shown.sh
        assert get(path.replace("{run}", "tiny"))[0] == 400
        continue
    for run in ("tiny", sys.argv[2]):
        at = path.replace("{run}", run)
        whose = [f"runs={run}"] if any(p["name"] == "runs" for p in get_it.get("parameters", [])) else []
        queries = ["?" + "&".join(whose)] + [f"?{'&'.join(whose + [''])}{p['name']}={p['schema'].get('default', p['schema'].get('minimum', ''))}"
                          for p in get_it.get("parameters", []) if p["in"] == "query" and p["schema"].get("type") == "integer"]
        for query in queries:
            status, got, text = get(at + query)
            assert status == 200 and got.startswith(kind), (at + query, status, got, text[:300])
            if kind == "application/json":
                check(text, content["schema"])
        for p in get_it.get("parameters", []):
            if p["in"] == "query" and p["schema"].get("type") == "integer" and p["name"] not in ("from", "to", "after", "most", "step"):
                status, _, text = get(f"{at}?{'&'.join(whose + [''])}{p['name']}={p['schema']['maximum'] + 1}")
                assert status == 400, (at, p["name"], status)
                check(text, doc["components"]["schemas"]["Error"])
assert get("/api/v1/runs/nosuch")[0] == 404

# Prometheus
status, kind, text = get("/metrics")
samples, typed = {}, set()
for line in text.splitlines():
    if line.startswith("# TYPE "):
        typed.add(line.split()[2])
    elif not line.startswith("#"):
        name, labels, value = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)', line).groups()
        assert name in typed and re.fullmatch(r"[-+0-9.einfINF]+", value), line
        samples[name, labels] = float(value)
assert samples["dtrun_runs", 'state="finished"'] == 1 and samples["dtrun_runs", 'state="running"'] == 1
label = f'run="{sys.argv[2]}",name="a\\"b\\\\\\n{{x=\\"1\\"}} 7",group=""'
assert samples["dtrun_run_step", label] >= 5 and samples["dtrun_run_loss", label] > 0, [k for k in samples if "step" in k[0]]
assert ("dtrun_run_valid_loss", label) not in samples
assert urllib.request.urlopen(url + "/healthz").status == 200
try:
    urllib.request.urlopen(url + "/metrics")
    raise AssertionError("/metrics is open")
except urllib.error.HTTPError as error:
    assert error.code == 401
PY
kill -TERM $server
wait $server
expect 0 stop "$running"
