#!/usr/bin/env bash
# On demand, some minutes: DTRUN_BIN=build/test/bin/emulated tests/gpu/loan_stages.sh
# Runs on_loan.sh on emulated cards, as on a borrowed machine: in a separate read-only folder with only the scripts and
# programs, without nvidia-smi, PyTorch and HOME, with Python and without. Stages end in time, leave few files, report
# what is missing, and continue after an interruption or a kill.
set -euo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the emulated folder of a build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf '%s\n' "FAILED: $*"; tail -n 40 "$work"/said "$work"/out*/log.txt 2> /dev/null; exit 1; }

loan=$work/loan
mkdir -p "$loan/tests/dist" "$loan/bin" "$work/path"
cp -r tests/gpu tests/bench "$loan/tests/"
cp tests/dist/lib.sh "$loan/tests/dist/"
cp -rL "$bin"/* "$loan/bin/"
printf '#!/bin/bash\nshift 6\nexec "$@"\n' > "$work/sanitizer" # the name of the real one
chmod +x "$work/sanitizer"
touch "$work/stamp"

# Everything that the stages need, except Python and nvidia-smi.
for tool in awk bash basename cat chmod cksum cmp cp cut date dirname du flock grep head ldconfig ldd ls mkdir \
    mktemp mv nproc printf rm sed setpriv sh sleep sort tail tee timeout touch tr uname; do
    path=$(command -v $tool) || path=/sbin/$tool
    [ ! -e "$path" ] || ln -s "$path" "$work/path/$tool"
done
mkdir "$work/python" # the interpreter itself: the one in PATH may be a shell script that searches further
printf '#!/bin/bash\nexec %q "$@"\n' "$(python3 -c 'import sys; print(sys.executable)')" > "$work/python/python3"
chmod +x "$work/python/python3"

# stage PATHS STAGE FOLDER [VARIABLE=VALUE...]: its exit code is in $code, its output in the file said. An installed
# cuDNN is not used with emulated cards. A call may take 3,000 s: steps have five times their limit here, and none
# starts with less than half of its own limit left.
stage() {
    code=0
    begin "$@" || true
    wait $pid || code=$?
}
begin() {
    env -i PATH="$1" LD_LIBRARY_PATH="$loan/bin" DTRUN_BIN="$loan/bin" DTRUN_LOAN_QUICK=1 \
        DTRUN_LOAN_SECONDS=3000 DTRUN_LOAN_KEEP="$3.keep" DTRUN_PYTHON=/nowhere/python DTRUN_CUDNN=/nowhere DTRUN_NCCL=/nowhere \
        DTRUN_SANITIZER="$work/sanitizer" "${@:4}" \
        "$(command -v bash)" "$loan/tests/gpu/on_loan.sh" "$2" "$3" > "$work/said" 2>&1 &
    pid=$!
}
has() { grep -q -- "$2" "$1" || fail "$1 has no '$2'"; }
few() { [ "$(find "$1" -type f | wc -l)" -le 8 ] || fail "too many files: $(ls "$1")"; }

# Without Python; first with a time limit of 0.
plain=$work/path
stage "$plain" check "$work/out" DTRUN_LOAN_SECONDS=1
[ $code = 75 ] || fail "without time: exit code $code"
has "$work/out/summary.md" '| cut |'
stage "$plain" check "$work/out"
[ $code = 0 ] || fail "check without Python: exit code $code"
few "$work/out"
has "$work/out/machine.txt" 'MISSING: torch'
has "$work/out/machine.txt" 'MISSING: Python'
has "$work/out/machine.txt" 'MISSING: nvidia-smi'
has "$work/out/summary.md" '| trust-bits | good |'
has "$work/out/summary.md" '| trust-models | good |'
has "$work/out/summary.md" '| first-speed | good |'
has "$work/out/log.txt" 'tokens/s'
stage "$plain" check "$work/out"
[ $code = 0 ] && [ "$(grep -c '^ops	good' "$work/out/steps.tsv")" = 1 ] || fail "what was done is done again"

# Killed in the middle of a step, and called again: the step is repeated and completed.
begin "$plain" xl "$work/killed"
for _ in $(seq 600); do
    grep -q '^xl	begun' "$work/killed.keep/steps.tsv" 2> /dev/null && break
    sleep 0.1
done
kill -9 $pid
wait $pid || true
stage "$plain" xl "$work/killed"
[ $code = 0 ] || fail "after it was killed: exit code $code"
[ "$(grep -c '^xl	begun' "$work/killed.keep/steps.tsv")" = 2 ] || fail "the step that was killed was not done again"

# With Python there are tables too. If no other folder is writable, finished steps are recorded in FOLDER itself.
for what in speed precision xl; do
    stage "$work/python:$plain" $what "$work/full" DTRUN_LOAN_KEEP=/proc/nowhere
    [ $code = 0 ] || fail "$what: exit code $code"
    few "$work/full"
done
has "$work/full/results.md" 'GPT-2 124M'
has "$work/full/results.md" '| matmul_gelu_forward |'
has "$work/full/summary.md" '| memcheck | good |'
[ -z "$(find "$loan" -newer "$work/stamp")" ] || fail "it writes where it was called: $(find "$loan" -newer "$work/stamp")"
stage "$plain" speed "$work/full/steps.tsv/no"
[ $code = 2 ] || fail "a folder that cannot be: exit code $code"
stage "$plain" sped "$work/full"
[ $code = 2 ] || fail "a stage that is none: exit code $code"

# Other programs start again; programs without a card, and incomplete ones, are reported.
stage "$plain" check "$work/out" DTRUN_TEST_DEVICE=cuda:7
[ $code = 77 ] || fail "no such card: exit code $code"
mkdir "$work/half"
cp "$bin/card_info" "$work/half/"
stage "$plain" check "$work/none" DTRUN_BIN="$work/half"
[ $code = 2 ] && has "$work/said" 'has no dtrun-engine' || fail "half of the programs: exit code $code"
echo "every stage ends, continues where it was, and says what is missing"
