#!/usr/bin/env bash
# The files that `cmake --install` puts into a prefix work from there, with only PATH set: a tiny run, manual pages that
# parse, valid units.
. "$(dirname "$0")/../cli/lib.sh"
prefix=$work/prefix
cmake --install "$(dirname "$DTRUN_BIN")" --prefix "$prefix" >"$work/installed" 2>&1 ||
    fail "cmake --install: $(tail -n 5 "$work/installed")"

# Nothing of the build tree is needed: the programs are found from another folder, through a link too.
make_tiny
mkdir "$work/links"
ln -s "$prefix/bin/dtrun" "$work/links/dtrun"
dtrun=$prefix/bin/dtrun
(cd "$work" && env -i HOME="$work" PATH="$work/links:/usr/bin:/bin" XDG_STATE_HOME="$XDG_STATE_HOME" \
    XDG_CACHE_HOME="$XDG_CACHE_HOME" dtrun launch --wait --json tiny.yaml) >"$work/out" 2>"$work/err" ||
    fail "launch: exit $?"
subject="the run of an installed dtrun"
json "o['state'] == 'finished'" "o['steps'] == 60"
id=$(field "o['run']")
expect 0 generate last --prompt "the " --tokens 5
readlink /proc/*/exe 2>/dev/null | grep -F "$prefix" && fail "something of it still runs"
grep -rlF "$(dirname "$(realpath "$DTRUN_BIN")")" "$prefix" --include='*.service' --include='*.1' --include='dtrun' -I &&
    fail "the build folder is named"

# A missing program is reported by the name that people know.
mv "$prefix/libexec/dtrun/dtrun-engine" "$work/"
expect 3 launch "$work/tiny.yaml"
says "dtrun-engine" "the installation is incomplete"
mv "$work/dtrun-engine" "$prefix/libexec/dtrun/"

# The manual has the same text as the help, for every command.
subject="the manual pages"
expect 0 --help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/out")
[ "$(ls "$prefix/share/man/man1" | wc -l)" -eq $(($(wc -w <<<"$commands") + 1)) ] || fail "not one page a command"
for command in "" $commands; do
    page=$prefix/share/man/man1/dtrun${command:+-$command}.1
    [ -s "$page" ] || fail "no page of '$command'"
    if command -v groff >/dev/null; then
        groff -man -ww -Tascii -P-c -rLL=200n "$page" >"$work/page" 2>"$work/warnings" || fail "groff: exit $?"
        [ ! -s "$work/warnings" ] || fail "$page: $(head -n 3 "$work/warnings")"
        [ -z "$command" ] || "$dtrun" help "$command" >"$work/help"
        python3 - "$work/page" "$work/help" "$command" <<'PY' || fail "the page of '$command' lacks words of the help"
import re, sys
page = re.sub(r'.\x08', '', open(sys.argv[1]).read())
if sys.argv[3]:
    text = open(sys.argv[2]).read().split('Options:\n')[1]
    have = set(page.split())
    missing = [word for word in text.split() if word not in have]
    assert not missing, missing
PY
    fi
done

# Completions are in the folders that shells search; they equal the output of `dtrun completion` (completion.sh).
for file in bash-completion/completions/dtrun zsh/site-functions/_dtrun fish/vendor_completions.d/dtrun.fish; do
    [ -s "$prefix/share/$file" ] || fail "share/$file is missing"
done

# Units that systemd accepts, each of which names this prefix.
subject="the units"
units=$prefix/lib/systemd/user
grep -qxF "ExecStart=$prefix/bin/dtrun serve" "$units/dtrun-serve.service" || fail "dtrun-serve.service"
grep -qF " $prefix/bin/dtrun supervise --all-active" "$units/dtrun-supervisors.service" || fail "dtrun-supervisors.service"
if command -v systemd-analyze >/dev/null; then
    mkdir -p "$work/runtime"
    SYSTEMD_LOG_LEVEL=warning XDG_RUNTIME_DIR=$work/runtime systemd-analyze verify --user --man=no --recursive-errors=no \
        "$units"/dtrun-* >"$work/verified" 2>&1 || fail "systemd-analyze: $(<"$work/verified")"
fi

# Statements of the docs about examples are true.
for example in "$prefix"/share/doc/dtrun/examples/*.yaml; do [ -s "$example" ] || fail "$example"; done
[ -s "$prefix/share/doc/dtrun/docs/recipe.md" ] || fail "docs are missing"
