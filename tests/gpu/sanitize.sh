#!/usr/bin/env bash
# sanitize.sh memcheck|racecheck|initcheck|synccheck [PATTERN...]: runs op tests under NVIDIA's compute-sanitizer: those
# whose names match ('attention_in_*'), one process a pattern. Without a pattern, those of dtrun's kernels in bf16, the
# riskiest first, until DTRUN_SANITIZE_SECONDS (270) are over.
set -uo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
tool=${1:?memcheck, racecheck, initcheck or synccheck}
shift
sanitizer=${DTRUN_SANITIZER:-$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2> /dev/null | tail -n 1)}
[ -n "$sanitizer" ] || { echo "skipped: compute-sanitizer is not installed (the CUDA toolkit has it)"; exit 77; }
"$bin/card_info" "${DTRUN_TEST_DEVICE:-cuda:0}" || exit $?
[ $# -gt 0 ] || set -- attention_in_bf16\* layernorm_in_bf16\* cross_entropy_in_bf16\* embedding_in_bf16\* \
    matmul_bias_in_bf16\* matmul_gelu_in_bf16\* adamw_in_bf16\* sums_in_\* gelu_tanh_in_bf16\* \
    attention_with_dropout_in_bf16\* attention_of_views_in_bf16\* attention_in_fp32\* dropout_in_bf16\*
seconds=${DTRUN_SANITIZE_SECONDS:-270} bad=0
export DTRUN_ATTENTION=mma
for pattern; do
    left=$((seconds - SECONDS))
    if [ "$left" -lt 10 ]; then
        echo "$tool, $pattern: not reached within $seconds s"
        continue
    fi
    timeout -k 5 "$left" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 \
        "$bin/test_ops_on_card" "$pattern"
    code=$?
    case $code in
        0) echo "$tool, $pattern: good, at $SECONDS s" ;;
        124 | 137) echo "$tool, $pattern: cut off at $seconds s" ;;
        *) echo "$tool, $pattern: exit code $code"; bad=1 ;;
    esac
done
exit $bad
