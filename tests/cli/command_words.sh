#!/usr/bin/env bash
# Arguments and variables of a command, metrics that its program writes to a file, and a folder whose name has
# characters of patterns.
. "$(dirname "$0")/lib.sh"
recipe() { # name and lines of a recipe
    printf '%s\n' "${@:2}" >"$work/$1.yaml"
}

# Arguments are set and swept one by one, also on resume; so are variables.
recipe swept 'command: "echo lr={args.lr} size={args.size} $VAR"' 'shell: true' 'args: {lr: 1, size: "a b"}' \
    'env: {VAR: one, OTHER: two}'
expect 0 launch --wait "$work/swept.yaml" --set args.lr=2e-3 --set env.VAR=three
expect 0 logs last
says "lr=2e-3 size=a b three"
expect 2 validate "$work/swept.yaml" --set args.batch=3
says "'args.batch' has no effect"
echo 'sweep: {args.lr: [0.1, 0.2], env.VAR: [x]}' >>"$work/swept.yaml"
expect 0 launch --wait "$work/swept.yaml"
expect 0 list --json
json "sorted(r['state'] for r in o['runs'][:2]) == ['finished', 'finished']"
for run in $(python3 -c 'import json; print(*(r["run"] for r in json.load(open("'"$work"'/out"))["runs"][:2]))'); do
    "$dtrun" logs "$run"
done >"$work/swept" 2>&1
grep -q "lr=0.1 size=a b x" "$work/swept" && grep -q "lr=0.2 size=a b x" "$work/swept" || fail "not the points: $(cat "$work/swept")"

# Metrics from a file: lines of an earlier run are skipped, and a replaced file is read from its beginning.
cat >"$work/filed.yaml" <<'END'
command: 'for i in 1 2 3; do echo "{\"step\": $i, \"loss\": 0.$i}" >>log/{run}.jsonl; sleep 0.3; done'
shell: true
metrics: {file: "log/{run}.jsonl"}
END
mkdir "$work/log"
expect 0 launch --wait "$work/filed.yaml"
expect 0 metrics last --name loss --format csv
[ "$(tail -n +2 "$work/out" | cut -d, -f2,4 | tr '\n' ' ')" = "1,0.1 2,0.2 3,0.3 " ] || fail "not the metrics of the file"
echo '{"step": 9, "loss": 9}' >"$work/log/old"
expect 0 launch --wait "$work/filed.yaml" --set metrics.file=log/old \
    --set 'command=sleep 0.6; echo "{\"step\": 1, \"loss\": 1}" >log/new; mv log/new log/old'
expect 0 metrics last --name loss --format csv
[ "$(tail -n +2 "$work/out" | cut -d, -f2,4 | tr '\n' ' ')" = "1,1.0 " ] || [ "$(tail -n +2 "$work/out" | cut -d, -f2,4)" = "1,1" ] ||
    fail "not the metrics of the new file"

# A folder whose name has characters of patterns: those of the recipe's paths alone count.
odd="$work/odd [1] *x"
mkdir "$odd"
cat >"$odd/odd.yaml" <<'END'
command: 'mkdir -p out; for i in 1 2; do echo "{\"step\": $i, \"loss\": 0.$i}" >>out/m.jsonl; echo x >out/c-$i; sleep 0.6; done'
shell: true
metrics: {file: "out/?.jsonl"}
checkpoints: {path: "out/c-{step}", settle: 0.2}
END
for path in 'out/?.jsonl' out/m.jsonl; do
    rm -rf "${odd:?}/out"
    expect 0 launch --wait "$odd/odd.yaml" --set metrics.file="$path"
    expect 0 metrics last --name loss --format csv
    [ "$(tail -n +2 "$work/out" | cut -d, -f2,4 | tr '\n' ' ')" = "1,0.1 2,0.2 " ] || fail "$path: not the metrics of the file"
    expect 0 checkpoints last --json
    json "[(c['step'], c['path']) for c in o['checkpoints']] == [(2, '$odd/out/c-2'), (1, '$odd/out/c-1')]"
done
