#!/usr/bin/env bash
# Launches at the same moment: each is a separate, complete run with its own number of steps.
. "$(dirname "$0")/lib.sh"
make_tiny

pids=()
for i in 1 2 3; do
    "$dtrun" launch --wait --json "$work/tiny.yaml" --set "name=run$i" --set ranks=1 \
        --set "schedule.steps=$((30 + i))" >"$work/out$i" 2>"$work/err$i" </dev/null &
    pids+=($!)
done
for i in 1 2 3; do
    wait "${pids[$((i - 1))]}"
    code=$?
    cp "$work/out$i" "$work/out"
    cp "$work/err$i" "$work/err"
    subject="launch $i of three at once"
    [ $code -eq 0 ] || fail "exit code $code"
    json "o['steps'] == $((30 + i))" "o['name'] == 'run$i'" "o['state'] == 'finished'"
done
expect 0 list --json
json "len({r['run'] for r in o['runs']}) == 3"
expect 0 metrics run2 --name loss
[ "$(wc -l <"$work/out")" -eq 33 ] || fail "$(wc -l <"$work/out") lines, wanted 32 points"

# Two processes read one state folder while runs are written.
for i in 1 2 3 4; do
    "$dtrun" list --json >"$work/list$i" 2>&1 &
done
wait
for i in 1 2 3 4; do
    cmp -s "$work/list1" "$work/list$i" || fail "two lists differ"
done

# Without an id, two active runs are watched at once.
for i in 1 2; do
    expect 0 launch --detach "$work/tiny.yaml" --set "name=long$i" --set ranks=1 --set schedule.steps=1000000
done
LC_ALL=C.UTF-8 TERM=xterm python3 tests/cli/top.py "$dtrun" watched || fail "status --watch"
