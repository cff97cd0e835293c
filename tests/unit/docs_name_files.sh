#!/usr/bin/env bash
# docs_name_files: every path that docs/architecture.md, docs/adding-a-model.md and README.md name exists. NAME stands
# for any; words with a $ are left out.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
seen=0
for page in docs/architecture.md docs/adding-a-model.md README.md; do
    while read -r path; do
        seen=$((seen + 1))
        compgen -G "${path//NAME/*}" >/dev/null || { echo "$page names $path, which is not there"; failed=1; }
    done < <(sed 's/[^ ]*\$[^ ]*//g' "$page" | grep -oE '(^|[^A-Za-z0-9_./-])(base|recipes|engine|store|web|runner|tests|packaging|cmake|docs)/[A-Za-z0-9_./-]*' |
        sed -E 's/^[^a-z]//; s/[.]$//' | sort -u)
done
[ $seen -ge 40 ] || { echo "only $seen paths were found: the pages are not read"; failed=1; }
[ $failed -eq 0 ] && echo "$seen paths are there"
exit $failed
