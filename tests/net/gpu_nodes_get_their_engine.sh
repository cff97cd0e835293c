#!/usr/bin/env bash
# A node with GPUs, and a recipe without a field for them: the probe finds them (with nvidia-smi, else by the driver's
# files). The node gets an engine with the GPU part and everything that it needs except the driver. The GPUs are files
# here; nothing runs on them.
NET_HOME_SIZE=2g # space of which a bundle takes half
export NET_HOME_SIZE
. "$(dirname "$0")/lib.sh"
hosts 2 apart
field() { # expression over o, the output of doctor
    "$dtrun" doctor --json "$net/launch/r.yaml" 2>"$net/err" | python3 -c "import json, sys; o = json.load(sys.stdin); print($1)"
}
inside() { on "$1" sh -c "$2"; }

cards='mount -t tmpfs tmpfs /proc/driver && cd /proc/driver && mkdir -p nvidia/gpus/0000:01:00.0 nvidia/gpus/0000:02:00.0 &&
    printf "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\nGCC version:  gcc version 12.2.0\n" >nvidia/version &&
    for card in nvidia/gpus/*; do printf "Model: \t\t Test Card\nIRQ:   \t\t 7\n" >$card/information; done'
smi='mount -t tmpfs tmpfs /usr/local/bin && printf "#!/bin/sh\necho 550.1, 81559, 80000, NVIDIA Other Card\n" >/usr/local/bin/nvidia-smi &&
    chmod 755 /usr/local/bin/nvidia-smi'
recipe <<'YAML'
name: cards
nodes: [host1, host2]
ranks: 1
YAML

is "GPUs of nodes that have none" "$(field "[len(n['facts']['devices']) for n in o['nodes']]")" "[0, 0]"
inside host1 "$cards"
if [ ! -e "$DTRUN_BIN/libdtrun-cuda.so" ]; then
    wants 3 "node 'host1' has GPUs: this dtrun has no code for GPUs" "$dtrun" doctor "$net/launch/r.yaml"
    wants 3 "set 'gpus: 0'" "$dtrun" launch --wait "$net/launch/r.yaml"
    wants 0 "" "$dtrun" launch --wait "$net/launch/r.yaml" --set gpus=0
    echo "the GPU part is not built: that it travels is not tried"
    exit 0
fi
is "GPUs by the driver's files" "$(field "[d['name'] for d in o['nodes'][0]['facts']['devices']]")" "['Test Card', 'Test Card']"
is "their driver" "$(field "o['nodes'][0]['facts']['driver']")" 535.104.05
wants 0 "2 x Test Card, ? free, driver 535.104.05" "$dtrun" doctor "$net/launch/r.yaml"
inside host1 "$smi"
wants 0 "1 x NVIDIA Other Card, 83.9 GB free, driver 550.1" "$dtrun" doctor "$net/launch/r.yaml"
inside host1 'umount /usr/local/bin'

# The launch uses the result. Nothing of CUDA is on the node except what came with the engine.
toolkit=$(ldd "$DTRUN_BIN/libdtrun-cuda.so" | awk '/cublas/ {print $3}')
on host1 mount -t tmpfs tmpfs "$(dirname "$(realpath "$toolkit")")"
on host1 test ! -e "$toolkit" || fail "host1 sees the toolkit of this machine"
start=$(date +%s%N)
wants 1 "NVIDIA driver" "$dtrun" launch --wait "$net/launch/r.yaml" --set nodes=host1 --set failure.max_restarts=0
took=$((($(date +%s%N) - start) / 1000000))
part=$(on host1 sh -c 'ls /root/.cache/dtrun/bundles/*/bin/libdtrun-cuda.so')
echo "to a GPU node: $(on host1 du -sm --apparent-size "${part%/bin/*}" | cut -f1) MB in $took ms, with the launch"
is "bundles" "$(wc -w <<<"$part")" 1
own='libc|libm|libmvec|libpthread|libdl|librt|libutil|libresolv'
others=$(on host1 ldd "$part" | grep '=>' | grep -vE "=> ${part%/bin/*}/|^[[:space:]]*($own)\.so") &&
    fail "the GPU part needs what is not in its bundle: $others"
wants 0 "installed  " "$dtrun" doctor "$net/launch/r.yaml" --set nodes=host1
