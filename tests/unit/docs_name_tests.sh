#!/usr/bin/env bash
# Checks that every test that a page names in backquotes is one that ctest runs, so that no promise lacks its test.
#   docs_name_tests.sh BUILD_FOLDER
set -uo pipefail
cd "$(dirname "$0")/../.."
labels='browser|cli|dist|fault|fetch|fuzz|gpu|install|net|ops|sim|slurm|unit'
known=$(ctest --test-dir "$1" -N | sed -nE 's/^ *Test +#[0-9]+: //p')
[ -n "$known" ] || { echo "ctest lists no test of $1"; exit 1; }
named=$(grep -hoE "\`($labels)\.[a-z][a-z0-9_]*\`" README.md docs/*.md docs/notes/*.md tests/README.md | tr -d '`' |
    grep -vE '\.(sh|py|md|cmake|json)$' | sort -u)
missing=$(comm -13 <(sort -u <<<"$known") - <<<"$named")
[ -z "$missing" ] || { echo "named in a page, and no test:"; echo "$missing"; exit 1; }
echo "$(wc -l <<<"$named") tests are named in pages, and there"
