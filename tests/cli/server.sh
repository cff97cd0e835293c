#!/usr/bin/env bash
# --server: the output about another machine's runs is the same as there, to the byte; who is allowed, which commands
# run, what ends with which side; and servers that are dead, slow, broken or hostile.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20 --set name="first"
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20 --set optimizer.lr=1e-2
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=100000000 --set evaluate.every=100000000 --set name=going
running=$(cat "$work/out")
within 60 step_reached "$running" 5

: >"$work/served"
"$dtrun" serve --listen 127.0.0.1:0 --json >"$work/served" 2>"$work/serve.err" &
server=$!
within 60 test -s "$work/served"
cp "$work/served" "$work/out"
url=$(field "o['url'].rstrip('/')") link=$(field "o['link']")
export DTRUN_TOKEN=${link##*=}

# --- the same output; this side has no runs of its own
away() { XDG_STATE_HOME=$work/nowhere "$dtrun" "$@"; }
same() { # arguments...
    local here=0 there=0
    subject="dtrun $*"
    "$dtrun" "$@" >"$work/here.out" 2>"$work/here.err" </dev/null || here=$?
    away "$@" --server "$url" >"$work/out" 2>"$work/err" </dev/null || there=$?
    sed -i -E 's/[0-9]+[smh] ago|just now/ago/; s/ +/ /g' "$work"/{here.out,out} # time changes the columns
    [ $here -eq $there ] || fail "exit code $there there, $here here"
    cmp -s "$work/here.out" "$work/out" || fail "another stdout: $(diff "$work/here.out" "$work/out" | head -n 5)"
    cmp -s "$work/here.err" "$work/err" || fail "another stderr: $(diff "$work/here.err" "$work/err" | head -n 5)"
}
same list --state finished
same list --state finished --json --columns loss,optimizer.lr --sort loss
same list --name 'fir*' 'optimizer.lr>1e-9'
same show first
same show first --json --origins
same status first
same compare first tiny
same logs first
same logs tiny --steps --json
same metrics first --format csv
same metrics first tiny --format jsonl
same checkpoints first
same wait first
same show nosuch
same show
same list --sort nosuch
same list --limit -1
[ -d "$work/nowhere" ] && fail "a command for elsewhere wrote here"
DTRUN_SERVER=$url same status tiny
subject="a terminal"
COLUMNS=200 away list --server "$url" >"$work/out" 2>"$work/err"
python3 - "$dtrun" "$url" <<'PY' || fail "on a terminal it is not what is shown there"
import os, pty, re, subprocess, sys
def shown(*arguments):
    parent, child = pty.openpty()
    done = subprocess.Popen([sys.argv[1], *arguments], stdin=subprocess.DEVNULL, stdout=child, stderr=child,
                            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    os.close(child)
    out = b""
    try:
        while part := os.read(parent, 65536):
            out += part
    except OSError:
        pass
    done.wait()
    return out
for words in (["list", "--state", "finished"], ["show", "first", "--json"], ["compare", "first", "tiny"], ["show", "nosuch"]):
    here, there = shown(*words), shown(*words, "--server", sys.argv[2])
    here, there = (re.sub(rb" +", b" ", re.sub(rb"\d+[smh] ago|just now", b"ago", text)) for text in (here, there))
    assert here == there and here, (words, here[:500], there[:500])
assert b"\x1b[" in shown("list", "--server", sys.argv[2])
PY

# --- a command that follows ends with its reader
children() { pgrep -P $server | wc -l; }
child_there() { [ "$(children)" -gt 0 ]; }
child_gone() { [ "$(children)" -eq 0 ]; }
XDG_STATE_HOME=$work/nowhere "$dtrun" logs going --follow --steps --server "$url" >"$work/follow" 2>&1 &
reader=$!
within 30 test -s "$work/follow"
kill -TERM $reader
wait $reader 2>/dev/null
subject="logs --follow, whose reader ends"
within 30 child_gone || fail "the command continues without its reader"
XDG_STATE_HOME=$work/nowhere "$dtrun" wait going --until step=1000000000 --server "$url" >"$work/wait.out" 2>"$work/wait.err" &
reader=$!
within 30 child_there

# --- which requests are allowed
ask() { curl -s -o "$work/out" -w '%{http_code}' -H "Authorization: Bearer $DTRUN_TOKEN" "$url/api/v1/command?$1"; }
subject="GET /api/v1/command"
for words in '' 'word=stop&word=going' 'word=rm&word=first' 'word=nosuch' 'word=serve' 'word=sql&word=select+1' 'word=export' \
    'word=list&word=--server%3Dx' 'word=list&word=--nosuch' 'word' 'word=list&columns=0' 'word=' \
    "$(printf 'word=list%.0s&' $(seq 130))"; do
    [ "$(ask "$words")" = 400 ] || fail "'$words' is not refused: $(head -c 200 "$work/out")"
done
[ "$(DTRUN_TOKEN=wrong ask word=list)" = 403 ] || fail "takes any token"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/api/v1/command?word=list")" = 401 ] || fail "takes nobody's"
subject="eight at once"
keep_waiting() { # a command that is refused, because another one of ours has the place, is tried again
    for _ in {1..100}; do
        curl -sf -m 60 -H "Authorization: Bearer $DTRUN_TOKEN" \
            "$url/api/v1/command?word=wait&word=going&word=--until&word=step%3D1000000000" && break
        sleep 0.2
    done >/dev/null
}
for _ in 1 2 3 4 5 6 7; do keep_waiting & done # and the reader ends too
full() { [ "$(ask word=list)" = 503 ]; }
within 30 full || fail "more than eight"
expect 3 list --server "$url"
says "8 commands of other clients are running"
[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/healthz")" = 200 ] || fail "does not answer others"

# --- ... and with the server
sleep 1 # the reader has seen output of its command
kill -KILL $server
wait $server 2>/dev/null
wait $reader
[ $? -eq 3 ] || fail "a server that died is not told"
grep -q "closed the connection" "$work/wait.err" || fail "says $(cat "$work/wait.err")"
alone() { ! pgrep -f "$dtrun wait going" >/dev/null && ! pgrep -f "dtrun wait going --" >/dev/null; }
within 30 alone || fail "commands outlive their server"
expect 3 list --server "$url"
says "$url" "dtrun serve"

# --- invalid addresses and tokens
refuses() { # text environment... -- arguments...
    local text=$1 environment=()
    shift
    while [ "$1" != -- ]; do environment+=("$1") && shift; done
    shift
    subject="${environment[*]} dtrun $*"
    env "${environment[@]}" "$dtrun" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] || fail "is not refused"
    says "$text"
    grep -q "${link##*=}" "$work/out" "$work/err" && fail "shows the token"
}
refuses "unsupported address" A=1 -- list --server ''
refuses "unsupported address" A=1 -- list --server localhost:8642
refuses "unsupported address" A=1 -- list --server ftp://localhost
refuses "DTRUN_TOKEN" A=1 -- list --server "$link"
refuses "https" A=1 -- list --server http://gpu-a:8642
refuses "https" A=1 -- list --server http://localhost.example.org:8642
refuses "password" A=1 -- list --server https://me:secret@gpu-a
refuses "has no host" A=1 -- list --server http://
refuses "needs the path of a socket" A=1 -- list --server unix:
refuses "expected letters and digits" DTRUN_TOKEN=$'a\nX-Other: b' -- list --server "$url"
refuses "other users can read" DTRUN_TOKEN= DTRUN_TOKEN_FILE="$work/served" -- list --server "$url"
refuses "DTRUN_TOKEN_FILE" DTRUN_TOKEN= DTRUN_TOKEN_FILE="$work/nosuch" -- list --server "$url"
refuses "unset it" DTRUN_SERVER="$url" -- stop going
refuses "unset it" DTRUN_SERVER="$url" -- rm first
refuses "unset it" DTRUN_SERVER="$url" -- gc
refuses "unset it" DTRUN_SERVER="$url" -- store check
refuses "unset it" DTRUN_SERVER="$url" -- import csv none.csv
refuses "unset it" DTRUN_SERVER="$url" -- launch none.yaml
DTRUN_SERVER=$url expect 0 schema
unset DTRUN_TOKEN

