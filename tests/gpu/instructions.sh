#!/usr/bin/env bash
# The attention kernels of libdtrun-cuda.so have no more instructions a tile than instructions.txt allows.
set -euo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
[ -e "$bin/libdtrun-cuda.so" ] || { echo "skipped: the GPU part is not built"; exit 77; }
for one in ${DTRUN_CUOBJDUMP:-} cuobjdump /usr/local/cuda*/bin/cuobjdump build/cuobjdump/nvidia/*/bin/cuobjdump \
    /usr/local/lib/python3*/*-packages/nvidia/*/bin/cuobjdump; do
    found=$(command -v "$one") && break
done
[ -n "$found" ] || { echo "skipped: cuobjdump is not installed (base/packages.sh long brings it, or DTRUN_CUOBJDUMP names it)"; exit 77; }
PATH=$(dirname "$found"):$PATH # it runs nvdisasm from the same folder
python3 tests/gpu/instructions.py "$found" "$bin/libdtrun-cuda.so" --most tests/gpu/instructions.txt
