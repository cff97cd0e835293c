#!/usr/bin/env bash
# The page: says where it is, answers there, ends politely, refuses what it may not be.
. "$(dirname "$0")/lib.sh"

"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/out" 2>"$work/err" &
server=$!
within 10 test -s "$work/out"
subject="dtrun serve"
json "o['url'].startswith('http://127.0.0.1:')"
url=$(field "o['url'].rstrip('/')")
python3 - "$url" <<'PY' || fail "the page does not answer"
import json, sys, urllib.request
assert urllib.request.urlopen(sys.argv[1] + "/healthz").status == 200
assert json.load(urllib.request.urlopen(sys.argv[1] + "/api/v1/runs"))["runs"] == []
PY
expect 3 serve --listen "${url#http://}"
one_line
says "${url##*:}"
kill -TERM $server
wait $server
[ $? -eq 0 ] || fail "SIGTERM is not a good end"

expect 2 serve --listen 0.0.0.0:0
one_line
says "0.0.0.0"
expect 2 serve --listen nonsense
one_line
says "nonsense"
