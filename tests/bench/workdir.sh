#!/usr/bin/env bash
# Measures the seconds to send the folder of a command to a host: 10,000 files with 200 MB, then again after one file
# changed; and the same with rsync, if both sides have it. A launch with an empty folder shows what remains without the
# folder.
#
#   DTRUN_BIN=build/release/bin bash tests/bench/workdir.sh [FILES [MB]]
#
# The host is a network namespace with a real sshd (tests/net/net.sh): the limit is ssh on this machine's processors.
. "$(dirname "$0")/../net/lib.sh"
files=${1:-10000} megabytes=${2:-200}
# Room for the bundle, the contents in the cache and the folder, twice: a smaller disk keeps no contents for the next run.
export NET_HOME_SIZE=${NET_HOME_SIZE:-$((4 * megabytes + 700))m}
hosts 1 apart
mkdir -p "$net/launch/empty"
python3 - "$net/launch/full" "$files" "$megabytes" <<'PY'
import os, random, sys
folder, files, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(1)
for i in range(files):
    path = os.path.join(folder, f'part{i % 100}')
    os.makedirs(path, exist_ok=True)
    size = megabytes * 1000000 // files
    with open(os.path.join(path, f'file{i}'), 'wb') as out:
        out.write(random.randbytes(size // 2) + b'a line of text\n' * (size // 30))
PY
cat >"$net/launch/r.yaml" <<END
nodes: [host1]
command: "true"
END
seconds() { # command...
    local start
    start=$(date +%s%N)
    "$@" >"$net/out" 2>&1 </dev/null || fail "$*: $(cat "$net/out")"
    echo "scale=2; ($(date +%s%N) - $start) / 1000000000" | bc
}
launch_with() { seconds "$dtrun" launch --wait "$net/launch/r.yaml" --set "workdir=$net/launch/$1"; }
launch_with empty >/dev/null
printf '%-44s %6s s\n' "launch, empty folder" "$(launch_with empty)"
printf '%-44s %6s s\n' "launch, first send of $files files, $megabytes MB" "$(launch_with full)"
printf '%-44s %6s s\n' "launch, nothing changed" "$(launch_with full)"
echo changed >"$net/launch/full/part7/file7"
printf '%-44s %6s s\n' "launch, one file changed" "$(launch_with full)"
if command -v rsync >/dev/null && ssh host1 rsync --version >/dev/null 2>&1; then
    printf '%-44s %6s s\n' "rsync -az, first" "$(seconds rsync -az "$net/launch/full/" host1:copy/)"
    echo changed again >"$net/launch/full/part7/file7"
    printf '%-44s %6s s\n' "rsync -az, one file changed" "$(seconds rsync -az "$net/launch/full/" host1:copy/)"
fi
