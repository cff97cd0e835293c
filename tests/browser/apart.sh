#!/usr/bin/env bash
# apart.sh COMMAND...: runs the command in a separate network namespace that has only a loopback. Chromium aborts its
# requests when an interface of its machine appears or disappears (ERR_NETWORK_CHANGED), and the tests over network
# namespaces make bridges. Where namespaces are not allowed, these tests make no bridges either.
set -euo pipefail
if unshare -n true 2>/dev/null; then
    exec unshare -n sh -c 'ip link set lo up && exec "$@"' apart "$@"
fi
exec "$@"
