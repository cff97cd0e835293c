/* ssh_config: asks ssh for its configuration of a host (ssh -G) and why it cannot connect to it, and names
 * the control socket of the connection that commands to one node share. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "runner/transport/transport_int.h"

#define RESOLVE_SECONDS   10.0 /* a 'Match exec' of the user's configuration can be slow */
#define ASK_SECONDS       12.0
#define RESOLVE_MAX_BYTES ((size_t)1 << 20)

/* What ssh answered in the last seconds: the preparation of a node runs many commands there, each of which needs it. */
#define KNOWN_SECONDS 5.0
enum { KNOWN_MAX = 128 };

static struct known {
    char host[256];
    dt_strbuf answer; /* kept when the place is used again */
    double asked;     /* 0: unused */
} known_hosts[KNOWN_MAX];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the place of this host, or the one that was asked longest ago; call with the lock held. */
static struct known *place_of(const char *host)
{
    struct known *oldest = &known_hosts[0];

    for (int i = 0; i < KNOWN_MAX; i++) {
        if (known_hosts[i].asked > 0 && strcmp(known_hosts[i].host, host) == 0)
            return &known_hosts[i];
        if (known_hosts[i].asked < oldest->asked)
            oldest = &known_hosts[i];
    }
    return oldest;
}

static bool recall(dt_strbuf *out, const char *host)
{
    const struct known *place;
    bool found;

    pthread_mutex_lock(&known_lock);
    place = place_of(host);
    found = place->asked > 0 && strcmp(place->host, host) == 0 &&
            dt_clock_monotonic_seconds() - place->asked < KNOWN_SECONDS;
    if (found)
        dt_strbuf_add(out, place->answer.data, place->answer.length);
    pthread_mutex_unlock(&known_lock);
    return found;
}

void dt_ssh_forget(void)
{
    pthread_mutex_lock(&known_lock);
    for (int i = 0; i < KNOWN_MAX; i++)
        known_hosts[i].host[0] = '\0';
    pthread_mutex_unlock(&known_lock);
}

static void remember(const char *host, const dt_strbuf *answer, double asked)
{
    struct known *place;

    if (strlen(host) >= sizeof(place->host))
        return;
    pthread_mutex_lock(&known_lock);
    place = place_of(host);
    if (place->asked == 0)
        dt_strbuf_init(&place->answer);
    dt_strbuf_reset(&place->answer);
    dt_strbuf_add(&place->answer, answer->data, answer->length);
    memcpy(place->host, host, strlen(host) + 1);
    place->asked = asked;
    pthread_mutex_unlock(&known_lock);
}

/* Replaces `out` with what 'ssh -G' prints for a host; false, and `out` empty, if ssh fails or does not end. */
static bool ssh_resolve(dt_strbuf *out, const char *host)
{
    double asked = dt_clock_monotonic_seconds();
    const char *const argv[] = {"ssh", "-G", "--", host, NULL};
    int code;

    dt_strbuf_reset(out);
    if (recall(out, host))
        return true;
    if (dt_child_run(&code,
                     &(dt_child_call){.argv = argv,
                                      .out = out,
                                      .most_bytes = RESOLVE_MAX_BYTES,
                                      .seconds = RESOLVE_SECONDS},
                     NULL) != DT_OK ||
        code != 0)
        dt_strbuf_reset(out);
    if (out->length > 0)
        remember(host, out, asked);
    return out->length > 0;
}

void dt_ssh_ask_why(dt_strbuf *out, const char *node)
{
    const char *const argv[] = {"ssh",
                                "-o",
                                "BatchMode=yes",
                                "-o",
                                "StrictHostKeyChecking=yes",
                                "-o",
                                "ConnectTimeout=8",
                                "-o",
                                "ControlMaster=no",
                                "-o",
                                "ControlPath=none",
                                "-o",
                                "PreferredAuthentications=none",
                                "-o",
                                "LogLevel=INFO",
                                "--",
                                node,
                                "true",
                                NULL};
    int code;

    dt_strbuf_reset(out);
    (void)dt_child_run(
        &code,
        &(dt_child_call){
            .argv = argv, .errors = out, .most_bytes = RESOLVE_MAX_BYTES, .seconds = ASK_SECONDS},
        NULL);
}

/* Returns the value of the line "KEY ..." in the output of ssh -G; NULL if there is none. */
static char *ssh_resolved_value(const char *resolved, const char *key, dt_arena *arena)
{
    const char *line, *end;
    size_t length = strlen(key);

    for (line = resolved; *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if ((size_t)(end - line) > length && strncmp(line, key, length) == 0 && line[length] == ' ')
            return dt_arena_strndup(arena, line + length + 1, (size_t)(end - line) - length - 1);
    }
    return NULL;
}

/* Returns a jump host, [user@]host[:port] or a URL, as a URL: the only form in which ssh's command line
 * takes a port. */
static const char *ssh_jump_url(const char *jump, dt_arena *arena)
{
    static const char scheme[] = "ssh://";

    return strncmp(jump, scheme, strlen(scheme)) == 0
               ? jump
               : dt_arena_printf(arena, "%s%s", scheme, jump);
}

/* Adds the jump hosts of `host` in the order in which a connection passes them. ssh reaches the
 * first jump host with that host's own configuration, and each later one through those before
 * it. */
static void add_jumps(dt_ssh_way *out, const char *host, int depth, dt_arena *arena)
{
    dt_strbuf resolved;
    char *list, *next;
    bool first = true;

    dt_strbuf_init(&resolved);
    if (depth < DT_SSH_JUMPS_MAX && ssh_resolve(&resolved, host)) {
        list = ssh_resolved_value(resolved.data, "proxyjump", arena);
        if (depth == 0)
            out->command = ssh_resolved_value(resolved.data, "proxycommand", arena);
        while (list != NULL && (next = strsep(&list, ",")) != NULL) {
            const char *url = first ? ssh_jump_url(next, arena) : NULL;

            if (url != NULL)
                add_jumps(out, url, depth + 1, arena);
            first = false;
            if (out->count < DT_SSH_JUMPS_MAX)
                out->jumps[out->count++] = next;
        }
    }
    dt_strbuf_release(&resolved);
}

void dt_ssh_way_find(dt_ssh_way *out, const char *node, dt_arena *arena)
{
    *out = (dt_ssh_way){.count = 0};
    add_jumps(out, node, 0, arena);
}

/* --- the name of the control socket */

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
    if (ssh_resolve(&resolved, host)) {
        add(hash, resolved.data);
        list = ssh_resolved_value(resolved.data, "proxyjump", arena);
        while (list != NULL && (next = strsep(&list, ",")) != NULL)
            if (*count < JUMPS_MAX && next[0] != '\0')
                jumps[(*count)++] = ssh_jump_url(next, arena);
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
