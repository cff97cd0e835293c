#include "runner/transport/ssh_socket.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/strbuf.h"
#include "runner/transport/ssh_config.h"

#define JUMPS_MAX 16

static void add(XXH3_state_t *hash, const char *text)
{
    XXH3_128bits_update(hash, text, strlen(text) + 1);
}

/* Adds a host's configuration to the hash, and appends its jump hosts to the list. */
static void add_host(XXH3_state_t *hash, const char *host, const char **jumps, size_t *count,
                     dt_arena *arena)
{
    dt_strbuf resolved;
    char *list, *next;

    dt_strbuf_init(&resolved);
    add(hash, host);
    if (dt_ssh_resolve(&resolved, host)) {
        add(hash, resolved.data);
        list = dt_ssh_resolved_value(resolved.data, "proxyjump", arena);
        while (list != NULL && (next = strsep(&list, ",")) != NULL)
            if (*count < JUMPS_MAX && next[0] != '\0')
                jumps[(*count)++] = dt_ssh_jump_url(next, arena);
    }
    dt_strbuf_release(&resolved);
}

dt_status dt_ssh_socket_name(const char **out, const char *node, dt_arena *arena, dt_error *err)
{
    XXH3_state_t *hash = XXH3_createState();
    const char *jumps[JUMPS_MAX];
    XXH128_canonical_t digest;
    char name[DT_SSH_SOCKET_NAME_BYTES + 1];
    size_t count = 0;

    *out = NULL;
    if (hash == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    XXH3_128bits_reset(hash);
    add_host(hash, node, jumps, &count, arena);
    for (size_t i = 0; i < count; i++)
        add_host(hash, jumps[i], jumps, &count, arena);
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(hash));
    for (size_t i = 0; i < sizeof(digest.digest); i++)
        snprintf(name + 2 * i, 3, "%02x", digest.digest[i]);
    *out = dt_arena_strdup(arena, name);
    XXH3_freeState(hash);
    return DT_OK;
}
