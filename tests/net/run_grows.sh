#!/usr/bin/env bash
# A run with nodes_min loses a host, continues on the other one, and goes back to both at the next save once the host
# answers again: no step is lost or repeated by that, no restart is used, and the attempt says why it ended. A host that is
# lost again is left out again; and if the queue has given it to another run, the run grows once that has ended.
export DTRUN_TEST_TIMES=0.15 # before the hosts: their agents use it too
. "$(dirname "$0")/lib.sh"
hosts 2 apart
recipe <<'YAML'
nodes: [host1, host2]
nodes_min: 1
ranks: 1
schedule: {kind: constant, steps: 1000000}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 200, keep: 3, keep_best: 0}
failure: {max_restarts: 2}
YAML
attempt() { value grows "o['attempt']"; }
nodes() { value grows "','.join(n['host'] for n in o['nodes'])"; }
trains_on() { [ "$(attempt)" -ge "$1" ] && [ "$(nodes)" = "$2" ] && is_now grows running && past grows "$(($3 + 1))"; }
step() { value grows "o['step']"; }

wants 0 "" "$dtrun" launch --detach --queue "$net/launch/r.yaml" --set name=grows
await 20 past grows 250
"$net_sh" cut "$net" host2
await 40 trains_on 2 host1 200
"$net_sh" heal "$net" host2
await 60 trains_on 3 host1,host2 "$(step)"
wants 0 "grows to host2 again" "$dtrun" show grows
cp "$net/out" "$net/show"
await 20 past grows $(($(step) + 50))

# Lost again, and back: another run of the queue, which comes first, gets the host.
wants 0 "" "$dtrun" queue drain host2
"$net_sh" cut "$net" host2
await 40 trains_on 4 host1 "$(step)"
"$net_sh" heal "$net" host2
wants 0 "" "$dtrun" launch --detach --queue --priority 1 "$net/launch/r.yaml" --set name=other --set nodes=[host2] --set nodes_min=0 --set threads=64
wants 0 "" "$dtrun" queue undrain host2
await 20 is_now other running
await 60 past grows $(($(step) + 4000))
is "attempt while another run has the host" "$(attempt)" 4
wants 0 "" "$dtrun" stop other
await 60 trains_on 5 host1,host2 "$(step)"
wants 0 "" "$dtrun" stop grows
"$dtrun" show grows --json >"$net/run.json"
"$dtrun" metrics grows --name loss --format csv >"$net/losses.csv"
python3 - "$net/run.json" "$net/losses.csv" <<'PY' || fail "see above: $(cat "$net/show")"
import csv, json, sys
run = json.load(open(sys.argv[1]))
attempts = {a["attempt"]: a for a in run["attempts"]}
last, steps = {}, {}
for row in csv.DictReader(open(sys.argv[2])):
    steps.setdefault(int(row["step"]), []).append(int(row["attempt"]))
    last[int(row["attempt"])] = max(last.get(int(row["attempt"]), 0), int(row["step"]))
print({n: (a["state"], a["reason"], a["start_step"], last.get(n)) for n, a in attempts.items()})
assert attempts[2]["state"] == "stopped" and attempts[2]["reason"] == "grows to host2 again"
assert attempts[4]["state"] == "stopped" and attempts[4]["reason"] == "grows to host2 again"
assert attempts[3]["start_step"] == last[2] and attempts[5]["start_step"] == last[4], "steps were lost or repeated"
double = {s: a for s, a in steps.items() if len(a) > 1}
assert not double, f"more than one loss of a step: {double}"
assert sorted(steps) == list(range(1, max(steps) + 1)), "losses are missing"
PY
