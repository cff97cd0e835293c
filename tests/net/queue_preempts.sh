#!/usr/bin/env bash
# Over ssh, on four hosts: runs of the queue are preempted at random (DTRUN_TEST_PREEMPTIONS times, 8 by default), while the
# arbiter and supervisors are killed. In the end every run has the weights that it has undisturbed, no step was lost, and
# nothing is left on the hosts.
. "$(dirname "$0")/lib.sh"
hosts 4 apart
recipe <<'YAML'
schedule: {kind: constant, steps: 3000}
evaluate: {every: 0, sequences: 32}
checkpoint: {every: 1000000, keep: 2, keep_best: 0}
ranks: 1
threads: 1
YAML
"$dtrun" queue guarantee 0s
python3 tests/net/queue_preempts.py "$dtrun" "$net" "${DTRUN_TEST_PREEMPTIONS:-8}" "${DTRUN_TEST_SEED:-1}" || fail "see above"
for host in host1 host2 host3 host4; do
    left=$(on "$host" find /root -path '*dtrun/runs/*' -mindepth 1 2>/dev/null | head -n 3)
    [ -z "$left" ] || fail "left on $host: $left"
done
