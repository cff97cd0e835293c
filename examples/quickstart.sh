#!/usr/bin/env bash
# From a bare Debian or Ubuntu to a trained model: installs packages, builds, trains a small GPT
# on the English of the fortunes package, and lets it write.
set -euo pipefail
cd "$(dirname "$0")/.."

base/packages.sh build

echo "building"
mkdir -p build
{ cmake --preset release && cmake --build --preset release; } >build/quickstart.log 2>&1 ||
    { tail -n 30 build/quickstart.log; exit 1; }
dtrun=build/release/bin/dtrun

status=0
"$dtrun" launch examples/quickstart.yaml || status=$?
if [ $status -ne 0 ]; then
    [ $status -eq 130 ] || echo "the run did not finish; $dtrun show last says why" >&2
    exit $status
fi

echo
echo "300 characters that it writes:"
echo
"$dtrun" generate last --prompt "A " --tokens 300 --temperature 0.8 --seed 1

echo
echo "Its curves are on the page: start it with $dtrun serve, and open"
"$dtrun" serve --link
