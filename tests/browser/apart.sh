#!/usr/bin/env bash
# apart.sh COMMAND...: in a network of its own, where a loopback is all there is. Chromium gives up what it
# loads when an interface of its machine comes or goes (ERR_NETWORK_CHANGED), and the tests over network
# namespaces make bridges. Who may not have a network of its own makes no bridges either.
set -euo pipefail
if unshare -n true 2>/dev/null; then
    exec unshare -n sh -c 'ip link set lo up && exec "$@"' apart "$@"
fi
exec "$@"
