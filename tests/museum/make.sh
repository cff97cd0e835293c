#!/usr/bin/env bash
# Makes runs/NAME.tar.xz: small runs of a release as it left them, with its output about them.
#
#   tests/museum/make.sh NAME            a line of `versions`; builds that commit first, in $MUSEUM_BUILDS
#   tests/museum/make.sh NAME --build    only builds it (upgrade.sh)
#
# Each of {plain, epochs, fsdp, tensor, command} exists finished, and stopped before its end; 0.1.0 has the first three.
# plain also exists crashed: all its processes were killed at once, so that its history still shows it as running. All are in /tmp/dtrun-museum, which
# move.py replaces when they are unpacked elsewhere.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
builds=${MUSEUM_BUILDS:-${TMPDIR:-/tmp}/dtrun-museum-builds}
root=/tmp/dtrun-museum

name=${1:?a name of tests/museum/versions}
commit=$(awk -v name="$name" '$1 == name { print $2 }' "$here/versions")
[ -n "$commit" ] || { echo "'$name' is not in $here/versions" >&2; exit 2; }
# --- the build
source=$builds/$name
if [ ! -x "$source/build/release/bin/dtrun" ]; then
    mkdir -p "$builds"
    git -C "$here" worktree prune
    [ -d "$source" ] || git -C "$here" worktree add -q --detach "$source" "$commit"
    (cd "$source" && cmake --preset release -DDT_CUDA=OFF && nice cmake --build --preset release -j2) >"$source.log" 2>&1 ||
        { tail "$source.log"; exit 1; }
fi
[ "${2:-}" != --build ] || exit 0

# --- the folder of the runs
mkdir "$root" || { echo "somebody else makes runs there: remove it if not" >&2; exit 1; }
trap 'end_all; rm -rf "$root"' EXIT

processes() { grep -lzsxF "XDG_STATE_HOME=$root/state" /proc/[0-9]*/environ | tr -dc '0-9\n'; }
end_all() { for pid in $(processes); do kill -9 "$pid" 2>/dev/null || true; done; }
mkdir "$root/bin" "$root/home"
cp "$source"/build/release/bin/dtrun{,-agent,-engine,-reach} "$root/bin/"

# --- the runs: with an environment that is the same everywhere
dtrun() {
    env -i PATH=/usr/bin:/bin HOME="$root/home" LANG=C XDG_STATE_HOME="$root/state" XDG_CACHE_HOME="$root/cache" \
        XDG_CONFIG_HOME="$root/config" OMP_NUM_THREADS=1 "$root/bin/dtrun" "$@"
}
reached() { # run step
    [ "$(dtrun status "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin).get("step", 0))')" -ge "$2" ]
}
engines() { for pid in $(processes); do [ "$(readlink "/proc/$pid/exe")" != "$root/bin/dtrun-engine" ] || echo "$pid"; done; }
signal() { kill "-$1" $(engines) 2>/dev/null || true; }
# run step: stops its ranks there, so that on a fast machine the run does not end before it is checked
await() {
    until [ -n "$(engines)" ]; do sleep 0.005; done
    until signal STOP && reached "$@"; do
        signal CONT
        sleep 0.02
    done
}

python3 "$here/corpus.py" >"$root/corpus.txt"
cp "$here/recipe.yaml" "$root/"
cd "$root"
run() { # name option...
    local run_name=$1
    shift
    dtrun launch recipe.yaml --set name="$run_name" "$@" >/dev/null
}
kind() { # name setting...: a finished and a stopped run
    local kind=$1 set=()
    shift
    for setting; do set+=(--set "$setting"); done
    run "$kind-whole" --wait "${set[@]}"
    run "$kind-stopped" --detach "${set[@]}"
    await "$kind-stopped" 5
    (sleep 0.5; signal CONT) & # the stop has been requested by then
    grep -q '"state": *"stopped"' <<<"$(dtrun stop "$kind-stopped" --json)" ||
        { echo "it ended before it was stopped: once more"; exit 1; }
    wait
}
kind plain
kind epochs schedule.steps=0 schedule.epochs=2 checkpoint.every_epoch=1
kind fsdp strategy=fsdp ranks=2
kind tensor tensor=2 ranks=2
# A command, whose folder is kept with the state.
mkdir state/work
cp "$here/counter.sh" state/work/
dtrun launch "$here/command.yaml" --set workdir="$root/state/work" --set name=command-whole --wait >/dev/null
dtrun launch "$here/command.yaml" --set workdir="$root/state/work" --set name=command-stopped --detach >/dev/null
until reached command-stopped 7; do sleep 0.05; done
grep -q '"state": *"stopped"' <<<"$(dtrun stop command-stopped --json)" ||
    { echo "the command ended before it was stopped: once more"; exit 1; }
# --- the release's output about them; and the crash
cat >state/about.json <<JSON
{"build": "$("$root/bin/dtrun" --version)", "root": "$root"}
JSON
for whole in plain epochs fsdp tensor; do
    dtrun generate "$whole-whole" --seed 1 --tokens 40 --prompt the >"state/$whole.txt"
done
dtrun list --json --limit 0 >state/list.json
run plain-crashed --detach # last, because any command would start a supervisor for it
await plain-crashed 5
end_all
[ "$(python3 -c "import sqlite3
print(*sqlite3.connect('state/dtrun/store.db').execute(
    'SELECT a.state FROM runs JOIN attempts a USING (run) WHERE name = \'plain-crashed\'').fetchone())")" = running ] ||
    { echo "it ended before it crashed: once more"; exit 1; }

find . -name '*.sock' -delete
mkdir -p "$here/runs"
tar --sort=name --owner=0 --group=0 --numeric-owner -cJf "$here/runs/$name.tar.xz" state
ls -l "$here/runs/$name.tar.xz"
