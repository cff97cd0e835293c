#include "runner/transport/ssh_config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/startup.h"

#define RESOLVE_SECONDS   10.0 /* a 'Match exec' of the user's configuration can be slow */
#define ASK_SECONDS       12.0
#define RESOLVE_MAX_BYTES ((size_t)1 << 20)

extern char **environ;

/* Appends what `fd` delivers until end of file; false if the deadline passes first. */
static bool read_until(dt_strbuf *out, int fd, double deadline)
{
    char bytes[4096];

    while (out->length < RESOLVE_MAX_BYTES) {
        double left = deadline - dt_clock_monotonic_seconds();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t got;
        int count;

        if (left <= 0)
            return false;
        count = poll(&ready, 1, (int)(left * 1e3) + 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        got = read(fd, bytes, sizeof(bytes));
        if (got == 0)
            return true;
        if (got > 0)
            dt_strbuf_add(out, bytes, (size_t)got);
        else if (errno != EINTR)
            return false;
    }
    return false;
}

/* Runs ssh and replaces `out` with what it writes to `fd` (1 or 2); its other descriptors are
 * /dev/null. *status is its wait status. Returns false if ssh cannot be run, or does not end in
 * time. */
static bool run(dt_strbuf *out, int *status, const char *const *argv, int fd, double seconds)
{
    double deadline = dt_clock_monotonic_seconds() + seconds;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    bool whole = false;
    int ends[2];
    pid_t pid;

    dt_strbuf_reset(out);
    *status = -1;
    if (dt_startup_spawn_attributes(&attributes, 0) != 0)
        return false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        posix_spawnattr_destroy(&attributes);
        return false;
    }
    if (posix_spawn_file_actions_init(&actions) == 0) {
        if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, 3 - fd, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_adddup2(&actions, ends[1], fd) == 0 &&
            posix_spawnp(&pid, argv[0], &actions, &attributes, (char *const *)argv, environ) == 0) {
            close(ends[1]);
            ends[1] = -1;
            whole = read_until(out, ends[0], deadline);
            if (!whole)
                kill(pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                ;
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    return whole;
}

bool dt_ssh_resolve(dt_strbuf *out, const char *host)
{
    const char *const argv[] = {"ssh", "-G", "--", host, NULL};
    int status;

    if (!run(out, &status, argv, 1, RESOLVE_SECONDS) || status != 0)
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
    int status;

    (void)run(out, &status, argv, 2, ASK_SECONDS);
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
