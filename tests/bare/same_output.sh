#!/usr/bin/env bash
# same_output.sh PROGRAM: bare_PROGRAM, on what stands in for a library, says what library_PROGRAM
# says.
set -euo pipefail
bin=${DTRUN_BIN:?set DTRUN_BIN to the bin folder of a build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
inputs=()
[ "$1" = digests ] || inputs=(2 30000 tests/fuzz/corpus/*/*)
for on in library bare; do
    "$bin/${on}_$1" "${inputs[@]}" > "$work/$on"
done
[ -s "$work/library" ]
cmp "$work/library" "$work/bare" || {
    diff -a "$work/library" "$work/bare" | head -n 8 | cut -c 1-300
    exit 1
}
echo "$(wc -l < "$work/bare") lines of $1 are the same"
