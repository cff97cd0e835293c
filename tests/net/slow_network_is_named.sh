#!/usr/bin/env bash
# The network of one of three hosts is limited to 4 Mbit/s: the finding is the network, with the host and the round
# trips as evidence, however busy the processors are.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.5
hosts 3 apart
on host3 tc qdisc add dev eth0 root tbf rate 4mbit burst 16k latency 200ms 2>/dev/null || {
    echo "skipped: this kernel has no tbf"
    exit 77
}
recipe <<'END'
nodes: [host1, host2, host3]
model: {kind: gpt2, layers: 2, heads: 2, embed: 64}
schedule: {kind: cosine, warmup_steps: 5, steps: 1000000}
checkpoint: {every: 0}
evaluate: {every: 0, sequences: 32}
log: 1
END
"$dtrun" launch --detach "$net/launch/r.yaml" --set name=slow >"$net/out" 2>&1 || fail "$(cat "$net/out")"
named() {
    "$dtrun" show slow --why --json 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["findings"]:
    if f["cause"] == "network" and "host3" in f["text"] and "round trip" in f["evidence"]:
        print(f["text"], "| evidence:", f["evidence"])' 2>/dev/null | grep .
}
await 60 named >"$net/found"
cat "$net/found"
"$dtrun" stop --now slow >/dev/null
