#!/usr/bin/env bash
# run.sh: runs many schedules on all cores, in parts of 50,000; prints the figures of each part and the seeds
# that broke a promise.
#   tests/sim/run.sh [COUNT] [BASE]     (100000, from seed 1000000; SIM: the program)
set -euo pipefail
cd "$(dirname "$0")/../.."
count=${1:-100000} base=${2:-1000000} part=50000
sim=${SIM:-build/test/bin/sim}
[ -x "$sim" ] || { echo "'$sim' is missing: run cmake --preset test && cmake --build --preset test --target sim" >&2; exit 2; }
broken=0
for ((from = base; from < base + count; from += part)); do
  left=$((base + count - from))
  "$sim" --base "$from" --count $((left < part ? left : part)) --jobs "$(nproc)" || broken=1
done
exit $broken
