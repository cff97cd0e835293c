#!/usr/bin/env bash
# The GPUs of a command: nvidia-smi runs as long as it, its lines about the run's GPU become points, and no process of it
# is left.
. "$(dirname "$0")/lib.sh"
export DTRUN_TEST_TIMES=system=0.1 # before the host: a point each second
hosts 1 apart
. tests/net/gpu_host.sh
gpu_host host1 2
names() { as alice metrics gpu --name system/ 2>/dev/null | cut -d, -f3 | grep gpu | sort -u; }
has() { names | grep -q gpu_temperature_c; }
smi_pids() { on host1 pgrep -f utilization.gpu; }
wants 0 "" launch_as alice --detach --set name=gpu --set gpus=1
await 30 has
is "the metrics" "$(names | tr '\n' ' ')" "$(printf 'system/gpu_%s_node_0_gpu_0 ' busy_percent power_watts temperature_c total_bytes used_bytes)"
is "a point" "$(as alice metrics gpu --name system/gpu_used_bytes_node_0_gpu_0 | sed -n 2p | cut -d, -f4)" 1073741824
smi_pids >/dev/null || fail "nvidia-smi does not run"
wants 0 "" as alice stop gpu
! smi_pids || fail "nvidia-smi is left"
