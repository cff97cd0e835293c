#!/usr/bin/env bash
# Every recipe of wrong/ gives exactly the text beside it: what dtrun says on stderr, and its exit
# code. The first line of a recipe may say how it is called: "# dtrun validate --strict".
#   wrong.sh            shows the difference where there is one
#   wrong.sh --update   writes what is said now; read it before it is committed
set -uo pipefail
cd "$(dirname "$0")/wrong"
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(cd ../../.. && realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
unset LAYER NAMES STEPS DATA # what recipes here take from the environment
failed=0 count=0

# What recipes here name; all else is about the recipe.
cp -- *.yaml "$work"
for i in $(seq 4000); do echo "line $i of a text"; done >"$work/corpus.txt"
cp "$work/corpus.txt" "$work/valid.txt"
cp "$work/corpus.txt" "$work/lines.jsonl"

for recipe in *.yaml; do
    case $recipe in layer_*) continue ;; esac # parts of others
    count=$((count + 1))
    read -r -a call <<<"$(sed -n '1s/^# dtrun //p' "$recipe")"
    [ ${#call[@]} -gt 0 ] || call=(validate)
    (cd "$work" && "$dtrun" "${call[@]}" "$recipe" 2>&1 >/dev/null </dev/null
        echo "exit code $?") | sed "s|$work/||g" >"$work/said"
    wanted=${recipe%.yaml}.txt
    if [ "${1:-}" = --update ]; then
        cp "$work/said" "$wanted"
    elif ! diff -u --label "$wanted" --label said "$wanted" "$work/said"; then
        failed=1
    fi
done
[ $count -ge 60 ] || { echo "only $count recipes"; failed=1; }
[ $failed -eq 0 ] && echo "good: $count recipes"
exit $failed
