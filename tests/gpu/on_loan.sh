#!/usr/bin/env bash
# on_loan.sh STAGE [FOLDER]: checks and measures everything on a borrowed card, in stages that each end in less than 8
# minutes.
#
#   check      the machine; every op, cuDNN's attention first; trust; a first speed. 5 minutes at most
#   speed      ops, 124M, its peer, attention, graphs
#   precision  fp16, bf16 and fp16 against the CPU, a checkpoint moved between devices, memcheck, racecheck
#   xl         1.5B, its peer
#   all        all stages in turn, as far as one call goes
#   pack       (on a machine without a card) builds what the others need into build/loan-bin, with the libraries that
#              the programs are linked to in build/loan-bin/lib: a borrowed machine rarely has them
#
# FOLDER ($OUT, else build/loan) gets 8 files at most, after every step: summary.md, steps.tsv, log.txt,
# machine.txt, results.md, results.json. Finished steps are recorded in build/loan (DTRUN_LOAN_KEEP), or in FOLDER if
# that is not writable: the next call continues after them. Other programs or another card start again.
# Exit code: 0 all good; 1 a step failed; 75 not finished: call again; 77 no card; 2 wrong usage.
# DTRUN_BIN has the built programs, else build/loan-bin, else they are built in build/gpu. DTRUN_LOAN_SECONDS: time
# limit of a call. DTRUN_LOAN_QUICK=1: tiny sizes, to try the script.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
stage=${1:-}
case $stage in
    check) budget=300 ;;
    speed | precision | xl | all | pack) budget=450 ;;
    *) echo "on_loan.sh: expected check, speed, precision, xl, all or pack, not '$stage'" >&2; exit 2 ;;
esac
budget=${DTRUN_LOAN_SECONDS:-$budget}
. tests/gpu/libraries.sh
programs=(dtrun-engine card_info test_ops_on_card dist_make_plan dist_spawn dist_compare bench_ops)

# --- programs

build() { # FOLDER
    local generator=()
    command -v ninja > /dev/null && generator=(-G Ninja)
    echo "building ${programs[*]} in $1"
    cmake -S . -B "$1" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDT_PARTS=engine -DDT_ONEDNN=OFF \
        -DCMAKE_DISABLE_FIND_PACKAGE_Gloo=ON -DDT_CUDA=ON \
        -DDT_CUDA_ARCHITECTURES="${DTRUN_LOAN_ARCHITECTURES:-90-real}" > "$1.log" 2>&1 &&
        cmake --build "$1" -j "$(nproc)" --target "${programs[@]}" dtrun-cuda >> "$1.log" 2>&1 ||
        { tail -n 30 "$1.log"; return 1; }
}

pack() {
    mkdir -p build
    build "$root/build/gpu" || exit 1
    rm -rf build/loan-bin
    mkdir -p build/loan-bin/lib
    for name in "${programs[@]}" libdtrun-cuda.so; do
        strip -o "build/loan-bin/$name" "build/gpu/bin/$name" || exit 1
        for library in $(ldd "build/gpu/bin/$name" | awk '$1 ~ /^lib(jansson|xxhash|cmocka)\./ {print $3}'); do
            cp -L "$library" build/loan-bin/lib/ || exit 1
        done
    done
    du -sh build/loan-bin
}

bin=${DTRUN_BIN:-$root/build/loan-bin}
[ -z "${DTRUN_BIN:-}" ] || bin=$(cd "$bin" && pwd) || exit 2
[ -n "${DTRUN_BIN:-}" ] || [ -e "$bin/card_info" ] || bin=$root/build/gpu/bin
if [ "$stage" = pack ]; then
    find_python > /dev/null
    find_libraries
    pack
    exit 0
fi

# --- folders for results

folder=${2:-${OUT:-build/loan}}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) && [ -w "$folder" ] ||
    { echo "on_loan.sh: cannot write into '$folder'" >&2; exit 2; }
keep=${DTRUN_LOAN_KEEP:-$root/build/loan}
mkdir -p "$keep" 2> /dev/null && [ -w "$keep" ] || keep=$folder
files=(summary.md steps.tsv log.txt machine.txt results.md results.json)
if [ "$keep" != "$folder" ] && [ ! -e "$keep/steps.tsv" ] && [ -e "$folder/steps.tsv" ]; then
    for name in "${files[@]}"; do cp "$folder/$name" "$keep/" 2> /dev/null; done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$keep/cache
