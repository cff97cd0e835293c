#!/usr/bin/env bash
# Lines divided among ranks, under faults: a rank, the supervisor or the agent is killed, the run is stopped and
# resumed, the disk is full, the output cannot be written. Finished parts are not made again; the file has the same
# bytes.
. "$(dirname "$0")/lib.sh"
make_tiny
expect 0 launch --wait --json "$work/tiny.yaml" --set ranks=1
run=$(field "o['run']")
python3 - >"$work/lines" <<'PY'
import random
random.seed(2)
words = "the quick brown fox jumps over a lazy dog and then it sleeps until the morning".split()
for i in range(120):
    print(" ".join(random.choice(words) for _ in range(random.randint(0, 4))))
PY
# Texts longer than the 16 tokens that the model sees, in small batches: lines are finished one after another for some
# seconds.
slow=(--input "$work/lines" --tokens 5000 --threads 1 --batch 4)
expect 0 generate "$run" "${slow[@]}" --output "$work/one"

begin() { # output
    expect 0 generate "$run" "${slow[@]}" --ranks 2 --output "$1" --detach
    task=$(cat "$work/out")
    folder=$work/state/dtrun/runs/$task
    within 60 step_reached "$task" 16
}
lines_taken() { # from all ranks, in all attempts
    cat "$folder"/logs/rank-*.log | sed -n 's/.*this rank processes \([0-9]*\) of 120 lines.*/\1/p' | paste -sd+ | bc
}
is_whole() { # output
    subject="run $task"
    cmp "$work/one" "$1" || fail "another file than one process writes: $(diff "$work/one" "$1" | head -n 4)"
    rm "$1"
}

begin "$work/killed"
"$dtrun" status "$task" --json >"$work/out"
kill -9 "$(field "o['nodes'][0]['ranks'][1]['pid']")"
expect 0 wait "$task"
is_whole "$work/killed"
taken=$(lines_taken)
[ "$taken" -gt 120 ] && [ "$taken" -lt 225 ] || fail "$taken lines were taken in two attempts"
expect 0 show "$task" --json
json "len(o['attempts']) == 2" "o['attempts'][1]['start_step'] >= 16" "o['state'] == 'finished'"

begin "$work/alone"
supervisor=$(pgrep -f "supervise $task")
kill -9 $supervisor
expect 0 wait "$task"
is_whole "$work/alone"
[ "$(lines_taken)" -eq 120 ] || fail "$(lines_taken) lines of 120 were taken"
expect 0 metrics "$task" --name lines_per_second
[ "$(cut -d, -f2 "$work/out" | sort | uniq -d | wc -l)" -eq 0 ] || fail "points are there twice"

begin "$work/agent"
agent=$(pgrep -f "dtrun-agent.*$task") || fail "no agent of run $task"
kill -9 $agent
expect 0 wait "$task"
is_whole "$work/agent"
[ "$(lines_taken)" -lt 225 ] || fail "$(lines_taken) lines were taken after the agent was killed"

begin "$work/stopped"
expect 0 stop "$task"
says "has stopped" "compute the missing lines with 'dtrun resume $task'"
[ ! -e "$work/stopped" ] || fail "a stopped run wrote a file"
expect 0 resume "$task" --wait --json
json "o['state'] == 'finished'" "o['step'] == 120" "o['attempt'] == 2"
is_whole "$work/stopped"
[ "$(lines_taken)" -lt 225 ] || fail "$(lines_taken) lines were taken in two attempts"
expect 2 resume "$task"

# Another file has appeared in place of the output: it stays, and so do the finished parts.
begin "$work/taken"
echo mine >"$work/taken"
expect 3 wait "$task"
[ "$(cat "$work/taken")" = mine ] || fail "the file of somebody else was replaced"
expect 0 status "$task"
says "was created after the run began"
rm "$work/taken"
expect 0 resume "$task" --wait
is_whole "$work/taken"
[ "$(lines_taken)" -eq 120 ] || fail "$(lines_taken) lines of 120 were taken"

# A full disk: parts wait, and nothing is lost.
mkdir "$work/small"
if ! mount -t tmpfs -o size=24m none "$work/small" 2>/dev/null; then
    echo "without a full disk: a file system of its own needs root"
    exit 0
fi
within 10 test ! -e "$folder/parts"
cp -r "$work/state" "$work/small/state"
XDG_STATE_HOME=$work/small/state
begin "$work/full"
folder=$work/small/state/dtrun/runs/$task
dd if=/dev/zero of="$work/small/filler" bs=64k 2>/dev/null
stands=$("$dtrun" status "$task" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["step"])')
sleep 8
rm "$work/small/filler"
expect 0 wait "$task"
is_whole "$work/full"
[ "$stands" -lt 120 ] || fail "the run had ended before the disk was full"
XDG_STATE_HOME=$work/state
