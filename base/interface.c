#include "base/interface.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

bool dt_interface_name(char out[DT_INTERFACE_SIZE], const char *address)
{
    struct ifaddrs *all;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        int family = one->ifa_addr != NULL ? one->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t length =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        char text[NI_MAXHOST];

        if (family != AF_INET && family != AF_INET6)
            continue;
        found =
            getnameinfo(one->ifa_addr, length, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
            strcmp(text, address) == 0;
        if (found)
            snprintf(out, DT_INTERFACE_SIZE, "%s", one->ifa_name);
    }
    freeifaddrs(all);
    return found;
}
