#include "runner/node_setup/node_setup.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* Returns true if an address is in the subnet "10.0.0.0/24". */
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

static bool is_ipv6(const char *address)
{
    return strchr(address, ':') != NULL;
}

/* Compares an address from the environment, such as "fe80::1%eth0", with one of the facts, such as
 * "fe80::1". */
static bool same_address(const char *scoped, const char *address)
{
    size_t length = strcspn(scoped, "%");

    return strlen(address) == length && strncmp(scoped, address, length) == 0;
}

static bool is_named(const json_t *item, const char *interface)
{
    const char *address = text_of(item, "address");

    if (interface[0] == '\0')
        return !json_is_true(json_object_get(item, "loopback"));
    return strcmp(text_of(item, "interface"), interface) == 0 || strcmp(address, interface) == 0 ||
           in_subnet(address, interface);
}

/* Returns the first address that matches `interface`; for "" the first that is not loopback.
 * Link-local addresses are skipped. families: "4", "6", or "46" for IPv4 before IPv6. NULL:
 * none. */
static const char *find(const json_t *facts, const char *interface, const char *families)
{
    const json_t *list = json_object_get(facts, "addresses"), *item;
    size_t i;

    for (; *families != '\0'; families++)
        json_array_foreach((json_t *)list, i, item) {
            const char *address = text_of(item, "address");

            if (is_ipv6(address) == (*families == '6') &&
                !json_is_true(json_object_get(item, "link_local")) && is_named(item, interface))
                return address;
        }
    return NULL;
}

/* Returns the name of the interface that has the address; NULL: none has. */
static const char *interface_with(const json_t *facts, const char *address)
{
    const json_t *list = json_object_get(facts, "addresses"), *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
        if (same_address(address, text_of(item, "address")))
            return text_of(item, "interface");
    return NULL;
}

/* Returns `seen`, the address at which another machine sees this one; if it is link-local, another
 * address of the same interface. NULL: none. */
static const char *find_seen(const json_t *facts, const char *seen)
{
    const char *found = seen[0] != '\0' ? find(facts, seen, "46") : NULL;
    const char *interface = found == NULL && seen[0] != '\0' ? interface_with(facts, seen) : NULL;

    return interface != NULL ? find(facts, interface, "46") : found;
}

static const char *find_preferred(const json_t *facts, const json_t *seen_from,
                                  const char *interface)
{
    const char *found = NULL;

    if (interface[0] == '\0')
        found = find_seen(facts, text_of(facts, "ssh_address"));
    if (interface[0] == '\0' && found == NULL)
        found = find_seen(facts, text_of(seen_from, "ssh_client"));
    return found != NULL ? found : find(facts, interface, "46");
}

/* Returns an address of the family that `preferred` does not have, if possible of the same
 * interface; NULL: none. */
static const char *find_other(const json_t *facts, const char *preferred, const char *interface)
{
    const char *family = is_ipv6(preferred) ? "4" : "6", *name, *found = NULL;

    if (interface[0] != '\0')
        return find(facts, interface, family);
    name = interface_with(facts, preferred);
    if (name != NULL)
        found = find(facts, name, family);
    return found != NULL ? found : find(facts, "", family);
}

static void list_addresses(dt_strbuf *out, const json_t *facts)
{
    const json_t *list = json_object_get(facts, "addresses"), *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
        dt_strbuf_add_fmt(out, "%s%s %s", i > 0 ? ", " : "", text_of(item, "interface"),
                          text_of(item, "address"));
}

static dt_status refuse_no_address(const char *node, const json_t *facts, const char *interface,
                                   dt_error *err)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    list_addresses(&text, facts);
    if (text.length == 0)
        dt_strbuf_add_str(&text, "none");
    if (interface[0] != '\0')
        DT_FAIL(err, DT_ERR_UNSUPPORTED,
                "node '%s' has no address on '%s' (network.interface): it has %s", node, interface,
                text.data);
    else
        DT_FAIL(err, DT_ERR_UNSUPPORTED,
                "node '%s' has no address that other machines can use (loopback and link-local "
                "addresses are not): it has %s; give it one",
                node, text.data);
    dt_strbuf_release(&text);
    return DT_ERR_UNSUPPORTED;
}

dt_status dt_node_addresses_find(dt_node_addresses *out, const char *node, const json_t *facts,
                                 const json_t *seen_from, const char *interface, dt_arena *arena,
                                 dt_error *err)
{
    const char *preferred = find_preferred(facts, seen_from, interface), *other;

    *out = (dt_node_addresses){.node = node};
    if (preferred == NULL)
        return refuse_no_address(node, facts, interface, err);
    other = find_other(facts, preferred, interface);
    out->preferred = dt_arena_strdup(arena, preferred);
    out->other = other != NULL ? dt_arena_strdup(arena, other) : NULL;
    return DT_OK;
}

/* --- a family for all */

static const char *in_family(const dt_node_addresses *one, bool ipv6)
{
    if (is_ipv6(one->preferred) == ipv6)
        return one->preferred;
    return one->other;
}

/* Returns the first node without an address of the family; NULL: all have one. */
static const dt_node_addresses *find_lacking(const dt_node_addresses *node_addresses, int64_t count,
                                             bool ipv6)
{
    for (int64_t i = 0; i < count; i++)
        if (node_addresses[i].preferred != NULL && in_family(&node_addresses[i], ipv6) == NULL)
            return &node_addresses[i];
    return NULL;
}

dt_status dt_node_addresses_agree(const char **chosen, const dt_node_addresses *node_addresses,
                                  int64_t count, dt_error *err)
{
    const dt_node_addresses *no_ipv4 = find_lacking(node_addresses, count, false);
    const dt_node_addresses *no_ipv6 = find_lacking(node_addresses, count, true);
    int64_t ipv6_votes = 0;
    bool ipv6;

    if (no_ipv4 != NULL && no_ipv6 != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "nodes '%s' and '%s' cannot connect: '%s' has only an IPv4 address (%s), "
                       "'%s' has only an IPv6 address (%s): give all nodes an address of one "
                       "family, or name an interface that has one on all (network.interface)",
                       no_ipv6->node, no_ipv4->node, no_ipv6->node, no_ipv6->preferred,
                       no_ipv4->node, no_ipv4->preferred);
    for (int64_t i = 0; i < count; i++)
        if (node_addresses[i].preferred != NULL)
            ipv6_votes += is_ipv6(node_addresses[i].preferred) ? 1 : -1;
    ipv6 = no_ipv4 != NULL || (no_ipv6 == NULL && ipv6_votes > 0);
    for (int64_t i = 0; i < count; i++)
        chosen[i] =
            node_addresses[i].preferred != NULL ? in_family(&node_addresses[i], ipv6) : NULL;
    return DT_OK;
}
