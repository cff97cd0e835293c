#!/usr/bin/env bash
# Compares runs: their recipes, their results, and their points in one table.
. "$(dirname "$0")/lib.sh"
make_tiny

for lr in 1e-3 1e-2; do
    expect 0 launch --wait --json "$work/tiny.yaml" --set optimizer.lr=$lr --group rates --set seed=3
    runs+=("$(field "o['run']")")
    losses+=("$(field "o['loss']")")
done
expect 0 compare "${runs[@]}" --json
json "o['differ'] == ['optimizer.lr']" "[r['run'] for r in o['runs']] == '${runs[*]}'.split()" \
    "[r['recipe'] for r in o['runs']] == [{'optimizer.lr': 0.001}, {'optimizer.lr': 0.01}]" \
    "[r['metrics']['loss']['last']['value'] for r in o['runs']] == [${losses[0]}, ${losses[1]}]" \
    "o['runs'][0]['metrics']['loss']['last']['difference'] == 0" \
    "o['runs'][1]['metrics']['loss']['last']['difference'] == ${losses[1]} - ${losses[0]}" \
    "o['runs'][1]['metrics']['loss']['points'] == 60" \
    "o['runs'][0]['metrics']['valid_loss']['best']['step'] == 60" \
    "o['runs'][0]['metrics']['tokens_per_second']['best']['value'] >= o['runs'][0]['metrics']['tokens_per_second']['last']['value']"
expect 0 compare --group rates --json -m loss
json "[r['run'] for r in o['runs']] == '${runs[*]}'.split()" "list(o['runs'][0]['metrics']) == ['loss']"
expect 0 compare rates --json -m loss # a group in which no run has the name
json "[r['run'] for r in o['runs']] == '${runs[*]}'.split()"
expect 0 compare "${runs[1]}" rates --json -m loss
json "[r['run'] for r in o['runs']] == ['${runs[1]}', '${runs[0]}']"
expect 2 compare --group nosuchgroup
says "no group 'nosuchgroup'"
expect 2 show rates
says "'rates' is a group of 2 runs" "dtrun list --group rates"
LC_ALL=C.UTF-8 expect 0 compare "${runs[@]}"
says "optimizer.lr" "validation loss" "vs first" "%)" "aaa" "bbb" "+----"
lacks "seed"
[ "$(awk 'length > 110' "$work/out" | wc -l)" -eq 0 ] || fail "a line is too wide"

# A run without a recipe: the others are compared, in any order.
printf 'step,loss\n1,3\n2,2\n' >"$work/points.csv"
expect 0 import csv "$work/points.csv" --json
imported=$(field "o['runs'][0]")
LC_ALL=C.UTF-8 expect 0 compare "$imported" "${runs[@]}"
says "optimizer.lr" "no recipe: $imported (imported, or not readable)"
lacks "the recipes are the same"
expect 2 compare "${runs[0]}" "${runs[0]}"
one_line
says "expected at least two runs"
expect 2 compare "${runs[@]}" -m nosuch
says "none of these runs has a metric 'nosuch'"
expect 2 compare "${runs[0]}" nosuchrun
says "unknown run 'nosuchrun'"

LC_ALL=C.UTF-8 expect 0 show "${runs[0]}"
says "▇" "█"
LC_ALL=C expect 0 show "${runs[0]}"
lacks "█"

expect 0 metrics "${runs[@]}" --name loss
[ "$(head -1 "$work/out")" = "run,attempt,step,name,value,time" ] || fail "not this header"
[ "$(grep -c "^${runs[1]},1,[0-9]*,loss," "$work/out")" -eq 60 ] || fail "not 60 points of the second run"
expect 0 metrics "${runs[@]}" --format wide
python3 - "$work/out" "${runs[@]}" <<'PY' || fail "the wide table is not that"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert list(rows[0])[:2] == ["run", "step"] and "valid_loss" in rows[0], rows[0]
of = [[r for r in rows if r["run"] == run] for run in sys.argv[2:]]
assert [[int(r["step"]) for r in runs] for runs in of] == [list(range(1, 61))] * 2
assert [r["step"] for r in of[0] if r["valid_loss"]] == ["20", "40", "60"]
assert all(r["loss"] for r in rows)
PY
expect 0 metrics "${runs[0]}" --format wide --name loss
[ "$(head -1 "$work/out")" = "step,loss" ] || fail "not this header"
expect 0 metrics "${runs[@]}" --json --name loss
json "o['runs'] == '${runs[*]}'.split()" "len(o['metrics']) == 120" "o['metrics'][0]['run'] == '${runs[0]}'"
expect 0 metrics "${runs[0]}" --json --name loss
json "o['run'] == '${runs[0]}'" "'run' not in o['metrics'][0]"
