#!/usr/bin/env bash
# Two people with state folders of their own, and accounts of their own on one host with GPUs: a GPU that a run of one has
# is refused to the other, who is told whose it is, until the last process on it has ended, also if the agent was killed;
# a run of the queue waits for it. Runs of one person may share a GPU, and its claim.
. "$(dirname "$0")/lib.sh"
hosts 1 apart
. tests/net/gpu_host.sh
gpu_host host1 2

wants 0 "" launch_as alice --detach --set name=first
await 20 is_state alice first running
wants 3 "GPU 0 of bob@host1 is used by alice (run $(id_of alice first), since " launch_as bob --wait --set name=no
wants 0 "" launch_as bob --detach --queue --set name=both --set gpus=2
await 20 gives_reason bob both "GPU 0 of bob@host1 is used by alice (run $(id_of alice first), since "

# A second run of the same person shares the GPU, and its claim; then only the second one has it.
wants 0 "" launch_as alice --detach --set name=second
await 20 is_state alice second running
wants 0 "" as alice stop first
wants 3 "used by alice (run $(id_of alice second), since " launch_as bob --wait --set name=no

# Its agent is killed, and nobody ends what that leaves: the GPU is still in use, and by whom the kernel knows.
supervisor=$(pgrep -f "^[^ ]*dtrun supervise $(id_of alice second)\$")
kill -STOP "$supervisor"
on host1 pkill -9 -u alice -f 'dtrun-agent serve'
await 20 gives_reason bob both "GPU 0 of bob@host1 is used by alice (a claim of pid "
is "state of the run that waits" "$(state bob both)" waiting
kill -CONT "$supervisor"
await 30 is_state bob both running
wants 0 "" as bob stop both
