#!/usr/bin/env bash
# Where metrics of a `command` come from: odd JSON lines, dictionaries that Python prints, patterns without a step,
# tables, the state of transformers' Trainer, event files. Values that are left out are counted.
. "$(dirname "$0")/lib.sh"
points() { # name : "STEP,VALUE ..." of the newest run
    expect 0 metrics last --name "$1" --format csv
    cut -d, -f2,4 "$work/out" | tail -n +2 | tr '\n' ' ' | sed 's/ $//'
}
are() { # name, points
    local found
    found=$(points "$1")
    [ "$found" = "$2" ] || fail "points of $1: '$found', wanted '$2'"
}
program() { # options of dtrun run... : runs $work/program.py there
    (cd "$work" && "$dtrun" run --wait "$@" -- python3 program.py >"$work/out" 2>"$work/err") || fail "exit $? of $*"
}

# Lines of Python or a logger that are not exactly JSON.
cat >"$work/program.py" <<'PY'
print('\033[0;32m{"step": 1, "loss": 0.5}\033[0m')
print('{"step": 2, "loss": 0.4}{"step": 3, "loss": 0.3}, {"step": 4, "loss": 0.2}')
print('{"step": 5, "loss": 1e400, "big": 123456789012345678901234567890}')
print('{"step": 6, "loss": -Infinity, "name": "it\'s {\\"a\\"}"}')
print('{"step": 7, "loss": 1, "loss": 0.1}')
print('{"step": 8, "loss": true, "list": [1], "none": null}')
print('{"loss": 3, "epoch": 1}\n{"step": 1.5, "loss": 3}\n{"step": 9, "loss": 0.1')
print({'step': 10, 'loss': float('nan'), 'flag': True, 'text': "don't"})
print({'config': 'of a program', 'size': 3})
PY
program
are loss "1,0.5 2,0.4 3,0.3 4,0.2 5,nan 6,nan 7,0.1 10,nan"
are big "5,1.2345678901234568e+29"
expect 0 logs last
says "a line of metrics has no whole number 'step' and is left out: {\"loss\": 3, \"epoch\": 1}" \
    "metrics left out: 1 lines that are not valid JSON, 2 lines without a whole number 'step', 4 values that are not numbers"

# transformers' Trainer: a dictionary, then its progress bar is drawn again; other bars do not matter.
cat >"$work/program.py" <<'PY'
import fcntl, os, struct, sys, termios, time
def unread(fd):
    return struct.unpack('i', fcntl.ioctl(fd, termios.FIONREAD, b'1234'))[0]
def bar(text):
    sys.stderr.write('\r' + text); sys.stderr.flush()
def reader_waits(): # dtrun-agent sleeps: it has dealt with what it has read
    return open(f'/proc/{os.getppid()}/stat').read().rsplit(')', 1)[1].split()[0] == 'S'
def pause(): # until everything was read, as between steps that take time
    while unread(1) > 0 or unread(2) > 0 or not reader_waits(): time.sleep(0.001)
bar('Map: 100%|####| 40/40 [00:00<00:00]\n')
bar('  0%|    | 0/8 [00:00<?, ?it/s]')
bar('100%|####| 8/8 [00:00<00:00, 9it/s]\n') # an evaluation before the training
bar('  0%|    | 0/30 [00:00<?, ?it/s]')
for step in range(1, 31):
    if step % 7 == 0:
        bar(f' 10%|#   | {step}/30 [00:01<00:05, 4.5it/s]')
    if step % 10 == 0:
        pause()
        bar(' ' * 40 + '\r')
        print({'loss': str(step / 100), 'learning_rate': '5e-05', 'epoch': step / 10}, flush=True)
        bar(f' 10%|#   | {step}/30 [00:01<00:05, 4.5it/s]')
        pause()
        bar('  0%|    | 0/4 [00:00<?, ?it/s]')
        bar('100%|####| 4/4 [00:00<00:00]')
        pause()
        print({'eval_loss': step / 50, 'epoch': step / 10}, flush=True)
        bar(f' 10%|#   | {step}/30 [00:01<00:05, 4.5it/s]')
        pause()
