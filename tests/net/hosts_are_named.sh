#!/usr/bin/env bash
# The nodes of a recipe as a hostfile with slots and user names, and as a range; data in several files are sent to the
# hosts, and the losses are those of the same recipe on this machine only.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
recipe </dev/null

printf '# two of ours\nhost1 slots=2\n%s@host2 slots=1\n' "$(id -un)" >"$net/launch/hosts"
sed -i 's/^nodes:.*/hostfile: hosts/; s/warmup_steps: 5, steps: 40/steps: 3/' "$net/launch/r.yaml"
launch by-hostfile
is ranks "$(value by-hostfile "[(n['host'], len(n['ranks'])) for n in o['nodes']]")" "[('host1', 2), ('$(id -un)@host2', 1)]"
sed -i 's/^hostfile:.*/nodes: "host[1-2]"/' "$net/launch/r.yaml"
launch by-range
is nodes "$(value by-range "[n['host'] for n in o['nodes']]")" "['host1', 'host2']"

# Data in several files, named by a pattern.
head -n 900 "$net/launch/corpus.txt" >"$net/launch/part-1.txt"
tail -n 1100 "$net/launch/corpus.txt" >"$net/launch/part-2[x].txt"
sed -i 's/train: corpus.txt/train: "part-*.txt"/' "$net/launch/r.yaml"
launch parts-hosts
launch parts-here --set 'nodes=[localhost, localhost#2]'
same_curve parts-hosts parts-here 7
# So are the parts of a mixture; a pattern is one entry of its part here, and two files there.
sed -i 's/train: "part-\*.txt"/mixture: [{files: "part-*.txt", weight: 3}, {files: corpus.txt, weight: 1}]/' "$net/launch/r.yaml"
launch mixture-hosts
launch mixture-here --set 'nodes=[localhost, localhost#2]'
same_curve mixture-hosts mixture-here 7
wants 2 "twice" "$dtrun" launch "$net/launch/r.yaml" --set 'nodes=[host1, "host[1-2]"]'
