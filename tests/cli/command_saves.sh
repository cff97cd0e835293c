#!/usr/bin/env bash
# Checkpoints of a command's program: found when complete, listed, used by restarts and resumes.
. "$(dirname "$0")/lib.sh"
cp tests/cli/trainer.sh "$work/trainer.sh"
recipe() { # name and lines of a recipe
    printf '%s\n' "${@:2}" >"$work/$1.yaml"
}

# A restart continues from the newest complete checkpoint, not from one of an earlier run, and not from one that was
# incomplete when the program died. The history has each step once.
recipe saves 'command: ./trainer.sh saves 20 13' 'metrics: json' 'resume: --from {checkpoint}' \
    'checkpoints: {path: "ckpt/checkpoint-{step}", settle: 1}'
mkdir -p "$work/ckpt/checkpoint-50" && echo 50 >"$work/ckpt/checkpoint-50/step"
expect 0 launch --wait "$work/saves.yaml"
says "checkpoint-20"
lacks "generate"
expect 0 status --json last
json "o['state'] == 'finished'" "o['attempt'] == 2" "o['step'] == 20"
expect 0 logs last
says "from=none last=0" "from=$work/ckpt/checkpoint-10 last=10"
expect 0 checkpoints last --json
json "[c['step'] for c in o['checkpoints']] == [20, 15, 10, 5]" \
    "o['checkpoints'][0]['path'] == '$work/ckpt/checkpoint-20'" "o['checkpoints'][0]['bytes'] == 1003"
expect 0 metrics last --name loss --format csv
[ "$(tail -n +2 "$work/out" | cut -d, -f2 | tr '\n' ' ')" = "$(seq -s ' ' 20) " ] || fail "not each step once"
expect 0 gc checkpoints --keep 1 --yes
[ -e "$work/ckpt/checkpoint-5/step" ] || fail "gc removed a checkpoint of the program"

# A resume continues as a restart does, also with --from at an earlier step; a missing checkpoint is named.
rm -r "$work/ckpt"
expect 1 launch --wait "$work/saves.yaml" --set failure.max_restarts=0
says "exited with code 7"
expect 0 stop last
expect 0 resume last --wait --from 5
expect 0 logs last
says "from=$work/ckpt/checkpoint-5 last=5"
rm -r "$work/ckpt"
expect 1 launch --wait "$work/saves.yaml" --set failure.max_restarts=0
expect 2 resume last --from 7
says "has no checkpoint of step 7"
rm -r "$work/ckpt/checkpoint-10"
expect 1 resume last --wait
says "cannot continue from the checkpoint '$work/ckpt/checkpoint-10'" "on localhost"
expect 0 resume last --wait --from 5

# One file that is overwritten has the step of the metrics; a shell gets the resume words too; a program that ends at
# once after a resume is reported.
recipe single 'command: sh ./trainer.sh last' 'shell: true' 'metrics: json' 'checkpoints: {path: last.pt, settle: 0.1}' \
    'resume: "--from {checkpoint}"' 'failure: {max_restarts: 0}'
expect 1 launch --wait "$work/single.yaml"
expect 0 checkpoints last --json
json "len(o['checkpoints']) == 1" "o['checkpoints'][0]['step'] in (4, 5, 6)"
rm -r "$work/held"
expect 1 launch --wait "$work/single.yaml" --set checkpoints.path=held
expect 0 checkpoints last --json
json "len(o['checkpoints']) == 1" "o['checkpoints'][0]['step'] in (4, 5, 6)"
expect 1 launch --wait "$work/single.yaml"
expect 0 resume last --wait --set 'command=echo $DTRUN_RESUME_FROM'
says "without a new step"
expect 0 logs last
says "$work/last.pt --from $work/last.pt"

# The same error twice, each time at once and without a step in between, ends the run with this error.
recipe same 'command: sh -c "echo no such thing $$ >&2; exit 3"' 'failure: {max_restarts: 9}'
expect 1 launch --wait "$work/same.yaml"
says "no such thing" "not tried again: the attempt before had the same error at once too"
expect 0 status --json last
json "o['attempt'] == 2"

# A stop by another signal; a checkpoint that the program saves before it ends is complete.
recipe signalled 'command: ./trainer.sh signalled INT' 'stop_signal: INT' 'metrics: json' 'checkpoints: save?'
expect 0 launch --detach "$work/signalled.yaml"
has_step() { "$dtrun" status last | grep -q 'step 1'; }
within 60 has_step
expect 0 stop last
lacks "did not exit cleanly"
expect 0 status --json last
json "o['state'] == 'stopped'"
expect 0 checkpoints last
says "$work/saved"

# A checkpoint that was marked just before the program died is complete; one without a marker, or with files that are
# newer than its marker, is not.
recipe marked 'command: ./trainer.sh marked' 'metrics: json' 'checkpoints: {path: "ck-{step}", marker: done}' \
    'failure: {max_restarts: 0}'
expect 1 launch --wait "$work/marked.yaml"
expect 0 checkpoints last --json
json "[c['step'] for c in o['checkpoints']] == [1]"

# The error of a failed program is the one that counts.
printf '%s\n' "raise ValueError('as asked')" >"$work/raise.py"
recipe broken 'command: python3 raise.py'
expect 1 launch --wait "$work/broken.yaml"
says "exited with code 1: ValueError: as asked"
