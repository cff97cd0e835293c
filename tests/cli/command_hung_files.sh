#!/usr/bin/env bash
# A file system that hangs where a program saves its checkpoints delays neither its metrics nor its stop; a run that waits
# for it before its start can be stopped too. The file system is one of FUSE whose server never answers.
. "$(dirname "$0")/lib.sh"
mkdir "$work/small" "$work/project"
cat >"$work/hang.py" <<'PY'
import ctypes, os, sys, time
parent = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)
try:
    server = os.open('/dev/fuse', os.O_RDWR)
except OSError:
    sys.exit(77)
options = f'fd={server},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'hang', sys.argv[1].encode(), b'fuse', 0, options) != 0:
    sys.exit(77)
print('hangs', flush=True)
while os.getppid() == parent: # else the test was killed
    time.sleep(0.2)
PY
hang() { # sets server
    exec 6< <(exec python3 "$work/hang.py" "$work/small")
    server=$!
    read -r -u 6 _ || { echo "skipped: no file system of FUSE can be mounted" >&2; exit 77; }
}
let_go() {
    kill "$server"
    umount -l "$work/small"
}
for step in $(seq 3000); do
    printf 'echo "{\\"step\\": %d, \\"loss\\": 1}"; sleep 0.1\n' "$step"
done >"$work/project/program.sh"
cat >"$work/project/hung.yaml" <<END
command: sh program.sh
processes: 1
metrics: json
grace_seconds: 1
checkpoints: {path: "$work/small/save-{step}", settle: 0.2}
END
step() { "$dtrun" show hung --json | python3 -c 'import json, sys; print(json.load(sys.stdin).get("step") or 0)'; }
past() { [ "$(step)" -gt "$1" ]; }

expect 0 launch --detach "$work/project/hung.yaml"
within 60 past 3 || fail "the program makes no step"
hang
sleep 1 # a look at the files has begun
now=$(step)
within 60 past $((now + 5)) || fail "no metrics while the file system hangs"
# A second run waits for the file system before its start. Both stop at once: a second of grace, ten for the look.
expect 0 launch --detach "$work/project/hung.yaml" --set name=waits
sleep 2
begun=$SECONDS
"$dtrun" stop waits >"$work/waits.out" 2>&1 </dev/null &
expect 0 stop hung
says "none of its processes are left"
wait $! || fail "the stop before the start ended with $?"
cp "$work/waits.out" "$work/out"
says "none of its processes are left"
[ $((SECONDS - begun)) -lt 120 ] || fail "the stops took $((SECONDS - begun)) s"
let_go