print({'train_runtime': 3.5, 'train_loss': 0.9, 'epoch': 3.0}, flush=True)
PY
program
are loss "10,0.1 20,0.2 30,0.3"
are learning_rate "10,5e-05 20,5e-05 30,5e-05"
are valid_loss "10,0.2 20,0.4 30,0.6"
are train_runtime "30,3.5"
printf 'for i in range(3): print({"loss": 1 / (i + 1), "epoch": i})\n' >"$work/program.py" # without a progress bar
program
are loss "1,1 2,0.5 3,0.3333333333333333"

# A pattern without a step counts its lines, also those of a progress bar on stderr.
cat >"$work/program.py" <<'PY'
import sys
print('starting')
for i in range(3):
    print(f'loss={0.5 - i / 10:.1f}')
sys.stdout.flush()
for i in range(2):
    sys.stderr.write(f'\r{i}/2 loss=0.{i}')
PY
program --metrics 'loss=(?P<loss>[0-9.]+)'
are loss "1,0.5 2,0.4 3,0.3 4,0 5,0.1"
expect 0 run --dry-run --metrics 'loss=(?P<loss>[0-9.]+)' -- true
says 'metrics: {"pattern":"loss=(?P<loss>[0-9.]+)"}'
program --metrics none
expect 0 metrics last --format csv
[ "$(wc -l <"$work/out")" = 1 ] || fail "metrics although there are none"
expect 2 run --metrics jsno -- true
says "'jsno'" "json"

# Tables of Lightning: cells can be empty, and the whole file is rewritten when a column is added. The newest table
# counts.
mkdir -p "$work/logs/version_0"
printf 'step,train_loss\n1,9\n' >"$work/logs/version_0/metrics.csv"
cat >"$work/program.py" <<'PY'
import os, time
os.makedirs('logs/version_1', exist_ok=True)
def write(text):
    with open('logs/version_1/metrics.csv', 'w') as f: f.write(text)
    time.sleep(0.6)
write('epoch,step,train_loss\n0,1,0.5\n')
write('epoch,step,train_loss,val_loss\n0,1,0.5,\n0,2,0.4,\n0,2,,0.7\n')
write('epoch,step,train_loss,val_loss\n0,1,0.5,\n0,2,0.4,\n0,2,,0.7\n1,3,0.3,\n1,,0.2,\n')
PY
program --metrics none --set 'metrics.file=logs/version_*/metrics.csv'
are train_loss "1,0.5 2,0.4 3,0.3"
are loss "1,0.5 2,0.4 3,0.3"
are valid_loss "2,0.7"
expect 0 logs last
says "metrics left out: 1 lines without a whole number 'step'"

# The state that transformers' Trainer saves with each checkpoint.
cat >"$work/program.py" <<'PY'
import json, os, time
history = []
for step in (5, 10):
    history += [{'loss': step / 10, 'epoch': 1, 'step': step}, {'eval_loss': step / 5, 'step': step}]
    os.makedirs(f'saved/checkpoint-{step}')
    with open(f'saved/checkpoint-{step}/trainer_state.json', 'w') as f:
        json.dump({'log_history': history, 'global_step': step}, f)
    time.sleep(0.7)
PY
program --metrics none --set 'metrics.file=saved/checkpoint-*/trainer_state.json'
are loss "5,0.5 10,1"
are eval_loss "5,1 10,2"

# Event files of TensorBoard below the folder; files from before the run are not read.
expect 0 export last --to tensorboard "$work/board"
mkdir -p "$work/runs/old" && cp "$work"/board/*/*tfevents* "$work/runs/old" 2>/dev/null || cp "$work"/board/*tfevents* "$work/runs/old"
cat >"$work/program.py" <<'PY'
import glob, os, time
source = sorted(glob.glob('board/**/*tfevents*', recursive=True))[0]
text = open(source, 'rb').read()
os.makedirs('runs/new')
with open('runs/new/events.out.tfevents.1.host', 'wb') as f: # in two pieces, in the middle of a record
    f.write(text[:len(text) // 2]); f.flush(); time.sleep(0.7); f.write(text[len(text) // 2:])
PY
program --metrics tensorboard --set metrics.file=runs
are loss "5,0.5 10,1"
are eval_loss "5,1 10,2"
