#!/usr/bin/env bash
# sanitize.sh memcheck|racecheck|initcheck|synccheck [PATTERN]: every op of the op tests under NVIDIA's
# compute-sanitizer, or those whose names match the pattern ('attention*').
set -uo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
tool=${1:?memcheck, racecheck, initcheck or synccheck}
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -n 1)
[ -n "$sanitizer" ] || { echo "skipped: compute-sanitizer is not installed (the CUDA toolkit has it)"; exit 77; }
"$bin/card_info" "${DTRUN_TEST_DEVICE:-cuda:0}" || exit $?
exec "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 "$bin/test_ops_on_card" ${2:+"$2"}
