#!/usr/bin/env bash
# A command on two hosts: what each host is used for comes into the history, also after a stop and a resume, each point
# once and none undone; it is not the progress of the run.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=system=0.1 # before the hosts: a point each second
hosts 2 apart
cat >"$net/launch/work.yaml" <<'END'
nodes: "host[1-2]"
command: [python3, -c, "while True: sum(range(10000))"]
processes: 1
grace_seconds: 0
END
points() { # RUN: node, attempt, step and value of the processors
    "$dtrun" metrics "$1" --name system/ | sed -n 's/^\([0-9]*\),\([0-9]*\),system.cpu_percent_node_\([01]\),\([^,]*\),.*/\3 \1 \2 \4/p'
}
has() { # RUN ATTEMPT: two points of both hosts in that attempt
    [ "$(points "$1" | awk -v a="$2" '$2 == a {n[$1]++} END {print (n[0] > 1 && n[1] > 1)}')" = 1 ]
}
wants 0 "" "$dtrun" launch --detach "$net/launch/work.yaml" --set name=work
run=work
await 60 has $run 1
[ "$(value $run "(o['step'], o['loss'], o['state']) == (0, None, 'running')")" = True ] || fail "points of nodes are taken for progress"
first=$(points $run)
wants 0 "" "$dtrun" stop $run
wants 0 "" "$dtrun" resume --detach $run
await 60 has $run 2
wants 0 "" "$dtrun" stop --now $run
all=$(points $run)
[ "$(grep -cxF "$first" <<<"$all")" = "$(wc -l <<<"$first")" ] || fail "a resume has undone points"
awk '{print $1, $3}' <<<"$all" | sort | uniq -d | grep . && fail "points twice"
"$dtrun" metrics $run --name system/ --json >"$net/out"
python3 - "$net/out" <<'PY' || fail "what the hosts were used for"
import json, sys
values = {}
for point in json.load(open(sys.argv[1]))['metrics']:
    values.setdefault(point['name'], []).append(point['value'])
for node in '01':
    get = lambda name: values[f'system/{name}_node_{node}']
    assert all(0 <= value <= 100 for value in get('cpu_percent')), get('cpu_percent')
    assert max(get('run_cpu_percent')) > 0, get('run_cpu_percent')
    assert all(0 < used <= total for used, total in zip(get('memory_used_bytes'), get('memory_total_bytes')))
    assert 1e6 < max(get('run_memory_bytes')) < 1e9, get('run_memory_bytes')  # a Python, and not what else the host runs
    assert min(get('disk_free_bytes')) > 0
    assert max(get('received_bytes_per_second')) > 0 and max(get('sent_bytes_per_second')) > 0  # by ssh
assert not any('gpu' in name for name in values), list(values)
PY
"$dtrun" metrics $run >"$net/out" # a list of all metrics lacks them
is "the number of lines" "$(wc -l <"$net/out")" 1
