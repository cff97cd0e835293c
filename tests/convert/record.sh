#!/usr/bin/env bash
# `dtrun import --record` runs a script with stand-ins: the recipes have the exact words, other commands really run, no
# files remain, and it asks first.
set -uo pipefail
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache HOME=$work TMPDIR=$work/tmp
mkdir "$work/tmp" "$work/in" "$work/early"
cd "$work/in" || exit 1
failed=0
complain() { printf '%s\n' "$*"; failed=1; }
record() { # expected-code words...
    local wanted=$1 got=0
    shift
    timeout 120 "$dtrun" import --record --yes "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ $got -eq "$wanted" ] || complain "$*: exit code $got: $(cat "$work/err")"
    [ -z "$(ls "$work/tmp")" ] || complain "$*: left $(ls "$work/tmp")"
}
has() { local text; for text; do grep -qF -- "$text" "$work/out" || complain "no '$text' in $(cat "$work/out" "$work/err")"; done; }
says() { local text; for text; do grep -qF -- "$text" "$work/err" || complain "no '$text' in $(cat "$work/err")"; done; }

# Everything that the script reader refuses: loops, arrays, functions, substitutions, patterns, other shells, CRLF ends.
cat >all.sh <<'END'
set -e
args=(--lr 1e-4 --name "a  b" --glob *.bin)
[ -n "$1" ] && args+=(--first "$1")
launch() { nohup torchrun --nproc_per_node $((2 + 2)) train.py "${args[@]}" "$@" > log.txt 2>&1; }
export SEED=7
for seed in 1 2; do launch --seed $seed; done
python3 -c 'open("really", "w").write("1")'
mkdir -p sub && cd sub
python3 -u -m torch.distributed.run --nproc-per-node=2 t.py &
sh -c 'srun hostname'
END
touch a.bin b.bin
record 0 -- bash all.sh 'x y'
has "command: \"python train.py --lr 1e-4 --name 'a  b' --glob a.bin b.bin --first 'x y' --seed 1\"" \
    "--first 'x y' --seed 2\"" 'gpus: 4' 'gpus: 2' 'command: "python3 -u t.py"' "folder: $work/in/sub" 'SEED: "7"'
says "the script starts 3 trainings" "every other command of it really runs" "left out, it trains nothing: srun ... hostname"
[ "$(grep -c '^---$' "$work/out")" -eq 2 ] || complain "the recipes are not separated"
[ -f really ] || complain "the other commands did not run"
grep -q DTRUN_RECORD "$work/out" && complain "the stand-ins are in the recipe"

# A folder that the script puts first in PATH does not hide the stand-ins; its change of PATH is kept.
printf '#!/bin/sh\ntouch %s/started\n' "$work" >"$work/early/torchrun"
chmod +x "$work/early/torchrun"
record 0 -- bash -c "PATH=$work/early:\$PATH; torchrun --nproc_per_node 2 t.py"
[ ! -e "$work/started" ] || complain "a torchrun that is earlier in PATH was started"
has "PATH: \"$work/early:"
rm -f "$work/started"
record 2 -- bash -c "$work/early/torchrun t.py" # by its path the launcher really runs, as the question says
says "the script started none of the launchers, or by their paths"
[ -e "$work/started" ] || complain "a launcher with a path did not run"

# Several files; one that exists is kept.
record 0 -o two.yaml -- bash -c 'torchrun a.py; torchrun b.py'
[ -f two-1.yaml ] && [ -f two-2.yaml ] && [ ! -e two.yaml ] || complain "the files: $(ls)"
record 2 -o two.yaml -- bash -c 'torchrun a.py; torchrun b.py'
says "'two-1.yaml' already exists"

# Failures and refusals.
record 2 -- bash -c 'echo nothing'
says "the script started none of the launchers"
record 2 -- bash -c 'torchrun --token SECRET1234 --x t.py'
says "unknown flag of torchrun"
record 2 -- bash -c 'torchrun t.py --api_key abcdefgh1234'
says "looks like a secret"
grep -q abcdefgh1234 "$work/err" && complain "the secret is shown"
record 2 -- "$work/no-such-program"
says "no-such-program': No such file or directory"
record 2 -- bash -c 'torchrun t.py; kill -9 $$'
says "was ended by signal 9"
record 0 -- bash -c 'torchrun t.py; exit 3'
says "the script ended with code 3"
record 2 -- bash -c 'for i in $(seq 70); do torchrun t.py --seed $i; done'
says "more than 64 trainings"
record 0 -- bash -c "torchrun t.py $(printf -- '--x\t%.0s' $(seq 2000)) 'quo\"te' \$'a\\nb' 'c\$d'"
has '\x0ab'
code=0
"$dtrun" import --record -- bash -c 'touch asked' >"$work/out" 2>"$work/err" </dev/null || code=$?
[ $code -eq 2 ] && [ ! -e asked ] || complain "it ran without a question"
says "add --yes"
code=0
"$dtrun" import --record --as command -- true >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] || complain "--as with --record"
code=0
"$dtrun" import --yes csv x >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] || complain "--yes without --record"

# An interrupt ends the script, and leaves nothing.
"$dtrun" import --record --yes -- bash -c 'torchrun t.py; trap "" TERM; touch begun; sleep 6100.'$$ >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until [ -e begun ]; do sleep 0.05; done
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code -eq 2 ] || complain "after an interrupt: $code"
says "interrupted"
for _ in $(seq 600); do pgrep -f "sleep 6100.$$" >/dev/null || break; sleep 0.1; done
pgrep -f "sleep 6100.$$" >/dev/null && complain "the script still runs"
[ -z "$(ls "$work/tmp")" ] || complain "an interrupt left $(ls "$work/tmp")"
[ $failed -eq 0 ] && echo good
exit $failed
