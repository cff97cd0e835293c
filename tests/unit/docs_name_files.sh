#!/usr/bin/env bash
# Every path of the tree that docs/architecture.md and README.md name is there. NAME stands for any.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
seen=0
for page in docs/architecture.md README.md; do
    while read -r path; do
        seen=$((seen + 1))
        compgen -G "${path//NAME/*}" >/dev/null || { echo "$page names $path, which is not there"; failed=1; }
    done < <(grep -oE '(^|[^A-Za-z0-9_./-])(base|recipes|engine|store|web|runner|tests|packaging|cmake|docs)/[A-Za-z0-9_./-]*' "$page" |
        sed -E 's/^[^a-z]//; s/[.]$//' | sort -u)
done
[ $seen -ge 40 ] || { echo "only $seen paths were found: the pages are not read"; failed=1; }
[ $failed -eq 0 ] && echo "$seen paths are there"
exit $failed
