#!/usr/bin/env bash
# The same program on processors with fewer instructions than this one. Limited to x86-64 and to AVX2, with its own
# kernels (DTRUN_CPU_ISA) and oneDNN's (ONEDNN_MAX_CPU_ISA), it trains to the golden curves. On an emulated processor
# with only x86-64, where any other instruction would end it, it makes the same choice itself; also on one that lacks a
# part of AVX2's companions.
. "$(dirname "$0")/lib.sh"
make_text 12
export DTRUN_CPU_ISA ONEDNN_MAX_CPU_ISA
plan plain schedule.steps=3

for pair in x86-64:SSE41 avx2:AVX2; do
    DTRUN_CPU_ISA=${pair%:*} ONEDNN_MAX_CPU_ISA=${pair#*:}
    if ! ranks 1 plain; then
        grep -q "this processor cannot run '$DTRUN_CPU_ISA'" "$work/plain.0.err" || fail "$pair"
        echo "$DTRUN_CPU_ISA: not on this processor"
        continue
    fi
    [ "$DTRUN_CPU_ISA" != x86-64 ] || cp "$work/plain.0" "$work/held.0"
    echo "held to $DTRUN_CPU_ISA:"
    bash tests/dist/golden_losses.sh || fail "held to $DTRUN_CPU_ISA the curves are others"
done
unset DTRUN_CPU_ISA ONEDNN_MAX_CPU_ISA

emulator=$(command -v qemu-x86_64) || {
    echo "no qemu-x86_64: not run on a plain processor"
    exit 0
}
if grep -qE 'lib(a|t)san' <<<"$(ldd "$bin/dtrun-engine")"; then
    echo "built for a sanitizer, whose shadow memory the emulator cannot give: not run on a plain processor"
    exit 0
fi
"$emulator" -cpu qemu64 "$bin/dtrun-engine" train --plan "$work/plain.json" > "$work/plain.0" \
    2> "$work/plain.0.err" || fail "on a plain processor: exit $?"
same_metric loss held plain 1e-6 # oneDNN has fewer instructions there than when it is limited to SSE 4.1

# AVX2 alone is not enough for the code compiled for it: it converts halves with F16C.
plan half schedule.steps=3 precision.kind=fp16
"$emulator" -cpu Haswell,-f16c "$bin/dtrun-engine" train --plan "$work/half.json" > "$work/half.0" \
    2> "$work/half.0.err" || fail "on a processor without F16C: exit $?"
