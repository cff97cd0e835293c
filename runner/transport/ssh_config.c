#include "runner/transport/ssh_config.h"

#include <string.h>

#include "base/child.h"

#define RESOLVE_SECONDS   10.0 /* a 'Match exec' of the user's configuration can be slow */
#define ASK_SECONDS       12.0
#define RESOLVE_MAX_BYTES ((size_t)1 << 20)

bool dt_ssh_resolve(dt_strbuf *out, const char *host)
{
    const char *const argv[] = {"ssh", "-G", "--", host, NULL};
    int code;

    dt_strbuf_reset(out);
    if (dt_child_run(&code,
                     &(dt_child_call){.argv = argv,
                                      .out = out,
                                      .most_bytes = RESOLVE_MAX_BYTES,
                                      .seconds = RESOLVE_SECONDS},
                     NULL) != DT_OK ||
        code != 0)
        dt_strbuf_reset(out);
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

char *dt_ssh_resolved_value(const char *resolved, const char *key, dt_arena *arena)
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

const char *dt_ssh_jump_url(const char *jump, dt_arena *arena)
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
    if (depth < DT_SSH_JUMPS_MAX && dt_ssh_resolve(&resolved, host)) {
        list = dt_ssh_resolved_value(resolved.data, "proxyjump", arena);
        if (depth == 0)
            out->command = dt_ssh_resolved_value(resolved.data, "proxycommand", arena);
        while (list != NULL && (next = strsep(&list, ",")) != NULL) {
            const char *url = first ? dt_ssh_jump_url(next, arena) : NULL;

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
