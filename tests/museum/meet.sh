#!/usr/bin/env bash
# On demand: programs of an old build and today's meet in one state folder, as when dtrun is updated under
# its runs: meet.sh NAME, a line of `versions` that make.sh has built in $MUSEUM_BUILDS.
. "$(dirname "$0")/../cli/lib.sh"
old=${MUSEUM_BUILDS:-${TMPDIR:-/tmp}/dtrun-museum-builds}/$1/build/release/bin
[ -x "$old/dtrun" ] || { echo "not built: tests/museum/make.sh $1"; exit 77; }
new=$(dirname "$dtrun")
python3 tests/museum/corpus.py >"$work/corpus.txt"
cp tests/museum/recipe.yaml "$work/"
mkdir "$work/bin"
dtrun=$work/bin/dtrun

install_from() { # folder: as a package does, each file put in place of the one before
    local program
    for program in dtrun dtrun-agent dtrun-engine dtrun-reach; do
        cp "$1/$program" "$work/bin/$program.new"
        mv "$work/bin/$program.new" "$work/bin/$program"
    done
}
processes() { # of this test, whose command line has the words
    local file
    for file in $(grep -lzsxF "XDG_STATE_HOME=$XDG_STATE_HOME" /proc/[0-9]*/environ); do
        tr '\0' ' ' 2>/dev/null <"${file%environ}cmdline" | grep -q -- "$1" && echo "${file//[!0-9]/}"
    done
}
launch() { # name: with the programs that are there
    expect 0 launch --detach "$work/recipe.yaml" --set name="$1" --set schedule.steps=60
    within 60 step_reached "$1" 3
}
curve() { # run
    expect 0 metrics "$1" --name loss
    cut -d, -f2,4 "$work/out" | sort -n
}
finishes() { # run attempts
    within 120 state_is "$1" finished
    expect 0 show "$1" --json
    json "len(o['attempts']) == $2"
    curve "$1" | cmp -s - "$work/whole" || fail "the losses of $1 are others"
}

install_from "$new"
expect 0 launch --wait --json "$work/recipe.yaml" --set name=whole --set schedule.steps=60
curve whole >"$work/whole"
mv "$XDG_STATE_HOME" "$work/of-new"

# Updated under a run: its supervisor and agent continue to its end.
install_from "$old"
launch calm
install_from "$new"
expect 0 list
says calm
finishes calm 1

# ... and its supervisor is killed: today's takes the old agent.
rm -rf "$XDG_STATE_HOME"
install_from "$old"
launch taken
agents=$(processes "dtrun-agent serve")
kill -9 $(processes "dtrun supervise")
install_from "$new"
expect 0 list
[ "$(processes "dtrun-agent serve")" = "$agents" ] || fail "the old agent was not taken over"
finishes taken 1

# ... and a rank dies: the old supervisor cannot begin again on a history that is migrated.
rm -rf "$XDG_STATE_HOME"
install_from "$old"
launch restarted
install_from "$new"
expect 0 list
kill -9 $(processes "dtrun-engine train")
within 60 expect 0 status restarted
finishes restarted 2

# The old programs meet a run of today's: they say so, and harm nothing.
rm -rf "$XDG_STATE_HOME"
launch today
install_from "$old"
if [ "$1" = 0.1.0 ]; then
    expect 3 list
    says "a newer dtrun wrote it"
fi
kill -9 $(processes "dtrun-engine train")
install_from "$new"
finishes today 2
