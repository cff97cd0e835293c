#!/usr/bin/env bash
# uninstall: removes the files that `cmake --install` put below a prefix and the folders that it made, and nothing else:
# with several prefixes of one build, DESTDIR, an update, a moved prefix. package.sh shows that cpack changes nothing of
# this.
. "$(dirname "$0")/../cli/lib.sh"
build=$(dirname "$(realpath "$DTRUN_BIN")")
install() { cmake --install "$build" "$@" >"$work/installed" 2>&1 || fail "cmake --install $*: $(tail -n 3 "$work/installed")"; }
uninstall() { "$1/libexec/dtrun/uninstall" >"$work/out" 2>"$work/err" || fail "uninstall: exit $?"; }
listed() { (cd "$1" && find . | sort); }
same() { diff <(listed "$1") "$2" >"$work/differs" || fail "what is left in $1 differs: $(head -n 5 "$work/differs")"; }

# A prefix with files of others: these files and folders stay, also empty ones. A relative prefix, a space in a name.
subject="a prefix that others use"
shared="$work/a prefix"
mkdir -p "$shared/bin" "$shared/share/fish" "$shared/share/man/man1" "$shared/lib"
touch "$shared/bin/other" "$shared/share/man/man1/other.1"
listed "$shared" >"$work/before"
(cd "$work" && install --prefix "a prefix")
alone=$work/alone
install --prefix "$alone"
[ -x "$shared/bin/dtrun" ] && [ -x "$alone/bin/dtrun" ] || fail "not installed"
grep -qxF "ExecStart=$shared/bin/dtrun serve" "$shared/lib/systemd/user/dtrun-serve.service" || fail "a relative prefix in a unit"
uninstall "$shared"
says "removed dtrun from '$shared'"
same "$shared" "$work/before"

# The other prefix is still complete. After an update to a build with other files, the earlier files are removed too.
subject="an update"
diff <(cd "$alone" && find . -type f | sed 's|^\./||' | sort) <(grep -v '/$' "$alone/libexec/dtrun/installed" | sort) ||
    fail "the record is not what is installed"
echo "share/doc/dtrun/old.md" >>"$alone/libexec/dtrun/installed"
touch "$alone/share/doc/dtrun/old.md"
# The earlier build had no examples: their folder is new, inside a folder that dtrun made.
rm -r "$alone/share/doc/dtrun/examples"
sed -i '\|^share/doc/dtrun/examples|d' "$alone/libexec/dtrun/installed"
install --prefix "$alone"
mv "$alone" "$work/moved"

# A run that is active while its programs are removed is named, and continues.
subject="removal during a run"
make_tiny
"$work/moved/bin/dtrun" launch "$work/tiny.yaml" --detach --set schedule.steps=1000000 --set evaluate.every=0 \
    --set checkpoint.every=0 >"$work/out" 2>"$work/err" || fail "launch"
run=$(head -n 1 "$work/out")
until [ "$("$dtrun" show "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')" = running ]; do sleep 0.1; done
uninstall "$work/moved"
says "1 run is active on this machine" "  $run of " "dtrun stop RUN"
[ "$("$dtrun" show "$run" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])')" = running ] || fail "the run ended"
expect 0 stop "$run" --now
[ ! -e "$work/moved" ] || fail "left: $(find "$work/moved" | head -n 5)"

# A file that was added later keeps its folder.
subject="DESTDIR"
export DESTDIR=$work/root
install --prefix /opt/dtrun
touch "$DESTDIR/opt/dtrun/share/doc/dtrun/mine"
packaging/uninstall /opt/dtrun >"$work/out" 2>&1 || fail "exit $?: $(<"$work/out")"
[ "$(find "$DESTDIR" ! -type d)" = "$DESTDIR/opt/dtrun/share/doc/dtrun/mine" ] || fail "left: $(find "$DESTDIR" ! -type d | head -n 5)"
[ "$(find "$DESTDIR" -type d -empty)" = "" ] || fail "empty: $(find "$DESTDIR" -type d -empty)"

# The target uninstall, with the prefix of the build folder; then nothing is left.
subject="the target"
install
cmake --build "$build" --target uninstall >"$work/out" 2>&1 || fail "exit $?: $(<"$work/out")"
says "removed dtrun from"
! cmake --build "$build" --target uninstall >"$work/out" 2>&1 || fail "it removes what is not there"
says "cannot uninstall dtrun from '$DESTDIR" "'cmake --install' did not install it there"
unset DESTDIR

subject="a damaged record"
mkdir -p "$work/bad/libexec/dtrun"
cp packaging/uninstall "$work/bad/libexec/dtrun/"
! "$work/bad/libexec/dtrun/uninstall" >"$work/out" 2>"$work/err" || fail "exit 0 without a record"
says "cannot uninstall dtrun from '$work/bad': 'cmake --install' did not install it there"
touch "$work/precious"
echo "bin/../../precious" >"$work/bad/libexec/dtrun/installed"
! "$work/bad/libexec/dtrun/uninstall" >"$work/out" 2>"$work/err" || fail "exit 0"
says "is damaged" "is not below"
[ -e "$work/precious" ] || fail "a file outside of the prefix was removed"
mkdir "$work/empty"
echo "../empty/" >"$work/bad/libexec/dtrun/installed"
! "$work/bad/libexec/dtrun/uninstall" >"$work/out" 2>"$work/err" || fail "exit 0"
[ -d "$work/empty" ] || fail "a folder outside of the prefix was removed"
! packaging/uninstall >"$work/out" 2>"$work/err" || fail "exit 0 in the source"
says "did not install it there"
