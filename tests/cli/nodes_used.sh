#!/usr/bin/env bash
# What the nodes of a training are used for, in all forms: text, SQL, the API, CSV and for Prometheus; and
# `log.system: false`.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=system=0.1 # a point each second
make_tiny
names() { "$dtrun" metrics "$1" --name system/ 2>/dev/null | cut -d, -f3 | sort -u; }
has() { names "$1" | grep -q "$2"; }
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 --set checkpoint.every=0
run=$(cat "$work/out")
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 --set checkpoint.every=0 \
    --set log.system=false --set name=off
off=$(cat "$work/out")
within 60 has "$run" sent_bytes_per_second
within 60 step_reached "$off" 5
expect 0 metrics "$run" --name system/cpu_percent_node_0
says "system/cpu_percent_node_0"
expect 2 metrics "$run" --name system/none_node_0
says "has no metric 'system/none_node_0'"
expect 0 metrics "$run"
lacks system/cpu_percent
expect 0 show "$run"
lacks system/cpu_percent
expect 0 list --json --columns system/run_memory_bytes_node_0
expect 0 sql "SELECT count(*) > 0 FROM points WHERE metric = 'system/cpu_percent_node_0' AND step > 1700000000"
says "1"

"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/served" 2>"$work/err" &
server=$!
within 60 test -s "$work/served"
subject="the server"
python3 - "$work/served" "$run" <<'PY' || fail "what the server says of nodes"
import json, re, sys, urllib.request
served = json.load(open(sys.argv[1]))
url, token = served["url"].rstrip("/"), served["link"].rpartition("=")[2]
get = lambda path: urllib.request.urlopen(urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})).read().decode()
path = "/api/v1/runs/" + sys.argv[2]
view = json.loads(get(path))
assert "system/cpu_percent_node_0" in view["system"] and not any(name.startswith("system/") for name in view["metrics"]), view
asked = json.loads(get(path + "/metrics?buckets=10&name=loss&name=system/cpu_percent_node_0"))["series"]
assert set(asked) == {"loss", "system/cpu_percent_node_0"}, asked
assert set(json.loads(get(path + "/metrics?buckets=10&name=system/"))["series"]) == set(view["system"])
assert "system/" not in get(path + "/metrics") and "system/" not in get("/api/v1/csv?runs=" + sys.argv[2])
assert "system/cpu_percent_node_0" in get("/api/v1/csv?name=system/&runs=" + sys.argv[2])
lines = get("/metrics").splitlines()
assert any(re.match(r'dtrun_node_run_memory_bytes\{run="%s",name="tiny",group="",node="[^"]+"\} \d' % sys.argv[2], line) for line in lines), lines
assert not any('name="off"' in line and "dtrun_node" in line for line in lines), lines
PY
kill $server
expect 0 stop --now "$run"
expect 0 metrics "$off"
expect 2 metrics "$off" --name system/cpu_percent_node_0
expect 0 stop --now "$off"
