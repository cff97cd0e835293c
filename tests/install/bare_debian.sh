#!/usr/bin/env bash
# The .deb in a minimal Debian: it is installed with its dependencies, a run trains, the manual is read, and it is
# purged.
#
#   tests/install/bare_debian.sh build/release/dtrun_0.2.0_amd64.deb [SUITE [MIRROR]]
#
# Needs root, mmdebstrap and a mirror. Not part of the suite: it fetches a Debian.
set -euo pipefail
deb=$(realpath "${1:?the .deb}") suite=${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
mirror=${3:-http://deb.debian.org/debian}
root=$(mktemp -d /tmp/dtrun-bare.XXXXXX)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
mmdebstrap --quiet --variant=minbase "$suite" "$root" "$mirror"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/"
cp "$deb" "$root/dtrun.deb"
seq 1 2000 | sed 's/.*/line & of a text that can be learned/' >"$root/corpus.txt"
cat >"$root/tiny.yaml" <<'YAML'
name: tiny
ranks: 2
threads: 1
model: {layers: 1, heads: 2, embed: 16}
data: {train: corpus.txt}
batch: {sequences: 2, tokens: 16}
schedule: {steps: 40, warmup_steps: 5}
YAML
in_there() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
[ ! -e "$root/usr/bin/python3" ]
in_there apt-get update -q >"$root/log"
in_there apt-get install -y -q --no-install-recommends ./dtrun.deb >>"$root/log" 2>&1 || { tail -n 20 "$root/log"; exit 1; }
in_there dtrun --version
in_there dtrun doctor
in_there dtrun launch --wait tiny.yaml
in_there dtrun generate last --prompt "line" --tokens 20
in_there dtrun list
before=$(in_there dpkg -L dtrun | wc -l)
in_there apt-get install -y -q --reinstall ./dtrun.deb >>"$root/log" 2>&1
in_there dtrun resume last --set schedule.steps=60 --wait
in_there apt-get purge -y -q dtrun >>"$root/log" 2>&1
left=$(chroot "$root" find / -xdev -name '*dtrun*' -not -path '/proc/*' -not -path '/root/*' -not -path '/dtrun.deb' -not -path '/var/*' -not -path '/tmp/*')
[ -z "$left" ] || { echo "left after purge: $left"; exit 1; }
[ -e "$root/root/.local/state/dtrun/store.db" ] || { echo "the history is gone"; exit 1; }
echo "good: $before files and folders, installed, tried, updated, purged"
