#!/usr/bin/env bash
# When a run ends, its supervisor enforces the quotas of the environment: it removes the oldest logs of other runs and
# idle files of the cache, but nothing of active runs, of the run that just ended, or that is in use.
. "$(dirname "$0")/lib.sh"
make_tiny
runs=$work/state/dtrun/runs cache=$work/cache/dtrun
short=(--set schedule.steps=20 --set checkpoint.every=20)

supervisor_is_gone() { flock -n "$runs/$1/supervisor.lock" true; }
log_says() { grep -q "$2" "$runs/$1/supervisor.log"; }
logs_of() { find "$runs/$1" -name '*.log' | wc -l; }

for variable in DTRUN_LOG_QUOTA DTRUN_CACHE_QUOTA; do
    for size in much 5 -1GB 1e300TB "5 GBs"; do
        export "$variable=$size"
        expect 2 launch --detach "$work/tiny.yaml"
        says "$variable '$size': expected a size, as in 20GB"
    done
    unset "$variable"
done
expect 0 list --json
json "o['runs'] == []"

expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
old=$(field "o['run']")
expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
held=$(field "o['run']")
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000
running=$(cat "$work/out")
within 60 step_reached "$running" 5
mkdir -p "$cache"/data/{idle,fresh,marked} "$cache/uses"
for name in idle fresh marked; do head -c 40000 /dev/zero >"$cache/data/$name/x"; done
touch -d '3 days ago' "$cache"/data/idle "$cache"/data/marked
touch "$cache/uses/data-marked.elsewhere.abcdef"

# Without a quota, with an empty one and with one that is not reached, everything stays.
DTRUN_LOG_QUOTA='' DTRUN_CACHE_QUOTA=1TB expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
roomy=$(field "o['run']")
within 60 supervisor_is_gone "$roomy"
[ "$(logs_of "$old")" -ge 2 ] && [ -d "$cache/data/idle" ] || fail "something was removed without need"

# `dtrun gc` uses the same quotas; an option overrides them.
DTRUN_LOG_QUOTA=0B expect 0 gc logs --dry-run --json
json "{'$old', '$held', '$roomy'} == {i['run'] for i in o['items']}"
DTRUN_LOG_QUOTA=0B expect 0 gc logs --dry-run --log-quota 1TB
says "nothing to remove"

# The logs of a run that is just being resumed stay, and the log says why; everything else beyond the quotas is removed.
exec 8>"$runs/$held/resume.lock"
flock -x 8
DTRUN_LOG_QUOTA=0B DTRUN_CACHE_QUOTA=1kB expect 0 launch --wait --json "$work/tiny.yaml" "${short[@]}"
json "o['state'] == 'finished'"
new=$(field "o['run']")
within 60 supervisor_is_gone "$new"
within 60 log_says "$new" "to stay within DTRUN_LOG_QUOTA"
within 60 log_says "$new" "data/idle', [0-9]* bytes, to stay within DTRUN_CACHE_QUOTA"
exec 8>&-
[ "$(logs_of "$old")" -eq 0 ] && [ "$(logs_of "$roomy")" -eq 0 ] || fail "logs beyond the quota are left"
[ "$(logs_of "$held")" -ge 2 ] || fail "logs of a run that is resumed were removed"
log_says "$new" "quota: .*is supervised or resumed just now" || fail "what could not go is not told"
[ "$(logs_of "$new")" -ge 2 ] || fail "the logs of the run that has just ended were removed"
[ "$(logs_of "$running")" -ge 2 ] || fail "logs of a run that continues were removed"
[ ! -e "$cache/data/idle" ] || fail "the cache is beyond its quota"
[ -d "$cache/data/fresh" ] && [ -d "$cache/data/marked" ] || fail "what is used was removed"
grep -qz '^DTRUN_LOG_QUOTA=0B$' "$runs/$new/environment" || fail "a supervisor that is started again has no quota"

expect 0 store check --json
json "o['problems'] == []"
expect 0 show "$old"
expect 0 logs "$old"
expect 0 resume "$old" --wait --json --set schedule.steps=40
json "o['state'] == 'finished'"
expect 0 stop "$running"
