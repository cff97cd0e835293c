#!/usr/bin/env bash
# An MLflow server that is slow, busy, broken, wrong or refuses: every value is sent once, nothing is created twice, no
# password reaches another server, and problems are reported with a remedy.
. "$(dirname "$0")/lib.sh"
make_tiny
unset http_proxy https_proxy all_proxy HTTP_PROXY ALL_PROXY
unset "${!MLFLOW_@}"
mkdir "$work/server"
python3 "$(dirname "$0")/mlflow_server.py" "$work/server" 2>"$work/server/err" &
server=$!
trap 'status=$?; kill $server; (exit $status); at_exit' EXIT
until [ -e "$work/server/port" ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat "$work/server/port")

faults() { # lines...
    printf '%s\n' "$@" >"$work/server/faults"
    : >"$work/server/asked"
}
asked() { # count regex: this many requests match it
    local count
    count=$(grep -cE -- "$2" "$work/server/asked")
    [ "$count" -eq "$1" ] || fail "$count requests like '$2', wanted $1: $(head -20 "$work/server/asked")"
}
all_used() { [ ! -s "$work/server/faults" ] || fail "a fault is left: $(cat "$work/server/faults")"; }
there() { # condition on the server's `runs`, `experiments`; `points`: those of run $run in this history
    python3 - "$url" "$1" <("$dtrun" export "$run" --to jsonl) <<'PY' || fail "the server has not: $1"
import json, sys, urllib.request
o = json.load(urllib.request.urlopen(sys.argv[1] + "/api/2.0/mlflow/all"))
points = sorted((p["name"], p["step"], p["value"]) for p in map(json.loads, open(sys.argv[3])))
told = lambda r: sorted((n, p["step"], p["value"]) for n, curve in r["metrics"].items() for p in curve)
runs, experiments = o["runs"], o["experiments"]
sys.exit(0 if eval(sys.argv[2]) else 1)
PY
}
export MLFLOW_HTTP_REQUEST_TIMEOUT=20

expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=30
run=$(field "o['run']")

# Each request that creates something is carried out, and its answer lost: the thing exists once.
faults "experiments/create dropped" "runs/create dropped" "runs/log-batch dropped" "runs/search late 503" "runs/update late 500"
expect 0 export "$run" --to mlflow "$url"
all_used
asked 1 "runs/create"
there "experiments == ['dtrun'] and len(runs) == 1 and len(points) > 300 and told(runs[0]) == points"
there "runs[0]['info']['status'] == 'FINISHED' and runs[0]['tags']['dtrun.run'] == '$run'"
faults "runs/create status 503" "runs/create late 504" "experiments/create late 502"
expect 0 export "$run" --to mlflow "$url" --experiment second
all_used
asked 2 "runs/create"
there "len(runs) == 2 and told(runs[1]) == points"
faults # again: nothing is created twice
expect 0 export "$run" --to mlflow "$url"
there "len(runs) == 2 and told(runs[0]) == points"

# Busy: dtrun waits as long as the server asks, within bounds.
faults "get-by-name status 429 Retry-After: 1" "runs/search status 503 Retry-After: Thu, 01 Jan 1970 00:00:00 GMT" \
    "runs/log-batch status 503 Retry-After: -7" "runs/update status 503 Retry-After: soon"
expect 0 export "$run" --to mlflow "$url"
all_used
faults "get-by-name status 429 Retry-After: 86400"
expect 3 export "$run" --to mlflow "$url"
one_line
says "answered 429: by the script; it asks to retry in 86400 s"
asked 1 "get-by-name"
faults "runs/search status 503" "runs/search status 503"
MLFLOW_HTTP_REQUEST_MAX_RETRIES=1 expect 3 export "$run" --to mlflow "$url"
one_line
asked 2 "runs/search"

# Refused, with the remedy; credentials are not shown.
faults "get-by-name status 401"
expect 2 export "$run" --to mlflow "$url"
one_line
says "answered 401: by the script; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
asked 1 "."
asked 1 " -$"
faults "get-by-name status 403"
MLFLOW_TRACKING_TOKEN=sesame expect 2 export "$run" --to mlflow "$url"
says "answered 403" "used MLFLOW_TRACKING_TOKEN"
lacks sesame
asked 1 " Bearer sesame$"
faults "get-by-name status 401" # both are set: as in MLflow's client, the name and password count
MLFLOW_TRACKING_TOKEN=sesame MLFLOW_TRACKING_USERNAME=ali MLFLOW_TRACKING_PASSWORD=baba expect 2 export "$run" --to mlflow "$url"
says "used MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, which override MLFLOW_TRACKING_TOKEN"
lacks baba
asked 1 " Basic $(printf ali:baba | base64)$"
faults # an empty variable counts as not set
MLFLOW_TRACKING_TOKEN=sesame MLFLOW_TRACKING_USERNAME='' MLFLOW_TRACKING_PASSWORD='' expect 0 export "$run" --to mlflow "$url"
asked 0 "(Basic .*|-)$"
faults
MLFLOW_TRACKING_TOKEN='' MLFLOW_TRACKING_USERNAME='' expect 0 export "$run" --to mlflow "$url"
asked 0 "(Basic|Bearer)"
faults "get-by-name status 401"
MLFLOW_TRACKING_USERNAME=ali expect 2 export "$run" --to mlflow "$url"
says "MLFLOW_TRACKING_USERNAME needs MLFLOW_TRACKING_PASSWORD"
faults # a value that would begin another header
MLFLOW_TRACKING_TOKEN=$'sesame\r\nX-Role: admin' expect 2 export "$run" --to mlflow "$url"
one_line
says "MLFLOW_TRACKING_TOKEN contains a line break"
lacks sesame
MLFLOW_TRACKING_USERNAME=$'a\n' MLFLOW_TRACKING_PASSWORD=b expect 2 import mlflow "$url"
says "MLFLOW_TRACKING_USERNAME contains a line break"
MLFLOW_HTTP_REQUEST_TIMEOUT=never expect 2 import mlflow "$url"
says "MLFLOW_HTTP_REQUEST_TIMEOUT: expected a number"
asked 0 "."
for address in "ftp://127.0.0.1" "http://a:b@127.0.0.1" "$url?x=1" "$url/#x" "$url/a b"; do
    expect 2 export "$run" --to mlflow "$address"
    one_line
