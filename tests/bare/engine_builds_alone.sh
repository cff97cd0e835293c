#!/usr/bin/env bash
# The engine and its tests build with compilers and CMake alone: no library is found, pkg-config is
# not asked, nothing of the libraries is compiled against or linked. Its unit tests pass, it trains to
# the golden curves, and two ranks take a checkpoint up again.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf '%s\n' "FAILED: $*"; exit 1; }

mkdir "$work/hidden"
for name in pkg-config pkgconf; do
    printf '#!/bin/sh\necho "$0 $*" >> "%s/asked"\nexit 1\n' "$work" > "$work/hidden/$name"
    chmod +x "$work/hidden/$name"
done
export PATH=$work/hidden:$PATH
launcher=()
if command -v ccache > /dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
step() { # what command...: its output only where it fails
    local what=$1
    shift
    "$@" > "$work/log" 2>&1 || { tail -n 40 "$work/log"; fail "$what"; }
}
step configure cmake -S . -B "$work/build" -G Ninja -DDT_WERROR=ON -DDT_PARTS=engine -DDT_BARE=ON \
    -DDT_CUDA=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_{C,CXX}_FLAGS_RELEASE=-O2 "${launcher[@]}" # nobody debugs it
grep 'not found' "$work/log"
step build cmake --build "$work/build" -j "$(nproc)" \
    --target dtrun-engine tests/unit/all tests/dist/all fuzz_json test_ops_on_card bench_ops bench_step
[ ! -e "$work/asked" ] || fail "asked: $(cat "$work/asked")"

headers='/(jansson|xxhash|utf8proc|cmocka|yaml|sqlite3|gloo/.*|dnnl.*)\.h'
found=$(ninja -C "$work/build" -t deps | grep -E "$headers" | grep -vE '(base|tests)/bare/' || true)
[ -z "$found" ] || fail "compiled against a library: $found"
linked=$(readelf -d "$work/build/bin/dtrun-engine" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libgomp|ld-linux.*)\.so' || true)
[ -z "$linked" ] || fail "linked with $linked"

# Models ask nothing of these libraries, and take minutes with plain products. Tokenizers are refused without
# libutf8proc.
step "unit tests" ctest --test-dir "$work/build/tests/unit" \
    -E 'unit\.(model_|layers|tokens_(around|encode|refused|unigram))' \
    -j "$(nproc)" --output-on-failure
grep 'tests passed' "$work/log"

export DTRUN_BIN=$work/build/bin
step "the golden curves" bash tests/dist/golden_losses.sh
step "two ranks, stopped and resumed" bash tests/dist/resume_is_bit_exact.sh
echo "the engine builds alone, and trains to the golden curves"
