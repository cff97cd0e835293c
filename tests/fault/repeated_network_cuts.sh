#!/usr/bin/env bash
# A node is cut off for 9 s repeatedly, with 9 s in between: nothing restarts, every step is there once. FAULT_FULL=1:
# six times, else twice with half the limits and cuts.
[ -n "${FAULT_FULL:-}" ] || export DTRUN_TEST_TIMES=0.5 # a node without a sign of life is lost after 8 s
. "$(dirname "$0")/hosts.sh"
if ! apart; then
    echo "skipped: hosts on 127.0.0.1 cannot be cut off"
    exit 77
fi
rounds=2
[ -z "${FAULT_FULL:-}" ] || rounds=6
launch golden
await 120 past golden 600
"$dtrun" stop golden >/dev/null
launch cuts
await 120 past cuts 50
for round in $(seq $rounds); do
    "$net_sh" cut "$net" host2
    sleep "$(scaled 9)"
    "$net_sh" heal "$net" host2
    sleep "$(scaled 9)"
    is "attempt in round $round ($(value cuts "o['reason']"))" "$(value cuts "o['attempt']")" 1
done
step=$(value cuts "o['step']")
await 90 past cuts $((step + 50))
is attempt "$(value cuts "o['attempt']")" 1
is state "$(value cuts "o['state']")" running
"$dtrun" stop cuts >/dev/null
whole cuts
await 20 none_there "$id"
