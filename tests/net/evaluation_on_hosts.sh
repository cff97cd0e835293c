#!/usr/bin/env bash
# Evaluation tasks on the ranks of two hosts over real ssh: the metrics are those of one process, in the history here, of both
# runs; a host that dies in the middle is replaced by the other one, and no result is lost or there twice.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
python3 - "$net/launch" <<'PY'
import json, random, sys
random.seed(2)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
some = lambda n: " ".join(random.choice(words) for _ in range(n))
with open(sys.argv[1] + "/corpus.txt", "w") as out:
    for _ in range(1500):
        print(some(8), file=out)
with open(sys.argv[1] + "/choice.jsonl", "w") as out:
    for i in range(60):
        print(json.dumps({"prompt": some(2)[:9], "choices": ["fox", "dog", "it"], "answer": i % 3}), file=out)
with open(sys.argv[1] + "/text.jsonl", "w") as out:
    for i in range(40):
        print(json.dumps({"text": some(1 + i % 5)}), file=out)
with open(sys.argv[1] + "/answer.jsonl", "w") as out:
    for i in range(800):
        print(json.dumps({"prompt": some(1)[:4], "answer": "fox", "tokens": 100, "until": ["#"]}), file=out)
PY
recipe <<'END'
nodes: [localhost]
model: {layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 128}
schedule: {steps: 60}
END
launch trained
cd "$net/launch"
results() { # run: its newest results, and how many steps have some
    "$dtrun" show "$1" --json | python3 -c '
import json, sys
all = json.load(sys.stdin)["evaluations"]
print(len(all), all[-1]["step"] if all else None, json.dumps(all[-1]["tasks"], sort_keys=True) if all else None)'
}
stored() { # run: events of results in its history
    "$dtrun" sql "SELECT count(*) FROM events WHERE run = '$1' AND event = 'evaluation'" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][0][0])'
}
trained=$(value trained "o['run']")
tasks="-t choice.jsonl -t text.jsonl"
wants 0 "choice" "$dtrun" evaluate trained $tasks --threads 1 -o "$net/one"
results trained >"$net/expected"
wants 0 "trained@60" "$dtrun" evaluate trained $tasks --threads 1 --nodes host1,host2 --ranks 2 --name shared --wait -o "$net/two"
cmp "$net/one" "$net/two" || fail "two hosts compute something else"
is "nodes and ranks" "$(value shared '" ".join(n["host"] + ":" + str(len(n["ranks"])) for n in o["nodes"])')" "host1:2 host2:2"
results shared | cmp - "$net/expected" || fail "the metrics of two hosts are $(results shared), not $(cat "$net/expected")"
results trained | cmp - "$net/expected" || fail "the metrics of the run are $(results trained)"
is "results of 'trained'" "$(stored "$trained")" 2
rm "$net/one" "$net/two"

# A folder of weights that the hosts do not have.
python3 "$OLDPWD/tests/cli/evaluate_data.py" "$net/launch/data" gpt2 || fail "no data"
tasks="-t data/choice.jsonl -t data/answer.jsonl -t data/text.jsonl"
wants 0 "choice" "$dtrun" evaluate ./data/model $tasks --threads 1 -o "$net/one"
wants 0 "choice" "$dtrun" evaluate ./data/model $tasks --threads 1 --nodes host1,host2 --wait -o "$net/two"
cmp "$net/one" "$net/two" || fail "two hosts compute something else of a folder"
rm "$net/one" "$net/two"

# One host is gone for good, in the middle: the other one computes its rows.
wants 0 "answer" "$dtrun" evaluate trained -t answer.jsonl --threads 1 -o "$net/one"
results trained >"$net/expected"
wants 0 "" "$dtrun" evaluate trained -t answer.jsonl --threads 1 -o "$net/two" --nodes host1,host2 --name lost --detach
run=$(value lost "o['run']")
engines_of_host2() { "$net_sh" pids "$net" host2 | xargs -r ps -o pid=,args= -p | awk '/dtrun-engine.* train/ { print $1 }'; }
host2_computes() { [ -n "$(engines_of_host2)" ]; }
has_begun() { [ "$(value "$run" "o['step']")" -ge 5 ]; }
await 30 host2_computes
kill -STOP $(engines_of_host2) # or the host has finished its rows before it is cut off
await 30 has_begun
"$net_sh" cut "$net" host2
"$dtrun" wait "$run" >"$net/out" 2>&1 || fail "the run ends with $?: $(cat "$net/out"; "$dtrun" show "$run")"
cmp "$net/one" "$net/two" || fail "the other host computes something else"
"$dtrun" show "$run" >"$net/out"
grep -q "node host2 is gone" "$net/out" || fail "nobody says that host2 is gone: $(cat "$net/out")"
is "results of the run" "$(stored "$run")" 1
is "results of 'trained'" "$(stored "$trained")" 4
results trained | cmp - "$net/expected" || fail "the metrics of the run are $(results trained)"