[ "$keep" != "$folder" ] || XDG_CACHE_HOME=$work
if command -v flock > /dev/null; then
    exec 9>> "$keep/steps.tsv"
    flock -n 9 || { echo "on_loan.sh: another one is under way in $keep" >&2; exit 2; }
fi

show() { # writes the results so far into FOLDER
    local name
    awk -F '\t' 'BEGIN {print "| step | result | seconds | at |\n|---|---|---|---|"}
        $2 != "begun" && $1 != "of" {printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4}' \
        "$keep/steps.tsv" > "$keep/summary.md"
    grep '^MISSING' "$keep/machine.txt" | sed 's/^/- /' >> "$keep/summary.md"
    [ "$keep" = "$folder" ] && return
    for name in "${files[@]}"; do
        [ ! -e "$keep/$name" ] || cp "$keep/$name" "$folder/"
    done
}

note() { # STEP RESULT SECONDS
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(date -u +%FT%TZ)" >> "$keep/steps.tsv"
}

# --- the machine

find_python > "$work/python"
find_libraries > "$work/libraries"
if [ "$bin" = "$root/build/gpu/bin" ] && [ -z "${DTRUN_BIN:-}" ]; then
    mkdir -p build && build "$root/build/gpu" || exit 1
fi
export DTRUN_BIN=$bin
[ ! -d "$bin/lib" ] || export LD_LIBRARY_PATH=$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for name in "${programs[@]}" libdtrun-cuda.so; do
    [ -e "$bin/$name" ] || { echo "on_loan.sh: '$bin' has no $name" >&2; exit 2; }
done
device=${DTRUN_TEST_DEVICE:-cuda:0}
{ find_linked; cat "$work/libraries" "$work/python"; } > "$work/found"
card=$("$bin/card_info" "$device")
code=$?
{
    date -u
    echo "$device: $card"
    nvidia-smi 2> /dev/null || missing nvidia-smi "the driver's version and what else runs are not known"
    cat "$work/found"
    uname -r
    nproc
} > "$keep/machine.txt"
cat "$work/found"
echo "$device: $card"
touch "$keep/steps.tsv"
of=$(cksum < "$bin/libdtrun-cuda.so" | cut -d ' ' -f 1)$(printf %s "$card" | sed -n 's/.*"name":"\([^"]*\)".*/ \1/p')
if ! grep -qxF "of	$of" "$keep/steps.tsv"; then # other programs, or another card
    [ ! -s "$keep/steps.tsv" ] || echo "begun anew: other programs, or another card"
    rm -f "$keep/log.txt" "$keep/results.md" "$keep/results.json"
    printf 'of\t%s\n' "$of" > "$keep/steps.tsv"
fi
show
[ "$code" = 0 ] || exit "$code"

# --- steps

failed=0 rest=0 began=$SECONDS
leash=() # processes that it started end with this script, however it ends
command -v setpriv > /dev/null && leash=(setpriv --pdeathsig TERM)
count() { # STEP RESULT
    awk -F '\t' -v step="$1" -v result="$2" '$1 == step && $2 == result {n++} END {print n + 0}' "$keep/steps.tsv"
}

# step NAME SECONDS COMMAND...: runs the step unless it is done. It is ended after SECONDS, or when the call's time is
# up; the next call then repeats it.
step() {
    local name=$1 limit=$2 left=$((budget - SECONDS)) start=$SECONDS code result
    shift 2
    [ -z "$quick" ] || limit=$((limit * 5)) # emulated cards are slow at any size
    result=$(awk -F '\t' -v step="$name" '$1 == step && $2 != "begun" && $2 != "cut" {print $2}' "$keep/steps.tsv" | tail -n 1)
    case $result in
        good | skipped*) return ;;
        ?*) failed=1; return ;;
    esac
    if [ "$(count "$name" begun)" -ge 3 ]; then
        note "$name" "failed: never came to its end, three times" ""
        failed=1
        show
        return
    fi
    if [ "$rest" = 1 ] || { [ $((left * 2)) -lt "$limit" ] && [ $((SECONDS - began)) -gt 15 ]; }; then
        rest=1
        return
    fi
    [ "$left" -gt 0 ] || left=1
    [ "$left" -lt "$limit" ] || left=$limit
    note "$name" begun ""
    echo "--- $name" | tee -a "$keep/log.txt"
    "${leash[@]}" timeout -k 5 "$left" "$@" > "$work/output" 2>&1 9>&-
    code=$?
    tail -n 400 "$work/output" | tail -c 200000 >> "$keep/log.txt"
    case $code in
        0) result=good ;;
        77) result="skipped: $(grep -h skipped "$work/output" | tail -n 1 | sed 's/^skipped: //' | cut -c -200 | tr '\t' ' ')" ;;
        124 | 137) if [ "$left" -lt "$limit" ]; then result="cut"; else result="failed: longer than $left s"; fi ;;
        *) result="failed: exit code $code" ;;
    esac
    note "$name" "$result" "$((SECONDS - start))"
    echo "$name: $result, $((SECONDS - start)) s"
    case $result in
        cut) rest=1 ;;
        failed*) failed=1; tail -n 5 "$work/output" ;;
    esac
    show
}

