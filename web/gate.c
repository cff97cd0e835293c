#include "web/gate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Returns true for a name of this machine with the server's port; the port may be missing if it is 80. */
static bool host_is_ours(const char *host, int port, const char *address)
{
    const char *names[] = {"localhost", "127.0.0.1", "[::1]", address};
    char wanted[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(wanted, sizeof(wanted), "%s:%d", names[i], port);
        if (strcasecmp(host, wanted) == 0 || (port == 80 && strcasecmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

/* Returns true for a name of this machine with any port, or without one. */
static bool host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);

        if (strncasecmp(host, names[i], length) == 0 &&
            (host[length] == '\0' ||
             (host[length] == ':' && host[length + 1] != '\0' &&
              host[length + 1 + strspn(host + length + 1, "0123456789")] == '\0')))
            return true;
    }
    return false;
}

int dt_web_gate(const char *method, const char *host, const char *origin, int port,
                const char *address, const char **reason)
{
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *reason = "this page is read-only: use GET or HEAD";
        return 405;
    }
    if (host == NULL || !(port == 0 ? host_is_local(host) : host_is_ours(host, port, address))) {
        *reason = "the Host header does not name this machine: use http://localhost with the "
                  "server's own port (when forwarding it by ssh, the same port on both sides)";
        return 403;
    }
    if (origin != NULL && (strncmp(origin, "http://", 7) != 0 ||
                           !(port == 0 ? strcasecmp(origin + 7, host) == 0
                                       : host_is_ours(origin + 7, port, address)))) {
        *reason = "requests from other sites are refused";
        return 403;
    }
    return 0;
}
