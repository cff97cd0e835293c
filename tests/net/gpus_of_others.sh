#!/usr/bin/env bash
# Queues of two people on one host with GPUs: both start a run at the same moment, and one gets the GPUs. A program outside
# dtrun that uses a GPU is seen, named and waited for.
. "$(dirname "$0")/lib.sh"
hosts 1 apart
. tests/net/gpu_host.sh
gpu_host host1 2

# Two queues start at the same moment: one gets the GPUs, the other one waits until they are free.
soon=$(date -d '+3 seconds' +%Y-%m-%dT%H:%M:%S)
for user in alice bob; do wants 0 "" launch_as $user --detach --queue --not-before "$soon" --set name=race --set gpus=2; done
one_runs() {
    [ "$(state alice race) $(state bob race)" = "running waiting" ] && winner=alice loser=bob && return
    [ "$(state alice race) $(state bob race)" = "waiting running" ] && winner=bob loser=alice
}
await 30 one_runs
await 20 gives_reason $loser race " is used by $winner (run $(id_of $winner race), since "
wants 0 "" as $winner stop race
await 30 is_state $loser race running
wants 0 "" as $loser stop race

# A program outside dtrun: a run of the queue waits for it, and starts once it has ended.
program=$(ssh bob@host1 'sleep 100000 >/dev/null 2>&1 & echo $!')
smi host1 "1, $program, /usr/bin/sleep"
wants 0 "" launch_as alice --detach --queue --set name=after --set gpus=2
await 20 gives_reason alice after "GPU 1 of alice@host1 is used by pid $program (sleep, user bob)"
is "state of the run that waits" "$(state alice after)" waiting
on host1 kill "$program"
await 20 is_state alice after running
wants 0 "" as alice stop after
left=$(on host1 grep -c dtrun-gpu/ /proc/net/unix)
is "claims that are left" "$left" 0