# --- a socket needs no token
"$dtrun" serve --listen "unix:$work/socket" >/dev/null 2>&1 &
server=$!
within 60 test -S "$work/socket"
expect 0 status first
cp "$work/out" "$work/here.out"
expect 0 status first --server "unix:$work/socket"
cmp "$work/here.out" "$work/out" || fail "another answer by the socket"
kill $server
wait $server

# --- servers that are not dtrun, or are faulty
cat >"$work/bad.py" <<'PY'
import http.server, sys, time
BAD = {
    "/text": (200, "text/plain", b"hello"), "/gone": (404, "text/html", b"<html>"), "/moved": (302, "text/plain", b""),
    "/error": (500, "application/json", b'{"error": {"message": "\x1b[2Jfull"}}'),
    "/frames": (200, "application/x-dtrun-command", b"o 99999999\n"), "/no": (200, "application/x-dtrun-command", b"hello\n"),
    "/cut": (200, "application/x-dtrun-command", b"o 10\nabc"), "/none": (200, "application/x-dtrun-command", b""),
    "/more": (200, "application/x-dtrun-command", b"x 0\no 1\na"), "/minus": (200, "application/x-dtrun-command", b"o -1\nx 0\n"),
    "/steer": (200, "application/x-dtrun-command", b"o 28\n\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J\ne 5\n\x1b[5n\nx 7\n"),
    "/torn": (200, "application/x-dtrun-command", b"o 1\n\xc3o 2\n\xa4\no 0\nx 0\n"),
}
class Bad(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen.write(f"{self.path} {self.headers.get('Authorization')}\n")
        seen.flush()
        status, kind, body = BAD["/" + self.path.split("/")[1]]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 302:
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
seen = open(sys.argv[2], "w")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bad)
print(server.server_port, file=open(sys.argv[1], "w"), flush=True)
server.serve_forever()
PY
python3 "$work/bad.py" "$work/port" "$work/seen" &
bad=$!
within 30 test -s "$work/port"
at=http://127.0.0.1:$(cat "$work/port")
export DTRUN_TOKEN=abcdef
for case in "3 text not_a_dtrun_server" "2 gone not_a_dtrun_server" "2 moved does_not_follow" "2 error answered_500" \
    "3 frames answer_is_malformed" "3 no answer_is_malformed" "3 cut closed_the_connection" "3 none closed_the_connection" "3 more answer_is_malformed" "3 minus answer_is_malformed"; do
    read -r code path words <<<"$case"
    expect "$code" list --server "$at/$path"
    says "${words//_/ }"
    grep -q $'\x1b' "$work/out" "$work/err" && fail "passes an escape sequence on"
done
grep -q elsewhere "$work/seen" && fail "a redirection is followed"
expect 0 list --server "$at/torn"
[ "$(cat "$work/out")" = "ä" ] || fail "a character is torn"
subject="a server that steers the terminal"
python3 - "$dtrun" "$at/steer" <<'PY' || fail "a server steers the terminal"
import os, pty, subprocess, sys
parent, child = pty.openpty()
done = subprocess.Popen([sys.argv[1], "list", "--server", sys.argv[2]], stdout=child, stderr=child,
                        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
os.close(child)
out = b""
try:
    while part := os.read(parent, 65536):
        out += part
except OSError:
    pass
assert done.wait() == 7
assert b"\x1b[31mred\x1b[0m" in out, out
rest = out.replace(b"\x1b[31m", b"").replace(b"\x1b[0m", b"")
assert b"\x1b" not in rest and b"\x07" not in rest, out
PY
kill $bad
expect 0 stop "$running"
