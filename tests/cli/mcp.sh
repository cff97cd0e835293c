#!/usr/bin/env bash
# dtrun mcp: the protocol, as a client of the standard library speaks it (mcp.py).
. "$(dirname "$0")/lib.sh"

expect 0 mcp # the end of stdin ends it
[ ! -s "$work/out" ] || fail "writes without a request"
expect 2 mcp --answer-bytes 5
python3 - "$work/points.csv" <<'PY'
import sys
with open(sys.argv[1], "w") as file:
    print("run,step,loss,quality", file=file)
    for run in range(30):
        for step in range(1, 101):
            print(f"point-{run},{step},{run + 1 / step},{step / 7}", file=file)
PY
expect 0 import csv "$work/points.csv"
: >"$work/out"
printf 'name: waits\ncommand: sleep 1000\n' >"$work/waits.yaml"
printf 'name: far\ncommand: "true"\nnodes: [far-away]\n' >"$work/far.yaml"
mkdir "$work/bin" # an ssh that does not answer
printf '#!/bin/sh\necho $$ >>"%s/ssh.pids"\nexec sleep 1000\n' "$work" >"$work/bin/ssh"
chmod +x "$work/bin/ssh"
subject="mcp.py"
python3 tests/cli/mcp.py "$dtrun" "$work" || fail "see above"
