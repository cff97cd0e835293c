#!/usr/bin/env bash
# Every command has a help text, and the page of the documentation has the same texts.
. "$(dirname "$0")/lib.sh"

expect 0 --help
says "Usage: dtrun COMMAND"
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
[ "$(wc -w <<<"$commands")" -ge 13 ] || fail "only $(wc -w <<<"$commands") commands are listed"
for command in $commands; do
    expect 0 help "$command"
    cp "$work/out" "$work/help"
    expect 0 "$command" --help
    cmp -s "$work/help" "$work/out" || fail "differs from dtrun help $command"
    says "Usage: dtrun $command" "--json" "--help"
    cp "$work/help" "$work/$command.txt"
    awk 'length > 88 { exit 1 }' "$work/out" || fail "a line is wider than 88 columns"
done
lacks "supervise"
python3 - docs/commands.md "$work" $commands <<'PY' || fail "docs/commands.md differs"
import sys
page, folder = open(sys.argv[1]).read(), sys.argv[2]
for name in sys.argv[3:]:
    assert f"\n## {name}\n\n```text\n{open(f'{folder}/{name}.txt').read()}```\n" in page, name
PY

# Manual pages fit in 80 columns: lines that are not filled are narrow enough.
subject="the manual pages"
if command -v groff >/dev/null; then
    mkdir "$work/man"
    for command in "" $commands; do
        "$dtrun" help --man $command >"$work/man/dtrun-$command.1" || fail "no page of '$command'"
    done
    groff -man -Tascii -P-c -rLL=78n "$work"/man/*.1 2>/dev/null | sed 's/.\x08//g' >"$work/out"
    [ "$(grep -c '^NAME$' "$work/out")" -eq $(($(wc -w <<<"$commands") + 1)) ] || fail "not one page a command"
    ! grep -E '^.{81}' "$work/out" >"$work/err" || fail "wider than 80 columns"
fi

expect 0 help --markdown
cmp -s "$work/out" docs/commands.md ||
    fail "docs/commands.md is old: dtrun help --markdown > docs/commands.md"
expect 0 help help --json
json "'Usage' in o['text']"

expect 0 --version
says "dtrun 0." "("
expect 0 --version --json
json "o['dtrun'][0].isdigit()" "len(o['commit']) >= 7"
