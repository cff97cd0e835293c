#!/usr/bin/env bash
# examples/quickstart.sh in a copy of the source: it counts while it builds, does not build the GPU part just because
# nvcc is there, and reports after Ctrl-C what is left.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work/state

base/packages.sh build >/dev/null 2>&1 || { echo "packages of the build are missing"; exit 77; }
mkdir "$work/source" "$work/bin"
tar -c --exclude=./build --exclude=./.git --exclude='./tests/museum' . | tar -x -C "$work/source"
command -v nvcc >/dev/null || { printf '#!/bin/sh\nexit 1\n' >"$work/bin/nvcc"; chmod +x "$work/bin/nvcc"; }
export PATH=$work/bin:$PATH

python3 - "$work" <<'PY'
import os, pty, re, select, signal, subprocess, sys, time
work = sys.argv[1]
main, terminal = pty.openpty()
child = subprocess.Popen(["examples/quickstart.sh"], cwd=work + "/source", stdin=subprocess.DEVNULL, stdout=terminal,
                         stderr=terminal, start_new_session=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
os.close(terminal)
text, asked, counts = "", False, set()
while True:
    try:
        data = os.read(main, 65536)
    except OSError:
        break
    if not data:
        break
    text += data.decode(errors="replace")
    counts = set(re.findall(r"building, step (\d+) of \d+", text))
    if len(counts) >= 3 and not asked:
        asked = True
        os.killpg(child.pid, signal.SIGINT)
code = child.wait()
cache = open(work + "/source/build/release/CMakeCache.txt").read()
rules = open(work + "/source/build/release/build.ninja").read()
print(text[-2000:])
assert asked and len(counts) >= 3, "no count"
assert code == 130, code
assert "interrupted while building: build/release has what is built so far" in text
assert "rm -r build/release" in text and "continues" in text
assert re.search(r"^DT_CUDA:\w+=OFF$", cache, re.M), "the GPU part is built"
assert ".cu.o" not in rules
PY
echo good
