#!/usr/bin/env bash
# links: relative links of the documentation lead to files that exist, in the source tree and as installed. package.sh
# checks the .deb.
. "$(dirname "$0")/../cli/lib.sh"
subject="the source tree"
mapfile -t pages < <(git ls-files '*.md')
python3 tests/install/links.py . "${pages[@]}" >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"

subject="an installation"
cmake --install "$(dirname "$(realpath "$DTRUN_BIN")")" --prefix "$work/prefix" >"$work/installed" 2>&1 ||
    fail "cmake --install: $(tail -n 3 "$work/installed")"
docs=$work/prefix/share/doc/dtrun
python3 tests/install/links.py "$docs" >"$work/out" 2>"$work/err" || fail "$(cat "$work/out" "$work/err")"

subject="a dead link"
printf '[a](recipe.md#no-such-heading) [b](none.md) [c](../../../../bin/dtrun) [d](recipe.md) `[e](none)` [f](https://example.org)\n' \
    >"$docs/docs/dead.md"
! python3 tests/install/links.py "$docs" >"$work/out" 2>"$work/err" || fail "none is found"
says "docs/dead.md: link 'recipe.md#no-such-heading': the target has no such heading" \
    "docs/dead.md: link 'none.md': the target does not exist" "docs/dead.md: link '../../../../bin/dtrun': the target is outside"
[ "$(wc -l <"$work/out")" = 3 ] || fail "$(<"$work/out")"
