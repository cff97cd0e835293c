#!/usr/bin/env bash
# gc lists, asks and removes: checkpoints, logs and journals of ended runs, and unused files of the cache; no file of an
# active run, and none that a launch has just found.
. "$(dirname "$0")/lib.sh"
make_tiny
runs=$work/state/dtrun/runs cache=$work/cache/dtrun

expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=80 --set checkpoint.every=10 --set checkpoint.keep=0
old=$(field "o['run']")
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 \
    --set checkpoint.every=20 --set checkpoint.keep=0
running=$(cat "$work/out")
within 60 step_reached "$running" 60
saved=$(ls "$runs/$old/checkpoints" | wc -l)
[ "$saved" -ge 8 ] || fail "only $saved checkpoints"
find "$runs/$old" -type f | sort >"$work/before"

expect 0 gc # no run ended long ago
says "nothing to remove"
expect 0 gc --older 0h --dry-run
says "$runs/$old/checkpoints/step-00000010" "$runs/$old/logs/rank-0.log" "journal.jsonl" "checkpoints: "
lacks "$running"
lacks "step-00000080"
find "$runs/$old" -type f | sort | cmp -s - "$work/before" || fail "a dry run removed something"
expect 2 gc --older 0h
says "not a terminal: use --yes"
expect 0 gc checkpoints --older 0h --yes --keep 2 --json
json "o['dry_run'] is False" "all(i['kind'] == 'checkpoints' and i['run'] == '$old' and i['removed'] for i in o['items'])" \
    "o['bytes'] == sum(i['bytes'] for i in o['items']) > 0"
expect 0 checkpoints "$old" --json
json "[c['step'] for c in o['checkpoints']][:2] == [80, 70]" "len(o['checkpoints']) <= 3" # and the best checkpoint
expect 0 gc --older 0h --yes logs journals
[ -z "$(find "$runs/$old" -name '*.log' -o -name journal.jsonl)" ] || fail "logs or journals are left"
expect 0 logs "$old"
expect 0 show "$old"
expect 0 store check --json
json "o['problems'] == []"
expect 0 generate "$old" --tokens 5
expect 0 fork "$old" --wait --json --set schedule.steps=90
expect 0 resume "$old" --wait --json --set schedule.steps=90
json "o['state'] == 'finished'"
expect 0 logs "$old" --rank 0

# A run that is resumed between the listing and the removal, and a checkpoint that is being copied, stay.
exec 7<"$runs/$old/checkpoints/step-00000070"
flock -s 7
expect 0 gc checkpoints --older 0h --yes --json
json "any(i['path'].endswith('step-00000070') and not i['removed'] for i in o['items'])"
[ -d "$runs/$old/checkpoints/step-00000070" ] || fail "a checkpoint that is copied was removed"
exec 7<&-
exec 8>"$runs/$old/resume.lock"
flock -x 8
expect 0 gc checkpoints --older 0h --yes --json
json "all(not i['removed'] for i in o['items'])" "len(o['items']) > 0"
says "is supervised or resumed just now"
exec 8>&-

# The cache: new, marked and running files stay; the oldest of the others are removed beyond a quota.
mkdir -p "$cache"/data/{idle,fresh,marked} "$cache"/bundles/b "$cache/uses"
for name in data/idle data/fresh data/marked bundles/b; do head -c 40000 /dev/zero >"$cache/$name/x"; done
touch -d '40 days ago' "$cache"/data/idle "$cache"/data/marked
touch -d '3 days ago' "$cache"/bundles/b
touch "$cache/uses/data-marked.elsewhere.abcdef"
expect 0 gc cache --json --dry-run
json "[i['path'] for i in o['items']] == ['$cache/data/idle']"
expect 0 gc cache --older 0h --json --dry-run
json "[i['path'] for i in o['items']] == ['$cache/data/idle', '$cache/bundles/b']"
expect 0 gc cache --cache-quota 50kB --yes --json
json "[i['path'] for i in o['items'] if i['removed']] == ['$cache/data/idle']"
expect 0 gc cache --cache-quota 1kB --yes
[ ! -e "$cache/bundles/b" ] || fail "the quota is not kept"
[ -d "$cache/data/fresh" ] && [ -d "$cache/data/marked" ] || fail "what is used was removed"
[ -z "$(find "$cache" -name '.gone-*')" ] || fail "half a removal is left"
mkdir "$runs/.removed-abc"
expect 0 gc leftovers --yes
[ ! -e "$runs/.removed-abc" ] || fail "a leftover is left"
# gc does not fail if a run is removed meanwhile.
printf 'name: short\ncommand: "true"\n' >"$work/short.yaml"
for run in 1 2 3 4; do
    expect 0 launch --wait --json "$work/short.yaml" --tag short
    shorts="${shorts:-} $(field "o['run']")"
done
for run in $shorts; do for file in $(seq 200); do echo x >"$runs/$run/logs/$file.log"; done; done
(for run in $shorts; do "$dtrun" rm --yes $run >>"$work/rm.out" 2>&1 || touch "$work/rm.failed"; done) &
remover=$!
while kill -0 $remover 2>/dev/null; do expect 0 gc logs journals leftovers --older 0h --yes; done
wait $remover
[ ! -e "$work/rm.failed" ] || fail "rm beside gc: $(cat "$work/rm.out")"
expect 2 gc nonsense
expect 2 gc --cache-quota much
says "expected a size"
expect 2 gc --older soon

# The active run has lost nothing.
step_now=$("$dtrun" status "$running" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["step"])')
within 60 step_reached "$running" $((step_now + 20))
[ "$(ls "$runs/$running/checkpoints" | wc -l)" -ge 3 ] || fail "checkpoints of a run that continues are gone"
expect 0 stop "$running"
