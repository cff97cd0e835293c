#include "runner/node_setup/address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#include "base/banned.h"

/* Whether an address lies in "10.0.0.0/24". */
static bool in_subnet(const char *address, const char *subnet)
{
    const char *slash = strchr(subnet, '/');
    unsigned char a[16], b[16];
    char network[64], *end;
    int family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
    long bits;

    if (slash == NULL || (size_t)(slash - subnet) >= sizeof(network))
        return false;
    memcpy(network, subnet, (size_t)(slash - subnet));
    network[slash - subnet] = '\0';
    bits = strtol(slash + 1, &end, 10);
    if (*end != '\0' || bits < 0 || bits > (family == AF_INET ? 32 : 128) ||
        inet_pton(family, address, a) != 1 || inet_pton(family, network, b) != 1)
        return false;
    for (long i = 0; i < bits; i++)
        if (((a[i / 8] ^ b[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return true;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* What `interface` names; "": the first that is not loopback, IPv4 before IPv6. */
static const char *find(const json_t *facts, const char *interface)
{
    const json_t *list = json_object_get(facts, "addresses"), *item;
    const char *found = NULL;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
    {
        const char *address = text_of(item, "address");
        bool is_good = interface[0] == '\0'
                           ? !json_is_true(json_object_get(item, "loopback"))
                           : strcmp(text_of(item, "interface"), interface) == 0 ||
                                 strcmp(address, interface) == 0 || in_subnet(address, interface);

        if (is_good && (found == NULL || strchr(found, ':') != NULL))
            found = address;
    }
    return found;
}

static void list_addresses(dt_strbuf *out, const json_t *facts)
{
    const json_t *list = json_object_get(facts, "addresses"), *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item) dt_strbuf_add_fmt(
        out, "%s%s %s", i > 0 ? ", " : "", text_of(item, "interface"), text_of(item, "address"));
}

dt_status dt_node_address(const char **out, const char *node, const json_t *facts,
                          const json_t *seen_from, const char *interface, dt_arena *arena,
                          dt_error *err)
{
    const char *address = NULL;
    dt_strbuf all;

    *out = NULL;
    if (interface[0] == '\0' && text_of(facts, "ssh_address")[0] != '\0')
        address = find(facts, text_of(facts, "ssh_address"));
    if (interface[0] == '\0' && address == NULL && text_of(seen_from, "ssh_client")[0] != '\0')
        address = find(facts, text_of(seen_from, "ssh_client"));
    if (address == NULL)
        address = find(facts, interface);
    if (address == NULL) {
        dt_strbuf_init(&all);
        list_addresses(&all, facts);
        DT_FAIL(err, DT_ERR_UNSUPPORTED,
                "node '%s' has no address on '%s' (network.interface): it has %s", node, interface,
                all.data);
        dt_strbuf_release(&all);
        return DT_ERR_UNSUPPORTED;
    }
    *out = dt_arena_strdup(arena, address);
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}
