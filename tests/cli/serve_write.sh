#!/usr/bin/env bash
# dtrun serve --write: changes runs by the API as the commands do, and refuses every request that has no right to.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 --set name=going
active=$(cat "$work/out")
for name in first second third; do
    printf 'step,loss\n1,2.0\n2,1.5\n' >"$work/$name.csv"
    expect 0 import csv "$work/$name.csv" --name "$name" --json
done
within 60 step_reached "$active" 3
expect 2 serve --write --no-token
one_line
says "--no-token"
: >"$work/out"
"$dtrun" serve --write --listen 127.0.0.1:0 --json >"$work/out" 2>"$work/err" &
server=$!
within 60 test -s "$work/out"
cp "$work/out" "$work/served"
"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/readonly" 2>/dev/null &
reader=$!
within 60 test -s "$work/readonly"
[ "$(stat -c %a "$XDG_STATE_HOME/dtrun/serve.write-token")" = 600 ] || fail "others read the token to write"
cmp -s "$XDG_STATE_HOME/dtrun/serve.write-token" "$XDG_STATE_HOME/dtrun/serve.token" && fail "both tokens are the same"
subject="the API that writes"
"$dtrun" list --json >"$work/runs"
python3 tests/cli/serve_write.py "$work/served" "$work/readonly" "$work/runs" "$active" || { fail "the API differs"; exit 1; }
expect 0 show "$active" --json
json "o['state'] == 'stopped'" "o['tags'] == ['b']" "o['name'] == 'renamed'"
expect 0 list --json --archived
json "len(o['runs']) == 3"
expect 0 list --json
json "len(o['runs']) == 2"
expect 0 archive second --undo --json
json "o['runs'][0]['archived'] is False"
expect 0 list --json
json "len(o['runs']) == 3"
expect 0 rm first --dry-run
says "would remove run"
expect 0 list --json
json "len(o['runs']) == 3"
expect 0 serve --write --link --listen 127.0.0.1:1234
grep -q "$(cat "$XDG_STATE_HOME/dtrun/serve.write-token")" "$work/out" || fail "another link"
expect 0 serve --link --listen 127.0.0.1:1234
grep -q "$(cat "$XDG_STATE_HOME/dtrun/serve.token")" "$work/out" || fail "another link"
kill -TERM $server $reader
wait $server || fail "SIGTERM is not a good end"
wait $reader || fail "SIGTERM is not a good end"
