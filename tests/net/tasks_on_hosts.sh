#!/usr/bin/env bash
# Ranks of two hosts divide lines over real ssh: input and checkpoint are sent there, the results come back and equal
# those of one process; a host that dies is replaced by the other one.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
python3 - "$net/launch" <<'PY'
import random, sys
random.seed(1)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
with open(sys.argv[1] + "/corpus.txt", "w") as out:
    for _ in range(1500):
        print(" ".join(random.choice(words) for _ in range(8)), file=out)
with open(sys.argv[1] + "/lines", "w") as out:
    for _ in range(120):
        print(" ".join(random.choice(words) for _ in range(random.randint(0, 4))), file=out)
PY
recipe <<'END'
nodes: [localhost]
model: {layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 60}
END
launch trained
lines=$net/launch/lines
wants 0 "" "$dtrun" generate trained --input "$lines" --tokens 30 --threads 1 --output "$net/one"
wants 0 "" "$dtrun" generate trained --input "$lines" --tokens 30 --threads 1 --output "$net/two" --nodes host1,host2 --ranks 2 --name shared
cmp "$net/one" "$net/two" || fail "two hosts write something else"
is "nodes and ranks" "$(value shared '" ".join(n["host"] + ":" + str(len(n["ranks"])) for n in o["nodes"])')" "host1:2 host2:2"
"$dtrun" score trained --input "$lines" --threads 1 >"$net/one" || fail "score"
"$dtrun" score trained --input "$lines" --threads 1 --nodes 'host[1-2]' --wait >"$net/two" 2>"$net/out" || fail "$(cat "$net/out")"
cmp "$net/one" "$net/two" || fail "two hosts score otherwise: $(diff "$net/one" "$net/two" | head -n 4)"
printf 'task: score\nnodes: "host[1-2]"\nthreads: 1\nlines: {run: trained, input: lines}\n' >"$net/launch/judge.yaml"
"$dtrun" launch --wait "$net/launch/judge.yaml" >"$net/two" 2>"$net/out" || fail "$(cat "$net/out")"
cmp "$net/one" "$net/two" || fail "two hosts score otherwise by a recipe: $(diff "$net/one" "$net/two" | head -n 4)"

rm "$net/one" "$net/two"

# One host is gone for good, in the middle: the other one processes its lines.
wants 0 "" "$dtrun" generate trained --input "$lines" --tokens 800 --threads 1 --output "$net/one"
wants 0 "" "$dtrun" generate trained --input "$lines" --tokens 800 --threads 1 --output "$net/two" --nodes host1,host2 --detach --name lost
run=$(value lost "o['run']")
has_begun() { [ "$(value "$run" "o['step']")" -ge 10 ]; }
engines_of_host2() { "$net_sh" pids "$net" host2 | xargs -r ps -o pid=,args= -p | awk '/dtrun-engine.* train/ { print $1 }'; }
host2_computes() { [ -n "$(engines_of_host2)" ]; }
await 15 host2_computes
kill -STOP $(engines_of_host2) # or the host has finished its lines before it is cut off
await 15 has_begun
"$net_sh" cut "$net" host2
"$dtrun" wait "$run" >"$net/out" 2>&1 || fail "the run ends with $?: $(cat "$net/out"; "$dtrun" show "$run")"
cmp "$net/one" "$net/two" || fail "what the others made is something else"
"$dtrun" show "$run" >"$net/out"
grep -q "node host2 is gone" "$net/out" || fail "nobody says that host2 is gone: $(cat "$net/out")"
