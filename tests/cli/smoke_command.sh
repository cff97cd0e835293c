#!/usr/bin/env bash
# dtrun smoke of recipes with a command: a correct program passes, a program that breaks a promise fails the check for
# it, and checks that cannot be made are skipped with the reason. The user's folder does not change.
. "$(dirname "$0")/lib.sh" || exit 1
export TMPDIR=${work:?}/tmp
mkdir "$TMPDIR" "$work/project"
cat >"$work/project/train.py" <<'PY'
import json, os, pathlib, signal, socket, sys, time
def meet(): # returns once both ranks are here
    address = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
    if os.environ['RANK'] == '0':
        with socket.create_server(address) as server:
            return server.accept()
    while True:
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.01)
steps, broken = int(sys.argv[1]), sys.argv[2]
resume = sys.argv[4] if len(sys.argv) > 4 else ''
step = 0
if resume and broken != 'resume':
    step = int(pathlib.Path(resume).read_text())
if broken == 'start':
    raise ValueError('as asked')
if broken == 'stop':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    meet() # rank 0 prints no step, so nothing is stopped, before both ranks ignore the signal
if broken == 'again' and resume:
    raise ValueError('not again')
pathlib.Path('wrote').write_text('here')
if broken == 'short' and os.environ['RANK'] != '0':
    sys.exit() # before rank 0, whose last checkpoint is complete once it has ended
while step < steps:
    step += 1
    time.sleep(0.05)
    if os.environ['RANK'] != '0':
        continue
    if broken != 'metric':
        print(json.dumps({'step': step, 'loss': 1 / step}))
    if broken != 'save' and step % 5 == 0:
        os.makedirs('out', exist_ok=True)
        pathlib.Path(f'out/new').write_text(str(step))
        os.replace('out/new', f'out/ckpt-{step}')
PY
mkdir "$work/project/out"
echo 9999 >"$work/project/out/ckpt-9999" # the user's checkpoints are neither resumed from nor changed
cat >"$work/project/good.yaml" <<'YAML'
command: python3 train.py {args.steps} {args.broken}
args: {steps: 100000, broken: nothing}
nodes: "nowhere[01-02]"
processes: gpu
metrics: json
checkpoints: {path: "out/ckpt-{step}", settle: 0.1}
resume: --resume {checkpoint}
grace_seconds: 20
collect: [out/]
YAML
verdicts() { # check=verdict...
    local wanted
    wanted=$(printf "'%s'," "$@")
    json "{$wanted} <= {c['check'] + '=' + c['verdict'] for c in o['recipes'][0]['checks']}"
}
nothing_left() { [ -z "$(ls -A "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"; }
unchanged() {
    [ "$(cd "$work/project" && find . | sort | tr '\n' ' ')" = ". ./good.yaml ./out ./out/ckpt-9999 ./train.py " ] ||
        fail "the folder of the user changed: $(find "$work/project")"
}

expect 0 smoke --json "$work/project/good.yaml" --kill rank=1@3
verdicts starts=good measures=good saves=good resumes=good stops=good 'kill rank=1@3=skipped'
json "[c['check'] for c in o['recipes'][0]['checks']][:5] == ['starts', 'measures', 'saves', 'resumes', 'stops']" \
    "all(c['figure'] and c['promise'] for c in o['recipes'][0]['checks'])"
says "2 processes, running after" "loss" "rank 1 killed, continued from step" "no process left"
nothing_left
unchanged
[ ! -e "$work/state/dtrun/runs" ] || fail "it wrote into the user's own history"

# Each program breaks the promise of one check. All are tried at once.
start() { # name options...
    mkdir "$TMPDIR/$1"
    TMPDIR=$TMPDIR/$1 "$dtrun" smoke --json "$work/project/good.yaml" "${@:2}" >"$work/$1.out" 2>"$work/$1.err" </dev/null
    echo $? >"$work/$1.code"
}
failed() { # name expected verdicts...
    cp "$work/$1.out" "$work/out"
    cp "$work/$1.err" "$work/err"
    subject="smoke of the program that is broken at '$1'"
    [ "$(cat "$work/$1.code")" = 1 ] || fail "exit code $(cat "$work/$1.code"), wanted 1"
    verdicts "${@:2}"
}
start begin --set args.broken=start &
start absent --set 'command=./absent {args.steps} {args.broken}' &
start metric --set args.broken=metric --set args.steps=20 --set failure.max_restarts=0 &
start save --set args.broken=save --set args.steps=20 &
start resume --set args.broken=resume &
start again --set args.broken=again &
start stop --set args.broken=stop --set grace_seconds=0.5 &
wait
failed begin starts=failed measures=skipped stops=skipped
says "ValueError: as asked"
failed absent starts=failed
says "absent"
failed metric starts=good measures=failed saves=good resumes=skipped
failed save measures=good saves=failed resumes=skipped
failed resume resumes=failed stops=good
says "did not continue from the checkpoint of step"
failed again resumes=failed
says "not again"
failed stop starts=good resumes=good stops=failed
says "2 of 2 ranks did not end by themselves within 0.5 s and were killed"
[ "$(ls -d "$TMPDIR"/*/dtrun-smoke.* | wc -l)" = 7 ] || fail "the folders were not kept: $(ls "$TMPDIR"/*)"
rm -rf "${work:?}/tmp"/*
unchanged

# A program that ends at once, and a recipe that promises nothing: checks that cannot be made are skipped.
expect 0 smoke "$work/project/good.yaml" --set args.broken=short --set args.steps=5 \
    --set checkpoints.settle=9
says "skipped resumes" "the program ended" # before the kill, or on a slow machine after the restart
printf 'command: "true"\n' >"$work/project/plain.yaml"
expect 0 smoke --here "$work/project/plain.yaml"
says "1 process, finished" "has no 'metrics'" "has no 'checkpoints'" "restarts are off"
nothing_left
expect 2 smoke --here "$work/project/plain.yaml" --set workdir.ship=never
says "workdir.ship: never"
truncate -s 2000000 "$work/project/large" && shred -n 1 -s 2000000 "$work/project/large"
expect 1 smoke "$work/project/plain.yaml" --set workdir.max_mb=1
says "workdir.max_mb" "'large'"
rm -rf "${work:?}/tmp"/*
