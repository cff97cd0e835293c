#!/usr/bin/env bash
# From a bare Debian or Ubuntu to a trained model: installs packages, builds, trains a small GPT
# on the English of the fortunes package, and lets it write. Ctrl-C says what is left; called again, it continues.
set -euo pipefail
cd "$(dirname "$0")/.."
again=examples/quickstart.sh
folder=build/release
dtrun=$folder/bin/dtrun

stage="installing packages"
interrupted() {
    echo
    case $stage in
        building) echo "interrupted while building: $folder has what is built so far ('rm -r $folder' removes it);" \
            "$again continues" ;;
        writing) echo "interrupted; the model is trained: '$dtrun generate last' writes with it" ;;
        *) echo "interrupted while $stage: nothing is built; $again continues" ;;
    esac >&2
    exit 130
}
trap interrupted INT

base/packages.sh build

# Shows ninja's count, in one line of a terminal, else once for each tenth.
show_progress() {
    local line tenth told=-1
    while IFS= read -r line; do
        printf '%s\n' "$line" >>build/quickstart.log
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
        if [ -t 1 ]; then
            printf '\rbuilding, step %d of %d ' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        elif [ $tenth -gt $told ]; then
            told=$tenth
            echo "building, step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
        fi
    done
    [ ! -t 1 ] || echo
}

stage=building
echo "building (takes some minutes the first time; build/quickstart.log has the output)"
mkdir -p build
: >build/quickstart.log
# The example trains on the processor. A build that was configured before keeps what it was configured for.
options=()
[ -f $folder/CMakeCache.txt ] || options=(-DDT_CUDA=OFF)
built=0
{ cmake --preset release "${options[@]}" && cmake --build --preset release; } 2>&1 | show_progress || built=$?
[ $built -eq 0 ] || { tail -n 30 build/quickstart.log; exit 1; }

# Ctrl-C reaches dtrun, which detaches from the run and says what is left.
trap : INT
status=0
"$dtrun" launch examples/quickstart.yaml || status=$?
if [ $status -ne 0 ]; then
    [ $status -eq 130 ] || echo "the run did not finish; $dtrun show last says why" >&2
    exit $status
fi

stage=writing
trap interrupted INT
echo
echo "300 characters that it writes:"
echo
"$dtrun" generate last --prompt "A " --tokens 300 --temperature 0.8 --seed 1

echo
echo "Its curves are on the page: start it with $dtrun serve, and open"
"$dtrun" serve --link
if command -v nvcc >/dev/null && grep -q '^DT_CUDA:[A-Z]*=OFF' $folder/CMakeCache.txt; then
    echo
    echo "This build trains on processors. With the GPU part: cmake --preset release -DDT_CUDA=ON && cmake --build --preset release"
fi