quick=${DTRUN_LOAN_QUICK:+--quick}
# measure NAME...: runs tests/bench/gpu_run.py; without Python the engine's own rates
measure() {
    if [ -n "$python" ]; then
        "$python" tests/bench/gpu_run.py --bin "$bin" --out "$keep" --device "$device" $quick "${@/#/--only=}"
    else
        bash tests/gpu/plain_speed.sh "$device" "$@"
    fi
}
export -f measure
export python bin keep device quick

ops() { # cudnn|wgmma|mma [PATTERN]
    DTRUN_ATTENTION=$1 DTRUN_TEST_DEVICE=$device "$bin/test_ops_on_card" "${@:2}"
}
export -f ops

some=${DTRUN_LOAN_QUICK:+residual_in_fp32*} # patterns of ops
check() {
    if [ -n "${DTRUN_CUDNN:-}" ]; then
        step ops-with-cudnn 60 bash -c "ops cudnn '${some:-attention*}'"
    elif [ "$(count ops-with-cudnn "skipped: no cuDNN")" = 0 ]; then
        note ops-with-cudnn "skipped: no cuDNN" 0
    fi
    step ops-wgmma 60 bash -c "ops wgmma '${some:-attention_[io]*}'"
    step ops 150 bash -c "ops mma ${some:+'$some'}"
    [ -n "$some" ] || step ops-at-1024 60 bash -c "ops mma 'attention_at_1024*'"
    [ -n "$some" ] || step ops-at-1024-wgmma 60 bash -c "ops wgmma 'attention_at_1024*'"
    step trust-one 90 bash tests/gpu/trust_chain.sh "$device" one
    step first-speed 90 bash -c 'measure first'
    step trust-lengths 60 bash tests/gpu/trust_chain.sh "$device" lengths
    step trust-bits 120 bash tests/gpu/trust_chain.sh "$device" bits
    step trust-models 120 bash tests/gpu/trust_chain.sh "$device" llama transformer documents
    step trust-ranks 120 bash tests/gpu/trust_chain.sh "$device" ranks
}
speed() {
    step 124m 120 bash -c 'measure 124m'
    step 124m-kept 120 bash -c 'measure 124m-kept'
    step ops-rates 240 bash -c 'measure ops'
    step attention 120 bash -c 'measure attention'
    step graphs 120 bash -c 'measure graphs'
    [ -z "$torch" ] || step 124m-torch 300 bash -c 'measure 124m-torch'
    [ -z "$torch" ] || step attention-torch 120 bash -c 'measure attention-torch'
}
precision() {
    step fp16 120 bash -c 'measure fp16'
    step trust-types 120 bash tests/gpu/trust_chain.sh "$device" types
    step trust-moves 120 bash tests/gpu/trust_chain.sh "$device" moves
    step memcheck 300 bash tests/gpu/sanitize.sh memcheck ${some:+"$some"}
    step racecheck 300 bash tests/gpu/sanitize.sh racecheck ${some:+"$some"}
}
xl() {
    step xl 120 bash -c 'measure xl'
    [ -z "$torch" ] || step xl-torch 300 bash -c 'measure xl-torch'
}

if [ "$stage" = all ]; then
    for one in check speed precision xl; do $one; done
else
    "$stage"
fi
show
if [ "$rest" = 1 ]; then
    echo "$stage is not at its end: call again"
    exit 75
fi
echo "$stage is done: $folder/summary.md"
exit "$failed"
