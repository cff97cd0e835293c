# Every script of this folder begins with this: a separate state folder, checked calls of `dtrun`, and the end of every
# run that the script started.
#
#   expect 2 validate bad.yaml      runs `dtrun validate bad.yaml`, wants exit code 2
#   says "text"                     stdout or stderr of the last expect has this text
#   lacks "text"                    neither stdout nor stderr has this text
#   one_line                        stderr is one line (and perhaps the hint to see the help, or
#                                   the line of a recipe that it is about)
#   json "o['state'] == 'running'"  stdout is one JSON object o, version 1, and this holds
#   field "o['run']"                prints this value of the JSON object o
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
unset NO_COLOR
subject=""

active_runs() {
    "$dtrun" list --json --limit 0 2>/dev/null | python3 -c '
import json, sys
for run in json.load(sys.stdin)["runs"]:
    if run["state"] not in ("finished", "failed", "stopped"):
        print(run["run"])' 2>/dev/null
}

at_exit() {
    local status=$?
    [ -d "$work/state/dtrun" ] && for run in $(active_runs); do
        "$dtrun" stop --now "$run" >/dev/null 2>&1
    done
    mountpoint -q "$work/small" && umount "$work/small"
    [ -e "$work/failed" ] && status=1
    chmod -R u+rwx "$work" 2>/dev/null
    rm -rf "$work"
    [ $status -eq 0 ] && echo "good"
    exit $status
}
trap at_exit EXIT

fail() { # through a file, since it may be called on one side of a pipe
    touch "$work/failed"
    printf 'FAILED %s: %s\n' "$subject" "$*"
    printf '  stdout: %s\n  stderr: %s\n' "$(head -c 2000 "$work/out")" \
        "$(head -c 4000 "$work/err")"
}

expect() { # exit-code arguments...
    local wanted=$1 got=0
    shift
    subject="dtrun $*"
    "$dtrun" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ $got -eq "$wanted" ] || fail "exit code $got, wanted $wanted"
}

says() {
    local text
    for text; do
        grep -qF -- "$text" "$work/out" "$work/err" || fail "does not say '$text'"
    done
}

lacks() {
    ! grep -qF -- "$1" "$work/out" "$work/err" || fail "says '$1'"
}

one_line() {
    local count
    count=$(grep -cvE "^see 'dtrun help|^ *[0-9]* \| " "$work/err")
    [ "$count" -eq 1 ] || fail "$count lines of errors, wanted one"
    [ ! -s "$work/out" ] || fail "an error wrote to stdout"
}

json() {
    local condition
    for condition; do
        python3 - "$work/out" "$condition" <<'PY' || fail "JSON: $condition"
import json, math, sys
text = open(sys.argv[1]).read()
o = json.loads(text)
assert isinstance(o, dict) and o["version"] == 1 and list(o)[0] == "version", text[:500]
assert eval(sys.argv[2]), text[:2000]
PY
    done
}

field() {
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
        "$work/out" "$1"
}

# Nothing of a run may exist: no row, no folder.
nothing_half_made() {
    local said=$subject
    [ -z "$(ls -A "$work/state/dtrun/runs" 2>/dev/null)" ] || fail "a run's folder was left"
    expect 0 list --json --limit 0
    json "o['runs'] == []"
    subject=$said
}

# within SECONDS COMMAND...: waits until the command succeeds
within() {
    local tries=$(($1 * 10))
    shift
    while [ $tries -gt 0 ]; do
        "$@" && return 0
        sleep 0.1
        tries=$((tries - 1))
    done
    subject="$*"
    fail "not within the time"
    return 1
}

# halted_until COMMAND...: halts the ranks of the run that starts next until the command succeeds. Without this, a fast
# machine could end the run before, and a busy one could look at it after its end.
halted_until() {
    local pids
    engines() { pgrep -f "dtrun-engine train --plan $work/.*/runs/[^/]*/attempt-1/"; }
    within 60 engines >/dev/null || return
    pids=$(engines)
    kill -STOP $pids
    within 60 "$@"
    kill -CONT $pids
}

state_is() { # run state
    [ "$("$dtrun" status "$1" --json 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin).get("state"))')" = "$2" ]
}

step_reached() { # run step
    [ "$("$dtrun" status "$1" --json 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin).get("step", -1))')" -ge "$2" ]
}

# Makes tiny.yaml and corpus.txt in $work: a model that makes hundreds of steps a second.
make_tiny() {
    python3 - >"$work/corpus.txt" <<'PY'
import random
random.seed(1)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
for _ in range(1500):
    print(" ".join(random.choice(words) for _ in range(8)))
PY
    cat >"$work/tiny.yaml" <<'YAML'
name: tiny
ranks: 2
threads: 1
model: {kind: gpt2, layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
optimizer: {kind: adamw, lr: 3e-3}
schedule: {kind: cosine, warmup_steps: 5, steps: 60}
evaluate: {every: 20, sequences: 16}
checkpoint: {every: 20, keep: 3}
log: {every: 1}
YAML
}

db=$work/state/dtrun/store.db
# damage TABLE...: writes random bytes over every leaf page of these tables
damage() {
    python3 - "$db" "$@" <<'PY' || fail "the history could not be damaged"
import os, sqlite3, sys
path, tables = sys.argv[1], sys.argv[2:]
db = sqlite3.connect(path)
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
pages = [n for table in tables for n, in db.execute(
    "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))]
size, = db.execute("PRAGMA page_size").fetchone()
db.close()
assert pages
with open(path, "r+b") as file:
    for page in pages:
        file.seek((page - 1) * size)
        file.write(os.urandom(size))
PY
}
# The history and the folders of all runs, as they are now.
keep() {
    rm -rf "$work/kept"
    cp -a "$work/state" "$work/kept"
}
put_back() {
    rm -rf "$work/state"
    cp -a "$work/kept" "$work/state"
}
# Makes tiny.yaml and two ended runs of it, 'one' and 'two'. Sets $one and $two to their ids, $runs to their folder.
two_ended_runs() {
    local name run
    make_tiny
    runs=$work/state/dtrun/runs
    for name in one two; do
        expect 0 launch --detach "$work/tiny.yaml" --set ranks=1 --set schedule.steps=150 \
            --set evaluate.every=50 --set checkpoint.every=50 --set name=$name
        printf -v "$name" '%s' "$(cat "$work/out")"
    done
    for run in "$one" "$two"; do
        expect 0 wait "$run"
        flock --timeout 20 "$runs/$run/supervisor.lock" true || fail "a supervisor stays"
    done
}
