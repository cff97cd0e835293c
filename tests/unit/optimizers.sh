#!/usr/bin/env bash
# Checks that an optimizer is a line of recipes/fields/optimizer_table.h and a file of its name in engine/optim, and
# that all other code uses the table. recipes/fields/optimizer_table.h says how to add one.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0
complain() { printf '%s\n' "$*"; failed=1; }

# Files that may name an optimizer: the default of the recipe, and of checkpoints that are older than the key; and the
# tables of other programs' names for optimizers.
known='fallback = "adamw"|get_string_or\(&out->optimizer|^runner/convert/'
list=$(grep -oE '^ +X\([A-Z0-9_]+, [a-z0-9_]+,' recipes/fields/optimizer_table.h | sed -E 's/.*X\(|,//g')
[ "$(wc -l <<<"$list")" -ge 4 ] || complain "recipes/fields/optimizer_table.h has no table that can be read"
while read -r kind name; do
    hits=$(grep -rnE "DT_OPTIMIZER_$kind\b|\"$name\"|dt_optimizer_$name\b" base recipes engine runner store web |
        grep -vE "^recipes/fields/optimizer_table\.h:|^engine/optim/$name\.c:|$known")
    [ -z "$hits" ] || complain "$name is named outside of its line and its file:"$'\n'"$hits"
    grep -q "dt_optimizer_$name = " "engine/optim/$name.c" || complain "engine/optim/$name.c has no dt_optimizer_$name"
    grep -qw "$name" docs/recipe.md || complain "docs/recipe.md does not name $name"
    grep -qiw "$name" docs/checkpoint.md || complain "docs/checkpoint.md does not say what the states of $name are"
done <<<"$list"
[ $failed -eq 0 ] && echo "an optimizer is a line and a file"
exit $failed