done

# Redirected elsewhere: nothing is sent there.
faults "get-by-name status 302 Location: $url/login?next=secret"
MLFLOW_TRACKING_TOKEN=sesame expect 2 export "$run" --to mlflow "$url"
one_line
says "answered 302" "it redirects to '$url/login'"
lacks secret
asked 1 "."

# Plain http to another machine causes a warning; to this machine it does not.
for host in dtrun.invalid 127.dtrun.invalid localhost.dtrun.invalid; do
    MLFLOW_HTTP_REQUEST_MAX_RETRIES=0 MLFLOW_TRACKING_TOKEN=sesame expect 3 export "$run" --to mlflow "http://$host"
    says "warning: 'http://$host' is unencrypted http; others on the network can read MLFLOW_TRACKING_TOKEN"
done
MLFLOW_HTTP_REQUEST_MAX_RETRIES=0 expect 3 export "$run" --to mlflow "http://dtrun.invalid"
lacks "warning"
MLFLOW_TRACKING_TOKEN=sesame expect 0 export "$run" --to mlflow "$url"
lacks "warning"

# Answers that are not valid.
faults "get-by-name garbage"
expect 3 export "$run" --to mlflow "$url"
one_line
says "answers with something that is not JSON"
! grep -q $'\x1b' "$work/err" || fail "the server's escapes reach the terminal"
faults "get-by-name endless"
expect 3 export "$run" --to mlflow "$url"
one_line
says "answers with more than 64 MB"
asked 1 "."
faults "runs/search stalled"
MLFLOW_HTTP_REQUEST_TIMEOUT=1 expect 3 export "$run" --to mlflow "$url"
one_line
asked 1 "runs/search"
faults "runs/search slow"
expect 0 export "$run" --to mlflow "$url"
all_used

# Followed: a short refusal ends nothing.
faults "get-by-name status 401" "get-by-name status 503" "runs/search garbage" "runs/log-batch status 403" "runs/log-batch stalled"
MLFLOW_HTTP_REQUEST_TIMEOUT=2 MLFLOW_HTTP_REQUEST_MAX_RETRIES=0 \
    expect 0 export "$run" --to mlflow "$url" --follow --experiment live
all_used
says "retrying for 10 min" "retrying until the server answers" "the server answers again"
there "told(runs[-1]) == points and len(runs) == 3"

# Runs of others on the server are imported, through the same client.
python3 - "$url" <<'PY'
import json, sys, urllib.request
def post(path, **body):
    return json.load(urllib.request.urlopen(sys.argv[1] + "/api/2.0/mlflow/" + path, json.dumps(body).encode()))
id = post("experiments/create", name="others")["experiment_id"]
run = post("runs/create", experiment_id=id, run_name="theirs", tags=[])["run"]["info"]["run_id"]
post("runs/log-batch", run_id=run, params=[{"key": "lr", "value": "0.1"}],
     metrics=[{"key": "loss", "value": 1 / (s + 1), "step": s, "timestamp": 1700000000000 + s} for s in range(30)])
PY
faults "experiments/search status 429 Retry-After: 1" "runs/search dropped" "metrics/get-history late 503"
expect 0 import mlflow "$url" --json
all_used
json "len(o['runs']) == 1" "o['points'] == 30"
expect 0 metrics "$(field "o['runs'][0]")" --json
json "[(m['step'], m['value']) for m in o['metrics']] == [(s, 1 / (s + 1)) for s in range(30)]"
expect 0 list --json
json "len(o['runs']) == 2"
for fault in "status 401" garbage endless; do
    faults "metrics/get-history $fault"
    expect $([ "$fault" = "status 401" ] && echo 2 || echo 3) import mlflow "$url"
    one_line
    all_used
done
expect 0 list --json # a failed import leaves nothing
json "len(o['runs']) == 2"
[ ! -s "$work/server/err" ] || fail "the test's server: $(tail -3 "$work/server/err")"
