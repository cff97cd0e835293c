#!/usr/bin/env bash
# `stop` ends the job, running or pending; scancel ends the run, and is reported; a killed supervisor costs nothing.
. "$(dirname "$0")/lib.sh"
cluster 2
recipe <<END
schedule: {kind: cosine, steps: 1000000}
checkpoint: {every: 100000, keep: 2}
grace_seconds: 20
END
long() { wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set "name=$1" "${@:2}"; }
id() { value "$1" "o['run']"; }

# stop: a checkpoint, the job has ended, no process is left.
long one
await 60 past one 5
job=$(job_of "$(id one)")
wants 0 "stopped" "$dtrun" stop one
await 60 has_ended "$job"
[ "$(value one "o['state']")" = stopped ] || fail "stop: $(value one o)"
grep -q '"step"' <<<"$("$dtrun" checkpoints one --json)" || fail "a stopped run has no checkpoint"

# The supervisor is killed: steps continue, the next command starts another one, and agents were never lost.
long two
await 60 past two 5
job=$(job_of "$(id two)")
pid=$(pgrep -f "supervise $(id two)")
kill -9 $pid
# Its connections were steps, and end; an agent has its own step, or it would end with them. This asks Slurm directly,
# because commands of dtrun would start the next supervisor.
steps() { squeue --noheader --steps --jobs="$job" --format=%i | grep -vc batch || true; }
only_agents() { [ "$(steps)" -le "$nodes" ]; }
await 60 only_agents
sleep 4
[ "$(steps)" = "$nodes" ] || fail "steps without a supervisor: $(steps), expected one for each of $nodes agents"
step=$(value two "o['step']")
"$dtrun" metrics two --name loss >/dev/null
wants 0 "" timeout 30 "$dtrun" logs two
(timeout 8 "$dtrun" status two --watch >/dev/null 2>&1) || true
await 60 past two "$((step + 5))"
[ "$(value two "o['attempt']")" = 1 ] || fail "the supervisor's death cost an attempt: $(value two "o['reason']")"

# scancel: reported as such, and no other attempt follows.
scancel "$job"
await 60 is two failed
grep -q "Slurm job $job was cancelled" <<<"$(value two "o['reason']")" || fail "scancel: $(value two "o['reason']")"
[ "$(value two "o['exit_code']" 2>/dev/null || echo 3)" = 3 ] || fail "scancel: code $(value two "o['exit_code']")"

wants 0 "" "$dtrun" stop two # processes that Slurm has ended do not count as left over

# Pending: status and a following command show the reason; stop removes the job from the queue.
long three --set 'slurm.options=[--begin=now+1hour]'
says() { grep -q "$2" <<<"$("$dtrun" status "$1")"; }
await 60 says three BeginTime
"$dtrun" launch "$net/launch/r.yaml" --set name=followed --set 'slurm.options=[--hold]' >"$net/follower" 2>&1 &
follower=$!
await 60 grep -q "Slurm job .* waits: .*JobHeldUser" "$net/follower"
kill $follower # the run continues
wait $follower
for run in three followed; do
    job=$(job_of "$(id $run)")
    [ "$(state_of "$job")" = PENDING ] || fail "the job waits as $(state_of "$job")"
    wants 0 "stopped" "$dtrun" stop $run
    await 60 has_ended "$job"
done

# Cancelled while it is pending.
long four --set 'slurm.options=[--hold]'
await 60 says four JobHeldUser
scancel "$(job_of "$(id four)")"
await 60 is four failed
grep -q "was cancelled (scancel)" <<<"$(value four "o['reason']")" || fail "cancelled while it waits: $(value four "o['reason']")"
