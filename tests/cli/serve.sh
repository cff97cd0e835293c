#!/usr/bin/env bash
# dtrun serve: prints a link that opens the page, answers only requests with its token, ends cleanly, and refuses
# options that would be unsafe.
. "$(dirname "$0")/lib.sh"

start() { # arguments...: starts $server and waits until it has printed its link
    : >"$work/out"
    "$dtrun" serve "$@" >"$work/out" 2>"$work/err" &
    server=$!
    subject="dtrun serve $*"
    within 60 test -s "$work/out"
}
end() {
    kill -TERM $server
    wait $server
    [ $? -eq 0 ] || fail "SIGTERM is not a good end"
}

start --listen 127.0.0.1:0 --json
json "o['url'].startswith('http://127.0.0.1:')" "o['link'].startswith(o['url'] + '?token=')"
url=$(field "o['url'].rstrip('/')") link=$(field "o['link']") token=${link##*=}
python3 - "$url" "$link" <<'PY' || fail "the page does not answer"
import http.cookiejar, json, sys, urllib.error, urllib.request as r
url, link = sys.argv[1:]
def refused(path, headers={}):
    try:
        r.urlopen(r.Request(url + path, headers=headers))
    except urllib.error.HTTPError as error:
        return error.code
assert r.urlopen(url + "/healthz").status == 200
assert refused("/") == 401 and refused("/api/v1/runs") == 401
assert refused("/api/v1/runs", {"Authorization": "Bearer " + "0" * 32}) == 403
bearer = {"Authorization": "Bearer " + link.partition("=")[2]}
assert json.load(r.urlopen(r.Request(url + "/api/v1/runs", headers=bearer)))["runs"] == []
jar = http.cookiejar.CookieJar()
browser = r.build_opener(r.HTTPCookieProcessor(jar))
assert browser.open(link).url == url + "/" and len(jar) == 1
assert json.load(browser.open(url + "/api/v1/runs"))["runs"] == []
PY
[ "$(stat -c %a "$XDG_STATE_HOME/dtrun/serve.token")" = 600 ] || fail "others read the token"
tr '\0' ' ' <"/proc/$server/cmdline" | grep -q "$token" && fail "the token is in the process list"
grep -q "$token" "$work/err" && fail "the token is in the log"
expect 3 serve --listen "${url#http://}"
one_line
says "${url##*:}"
expect 0 serve --link --listen "${url#http://}"
[ "$(cat "$work/out")" = "$link" ] || fail "prints another link"
end

start --listen "${url#http://}" # started again: old links still work
[ "$(head -n 1 "$work/out")" = "$link" ] || fail "the link is another one"
end
start --listen 127.0.0.1:0 --new-token
grep -q "$token" "$work/out" && fail "the token is the old one"
end
exec 5>"$work/journal" # started as by systemd
: >"$work/out"
JOURNAL_STREAM=$(stat -L -c '%d:%i' "$work/journal") "$dtrun" serve --listen 127.0.0.1:0 >&5 2>"$work/err" &
server=$! subject="dtrun serve, its stdout the journal"
within 60 grep -q http "$work/journal"
within 60 grep -q "serve --link" "$work/err"
grep -q token= "$work/journal" && fail "the journal has the token"
end

start --listen 127.0.0.1:0
link=$(head -n 1 "$work/out")
[ "$("$dtrun" serve --link)" = "$link" ] || fail "--link is $("$dtrun" serve --link), the server's is $link"
end
[ "$("$dtrun" serve --link)" != "$link" ] || fail "--link is that of a server that has ended"

start --listen 127.0.0.1:0 --no-token
url=$(head -n 1 "$work/out")
python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1] + "api/v1/runs")' "$url" || fail "wants a token"
end
start --listen "unix:$work/socket"
[ "$(head -n 1 "$work/out")" = "unix:$work/socket" ] || fail "does not say where"
[ "$(stat -c %A "$work/socket")" = srw------- ] || fail "others may connect"
python3 - "$work/socket" <<'PY' || fail "does not answer at a Unix socket"
import http.client, socket, sys
c = http.client.HTTPConnection("localhost")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("GET", "/api/v1/runs")
assert c.getresponse().status == 200
PY
end
[ -e "$work/socket" ] && fail "the socket stays"

# A state folder that cannot be written: a separate small file system, where it can be mounted.
mkdir "$work/small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=16m tmpfs "$work/small" 2>/dev/null; then
    kept=$XDG_STATE_HOME
    export XDG_STATE_HOME=$work/small
    expect 0 list
    mount -o remount,ro "$work/small"
    expect 3 serve --listen 127.0.0.1:0
    one_line
    says "--no-token" "Read-only"
    start --listen 127.0.0.1:0 --no-token
    url=$(head -n 1 "$work/out")
    code() { python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).status)' "$1"; }
    [ "$(code "${url}api/v1/runs")" = 200 ] || fail "the page is not read-only"
    mount -o remount,rw "$work/small"
    expect 0 list
    [ "$(code "${url}healthz")" = 200 ] || fail "does not see that it may be written again"
    end
    export XDG_STATE_HOME=$kept
fi

expect 2 serve --listen 0.0.0.0:0
one_line
says "0.0.0.0"
expect 2 serve --listen nonsense
one_line
says "nonsense"
expect 2 serve --link --listen 127.0.0.1:0
one_line
