#!/usr/bin/env bash
# Every recipe of wrong/ gives exactly the text next to it: dtrun's stderr, and its exit code. The first line of a
# recipe can have the command: "# dtrun validate --strict".
#   wrong.sh            shows the differences
#   wrong.sh --update   rewrites the texts; read them before you commit them
set -uo pipefail
cd "$(dirname "$0")/wrong"
: "${DTRUN_BIN:?the folder of the programs, as in DTRUN_BIN=build/dev/bin}"
dtrun=$(cd ../../.. && realpath "$DTRUN_BIN")/dtrun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
unset LAYER NAMES STEPS DATA # variables of the environment that the recipes use
failed=0 count=0

# Files that the recipes name; all other errors concern the recipe.
cp -- *.yaml "$work"
for i in $(seq 4000); do echo "line $i of a text"; done >"$work/corpus.txt"
cp "$work/corpus.txt" "$work/valid.txt"
cp "$work/corpus.txt" "$work/lines.jsonl"

for recipe in *.yaml; do
    case $recipe in layer_*) continue ;; esac # parts of other recipes
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
