#!/usr/bin/env bash
# Which rank of a `command` is named as the first cause: a rank that ended early, one that slept while others waited,
# one that hangs (failure.hang_seconds); and which line of its output is the reason.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=0.25 # a heartbeat every half second
cause() { # shell code for two processes, options... : the run ends with code 1
    printf '%s\n' "$1" >"$work/program.sh"
    expect 1 run --wait --processes 2 "${@:2}" -- sh "$work/program.sh"
}

# A rank ends with code 0 while others continue, which then fail because of it.
after='[ $RANK = 1 ] && exit 0; until grep -q "\"exited\"" "$DTRUN_NODE_DIR/journal.jsonl"; do sleep 0.1; done;'
cause "$after"'echo "RuntimeError: Connection closed by peer" >&2; exit 1'
says "rank 1 on localhost ended with code 0 at " \
    "Z, before the others; then rank 0 on localhost exited with code 1: RuntimeError: Connection closed by peer"
cause "$after"'echo "ValueError: of rank 0" >&2; exit 1'
says "rank 0 on localhost exited with code 1: ValueError: of rank 0"
lacks "before the others"

# A rank that sleeps, or is stopped, while another one times out; its stack, where Python's faulthandler is on.
cat >"$work/sleeps.py" <<'PY'
import faulthandler, os, sys, time
def forgotten():
    time.sleep(1000)
if os.environ['RANK'] == '1':
    faulthandler.enable()
    open(sys.argv[1], 'w').close()
    forgotten()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
time.sleep(5)
sys.exit('RuntimeError: Timed out waiting 5000ms for recv operation to complete')
PY
expect 0 run --detach --name sleeps --processes 2 -- python3 "$work/sleeps.py" "$work/asleep"
cause 'if [ $RANK = 1 ]; then echo $$ >"${0%/*}/pid"; kill -STOP $$; fi
    until grep -q "^State:.T" "/proc/$(cat "${0%/*}/pid")/status"; do sleep 0.1; done; sleep 2; echo "Timed out waiting for a peer" >&2; exit 1'
says "rank 1 on localhost was stopped by a signal" "while the others waited for it; then rank 0"

# All ranks sleep, or one is stopped: detected with failure.hang_seconds, which is off unless set.
cause '[ $RANK = 1 ] && kill -STOP $$; while :; do echo x; sleep 0.1; done' --set failure.hang_seconds=1
says "the program hangs (failure.hang_seconds is 1): rank 1 on localhost was stopped by a signal, for "
expect 0 run --detach --name hangs --processes 2 --set failure.hang_seconds=1 -- sleep 1000
expect 0 run --dry-run --json -- true
json "o['plan']['recipe']['failure']['hang_seconds'] == 0"

# Messages that Python prints at its exit are not the reason.
cat >"$work/warns.py" <<'PY'
import sys
class Late:
    def __del__(self): raise TypeError('of the end')
late = Late()
sys.stderr.write('cannot open dataset /data/x\n/lib/tracker.py:224: UserWarning: 1 leaked semaphore\n  warnings.warn(\n')
sys.exit(4)
PY
expect 1 run --wait -- python3 "$work/warns.py"
says "exited with code 4: cannot open dataset /data/x"

# Checks of the runs that were started above.
expect 1 wait sleeps
expect 0 show sleeps
says "rank 1 on localhost slept at File" "line 3 in forgotten, for " \
    "without processor time and output, while the others waited for it; then rank 0 on localhost exited with code 1: RuntimeError: Timed out waiting"
expect 1 wait hangs
expect 0 show hangs
says "the program hangs (failure.hang_seconds is 1): rank 0 on localhost slept" "while rank 1 on localhost slept"
