#!/usr/bin/env bash
# The program of the museum's runs of a command: counter.sh FOLDER [CHECKPOINT] counts to 20 in FOLDER, one step and its
# loss a line, with a checkpoint every 5 steps.
set -eu
step=0
[ $# -lt 2 ] || step=$(cat "$2/step")
while [ "$step" -lt 20 ]; do
    step=$((step + 1))
    echo "step $step loss $((40 - step)).5"
    if [ $((step % 5)) -eq 0 ]; then
        mkdir -p "$1/step-$step"
        echo "$step" >"$1/step-$step/step"
        touch "$1/step-$step/complete"
    fi
    sleep 0.1
done
