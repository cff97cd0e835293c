#!/usr/bin/env bash
# notify.webhook: a real server, which is busy at first, gets the restart and the end; the secret in its URL appears
# nowhere.
. "$(dirname "$0")/lib.sh"
export HOOK_TOKEN=s3cr3t-$RANDOM$RANDOM
python3 - >"$XDG_STATE_HOME/port" 2>/dev/null <<'PY' &
import http.server, json, os
class Hook(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Hook.count += 1
        if Hook.count == 1:
            self.send_error(503)
            return
        with open(os.environ["XDG_STATE_HOME"] + "/told", "a") as told:
            message = json.loads(body)
            told.write(f"{self.path == '/' + os.environ['HOOK_TOKEN']} {message['event']}"
                       f" {message['run']} {message['attempt']} {message['reason']}\n")
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
print(server.server_port, flush=True)
server.serve_forever()
PY
server=$!
await 10 test -s "$XDG_STATE_HOME/port"
export FAULT_WEBHOOK="http://127.0.0.1:$(cat "$XDG_STATE_HOME/port")/\${env:HOOK_TOKEN}"
FAULT_RESTARTS=1 FAKE_MODE=abort "$driver" launch one 1
end_is one failed 1
is_told() { [ "$(wc -l <"$XDG_STATE_HOME/told")" = 2 ]; }
touch "$XDG_STATE_HOME/told"
await 30 is_told
is "first" "$(sed -n 1p "$XDG_STATE_HOME/told")" \
    "True restarted one 2 rank 0 on localhost was killed by signal 6 (SIGABRT)"
is "second" "$(sed -n 2p "$XDG_STATE_HOME/told")" \
    "True failed one 2 rank 0 on localhost was killed by signal 6 (SIGABRT); given up after 1 restart without a new checkpoint"
if grep -rq "$HOOK_TOKEN" "$XDG_STATE_HOME/dtrun"; then fail "the secret is in a file"; fi

# the variable is not set, or the server is gone: the run ends as usual, and the log has the reason
kill "$server"
HOOK_TOKEN= FAKE_STEPS=3 "$driver" launch two 1
end_is two finished 0
await 10 grep -q "the variable 'HOOK_TOKEN' is not set" "$runs/two/supervisor.log"
FAKE_STEPS=3 "$driver" launch three 1
end_is three finished 0
await 10 grep -q "webhook not delivered, try 1" "$runs/three/supervisor.log"
if grep -rq "$HOOK_TOKEN" "$XDG_STATE_HOME/dtrun"; then fail "the secret is in a file"; fi
