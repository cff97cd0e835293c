#!/usr/bin/env bash
# The Debian package, made from this build, has every file that is installed and depends on the libraries of its
# programs; the programs run from where it was unpacked.
. "$(dirname "$0")/../cli/lib.sh"
for tool in dpkg-deb dpkg-shlibdeps file cpack readelf; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
build=$(dirname "$(realpath "$DTRUN_BIN")")
subject="the package"
cmake --install "$build" --prefix "$work/prefix" >"$work/said" 2>&1 || fail "cmake --install: $(tail -n 3 "$work/said")"
(cd "$build" && cpack -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$work/made") >"$work/said" 2>&1 ||
    fail "cpack: $(tail -n 5 "$work/said")"
deb=$(ls "$work"/made/dtrun_*.deb)
dpkg-deb -x "$deb" "$work/root" || fail "dpkg-deb -x"
field_of() { dpkg-deb -f "$deb" "$1"; }
[ "$(field_of Package)" = dtrun ] && [ "$(field_of Architecture)" = "$(dpkg --print-architecture)" ] || fail "$(dpkg-deb -f "$deb")"
grep -qF "dtrun $(field_of Version) " <<<"$("$dtrun" --version)" || fail "version $(field_of Version)"

# The files of `cmake --install`, except zsh's folder and the uninstaller; root owns them, and only root can write them.
diff <(cd "$work/prefix" && find . -type f ! -path ./libexec/dtrun/installed ! -path ./libexec/dtrun/uninstall |
    sed 's/site-functions/vendor-completions/' | sort) \
    <(cd "$work/root/usr" && find . -type f | sort) || fail "its files are others"
dpkg-deb -c "$deb" | grep -Ev '^(d|-)rw[x-]r-[x-]r-[x-] root/root' && fail "modes or owners"
grep -qxF 'ExecStart=/usr/bin/dtrun serve' "$work/root/usr/lib/systemd/user/dtrun-serve.service" || fail "the unit's path"

# cpack has overwritten install_manifest.txt of the build folder: the installation is still removed, and only it.
"$work/prefix/libexec/dtrun/uninstall" >"$work/said" || fail "uninstall: exit $?"
[ ! -e "$work/prefix" ] && [ -e "$work/root/usr/bin/dtrun" ] || fail "left: $(find "$work/prefix" | head -n 5)"

# Every library that a program needs comes from a package that it depends on.
depends=" $(field_of Depends | tr -d ' ' | sed 's/([^)]*)//g; s/,/ /g') "
for program in "$work"/root/usr/bin/dtrun "$work"/root/usr/libexec/dtrun/*; do
    ldd "$program" >"$work/needs" 2>/dev/null || continue # the agent needs none
    ! grep "not found" "$work/needs" || fail "$program"
    for library in $(sed -n 's/.* => \(\/[^ ]*\).*/\1/p' "$work/needs"); do
        grep -qF "[$(basename "$library")]" <<<"$(readelf -d "$program")" || continue # needed by another library
        package=$({ dpkg -S "$library" || dpkg -S "$(realpath "$library")" || dpkg -S "/usr$library"; } 2>/dev/null | head -n 1)
        # CUDA's libraries are loaded when a card is requested, and Debian has no package of them.
        [ -n "$package" ] || [ "$(basename "$program")" != libdtrun-cuda.so ] || continue
        case $depends in *" ${package%%:*} "*) ;; *) fail "$library of '${package%%:*}' is not in Depends:$depends" ;; esac
    done
done

python3 tests/install/links.py "$work/root/usr/share/doc/dtrun" >"$work/said" 2>&1 || fail "$(<"$work/said")"

make_tiny
dtrun=$work/root/usr/bin/dtrun
expect 0 launch --wait "$work/tiny.yaml" --set schedule.steps=10 --set schedule.warmup_steps=1

# A removal names the active runs.
subject="the removal"
dpkg-deb -e "$deb" "$work/control" || fail "dpkg-deb -e"
[ -x "$work/control/prerm" ] && sh -n "$work/control/prerm" || fail "no prerm"
grep -q '/usr/libexec/dtrun/active-runs' "$work/control/prerm" || fail "prerm does not name the active runs"
said() { "$work/root/usr/libexec/dtrun/active-runs" 2>&1; }
[ -z "$(said)" ] || fail "without a run: $(said)"
expect 0 launch --detach "$work/tiny.yaml" --set schedule.steps=1000000 --set checkpoint.every=0
run=$(head -n 1 "$work/out")
said | grep -qF "  $run of $(id -un) (supervisor " || fail "with a run: $(said)"
expect 0 stop "$run" --now
grep -q "GPT-2, Llama and Qwen" <<<"$(field_of Description)" || fail "an old description: $(field_of Description)"
