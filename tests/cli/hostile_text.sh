#!/usr/bin/env bash
# Names, reasons, hosts, paths and log lines with control characters do not affect the terminal or the reader, whichever
# command shows them: in a terminal, in a pipe, and as JSON.
. "$(dirname "$0")/lib.sh"

expect 0 list
python3 - "$dtrun" "$XDG_STATE_HOME/dtrun" <<'PY' || fail "hostile text is printed"
import json, os, pty, re, sqlite3, subprocess, sys
dtrun, state = sys.argv[1:]
RED = "\x1b[31mred"  # where nobody but the program itself may say so
BAD = RED + "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202ecba\u2066\u2028\u061c\x7f\rX"
db = sqlite3.connect(state + "/store.db")
db.execute("INSERT INTO runs (id, name, created_ms, attempt, recipe_path, recipe_text, step)"
           " VALUES ('aa', ?, 1, 2, ?, ?, 5)", ("n" + BAD, "/p" + BAD, "name: x # " + BAD))
for attempt in (1, 2):
    db.execute("INSERT INTO attempts (run, attempt, state, start_step, steps_total, created_ms, started_ms, ended_ms,"
               " exit_code, reason, recipe_json, recipe_hash) VALUES (1, ?, 'failed', 0, 9, 1, 2, 3, 1, ?, ?, '')",
               (attempt, "why" + BAD, json.dumps({"name": "j" + BAD})))
    db.execute("INSERT INTO nodes (run, attempt, node, name, state, acknowledged) VALUES (1, ?, 0, ?, 'lost', 0)", (attempt, "h" + BAD))
    db.execute("INSERT INTO ranks (run, attempt, rank, node, local_rank, pid, device, state, exit_code, exit_signal, log_bytes)"
               " VALUES (1, ?, 0, 0, 0, 7, ?, 'failed', 1, -1, 0)", (attempt, "d" + BAD))
db.execute("INSERT INTO series (series, run, name) VALUES (1, 1, ?)", ("m" + BAD,))
db.execute("INSERT INTO metrics (series, step, attempt, value, time_ms) VALUES (1, 1, 2, 0.5, 1)")
logs = state + "/runs/aa/logs"
os.makedirs(logs)
checkpoint = state + "/runs/aa/c" + BAD.replace("/", "")
os.makedirs(checkpoint)
db.execute("INSERT INTO checkpoints (run, attempt, step, path, digest, bytes, time_ms, seconds) VALUES (1, 2, 5, ?, ?, 1, 1, 1)",
           (checkpoint, "x" + BAD))
db.commit()
with open(logs + "/rank-0.log", "wb") as log:
    log.write(b"2026-01-01T00:00:00.000Z line " + BAD.encode() + b"\xff\xfe\n")

# all but line feed, and the carriage return that a terminal's driver puts before it
HOSTILE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]")
STYLE = re.compile("\x1b\\[(0|1|2|31|32|33|36)m")

def in_pipe(*arguments):
    done = subprocess.run([dtrun, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

def in_terminal(*arguments):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([dtrun, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 4096):
            text += piece
    except OSError:
        pass
    process.wait()
    os.close(ours)
    text = text.decode(errors="replace")
    if RED in text:
        sys.exit(f"{arguments} in a terminal: styled from outside: {text!r}")
    return STYLE.sub("", text).replace("\r\n", "\n")

def check(what, text):
    found = HOSTILE.search(text)
    if found:
        sys.exit(f"{what}: {text[max(0, found.start() - 40):found.end() + 20]!r}")

COMMANDS = [("list",), ("status", "aa"), ("status",), ("show", "aa"), ("stop", "aa"), ("logs", "aa"), ("metrics", "aa"),
            ("metrics", "aa", "--format", "jsonl"), ("checkpoints", "aa"), ("resume", "aa"), ("generate", "aa"),
            ("compare", "aa", "aa"), ("export", "aa"), ("status", "no" + BAD), ("validate", "no" + BAD),
            ("launch", "/no" + BAD), ("nosuch" + BAD,), ("list", "--bad" + BAD), ("list", "--state", BAD),
            ("serve", "--listen", BAD), ("doctor", "/no" + BAD), ("plan", "/no" + BAD)]
for command in COMMANDS:
    out, err = in_pipe(*command)
    check(f"{command} in a pipe", out + err)
    check(f"{command} in a terminal", in_terminal(*command))
    out, err = in_pipe(*command, "--json")
    check(f"{command} as JSON", out + err)
reasons = json.loads(in_pipe("show", "aa", "--json")[0])
assert reasons["reason"] == "why" + BAD, reasons["reason"]  # JSON says the very same
PY
