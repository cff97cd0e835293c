#!/usr/bin/env bash
# Installs the packages that dtrun is built with (build), that the gate needs (test), and that the long tests
# need besides (long), on Debian and Ubuntu. Installed packages are left alone; if all are installed, neither
# root nor a network is needed.
#
#   base/packages.sh build [test [long]]
#
# Where there is nvcc, long also brings cuobjdump and nvdisasm, from Python's packages into build/cuobjdump, if the
# CUDA toolkit came without them: one of its tests reads the machine code of the GPU part.
set -euo pipefail

# Needed, by name on Debian 12 and Ubuntu 22.04 and 24.04.
build=(build-essential cmake ninja-build pkg-config git
       libyaml-dev libjansson-dev libxxhash-dev    # recipes, JSON, digests
       libutf8proc-dev                             # tokenizers: classes and normal forms of characters
       libzstd-dev                                 # what is sent to nodes
       libuv1-dev libsqlite3-dev libmicrohttpd-dev # runner, store, page
       libcurl4-openssl-dev                        # webhooks, data by https
       libjs-chart.js                              # the page's charts
       libdnnl-dev libgloo-dev nettle-dev          # engine: matrix products, collectives, proofs, sha256
       fortunes fortunes-min)                      # the English text of the quickstart
test=(libcmocka-dev python3 curl openssl sqlite3 procps util-linux)
# Wanted: without them their tests say that they are skipped. On Ubuntu the browser is a snap, under other names.
test_wanted=(ccache                               # a second build takes a third of the time
             openssh-server openssh-client iproute2 # test hosts that are reached by ssh
             python3-jsonschema python3-yaml      # the recipe's schema, by another validator
             python3-selenium)
long_wanted=(faketime                             # clocks of test hosts
             zsh fish groff-base file             # completion there; manual pages; the .deb
             qemu-user                            # a processor that has less
             slurmctld slurmd slurm-client munge) # a cluster of the tests' own, on those hosts
browser=(chromium chromium-driver)
browser_ubuntu=(chromium-browser chromium-chromedriver)

die() { printf '%s\n' "$*" >&2; exit 1; }

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# A toolkit that was installed as Python's packages has nvcc and neither of the two.
bring_cuobjdump() {
    local into
    into=$(cd "$(dirname "$0")/.." && pwd)/build/cuobjdump
    command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return 0
    ! command -v cuobjdump >/dev/null && ! ls /usr/local/cuda*/bin/cuobjdump "$into"/nvidia/*/bin/nvdisasm \
        >/dev/null 2>&1 || return 0
    python3 -m pip install -q --disable-pip-version-check --target "$into" \
        'nvidia-cuda-cuobjdump>=13' 'nvidia-cuda-nvdisasm>=13' >/dev/null 2>&1 ||
        echo "could not bring cuobjdump: the test that reads the GPU part's machine code will be skipped"
}

missing_of() {
    local name
    for name in "$@"; do installed "$name" || printf '%s\n' "$name"; done
}

[ $# -gt 0 ] || die "usage: base/packages.sh build [test [long]]"
needed=()
optional=()
for set in "$@"; do
    case $set in
    build) needed+=("${build[@]}") ;;
    test)
        needed+=("${test[@]}")
        optional+=("${test_wanted[@]}")
        if grep -qs '^ID=ubuntu' /etc/os-release; then
            optional+=("${browser_ubuntu[@]}")
        else
            optional+=("${browser[@]}")
        fi ;;
    long)
        bring_cuobjdump
        optional+=("${long_wanted[@]}") ;;
    *) die "unknown package set '$set': build, test or long" ;;
    esac
done

command -v apt-get >/dev/null ||
    die "this is neither Debian nor Ubuntu: install what these packages hold, then build with cmake:
  ${needed[*]}"

mapfile -t missing < <(missing_of "${needed[@]}")
mapfile -t missing_optional < <(missing_of "${optional[@]}")
[ ${#missing[@]} -eq 0 ] && [ ${#missing_optional[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "run this as root once, or install these packages:
  ${missing[*]} ${missing_optional[*]}"
    as_root=(sudo)
fi
apt_install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@" >"$log" 2>&1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing packages: ${missing[*]} ${missing_optional[*]}"
"${as_root[@]}" apt-get update -q >"$log" 2>&1 || { tail -n 5 "$log" >&2; die "apt-get update failed"; }
if [ ${#missing[@]} -gt 0 ]; then
    apt_install "${missing[@]}" || { tail -n 15 "$log" >&2; die "apt-get install failed"; }
fi
if [ ${#missing_optional[@]} -eq 0 ] || apt_install "${missing_optional[@]}"; then exit 0; fi
for name in "${missing_optional[@]}"; do # one at a time: a name that this release lacks fails alone
    apt_install "$name" || echo "could not install $name: the tests that want it will be skipped"
done
