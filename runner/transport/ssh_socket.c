#define _GNU_SOURCE
#include "runner/transport/ssh_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/startup.h"
#include "base/strbuf.h"

#include "base/banned.h"

#define RESOLVE_SECONDS  10.0 /* a 'Match exec' of the user's configuration may take a while */
#define RESOLVE_MAX_BYTES ((size_t)1 << 20)
#define JUMPS_MAX        16

extern char **environ;

/* Adds what fd brings until its end; false if the deadline passes first. */
static bool read_until(dt_strbuf *out, int fd, double deadline)
{
    char bytes[4096];

    while (out->length < RESOLVE_MAX_BYTES) {
        double left = deadline - dt_clock_monotonic_seconds();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (left <= 0 || poll(&ready, 1, (int)(left * 1e3) + 1) == 0)
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

/* Replaces `out` with what 'ssh -G' prints for a host; false, and `out` empty, if ssh fails or does not end. */
static bool resolve(dt_strbuf *out, const char *host)
{
    const char *argv[] = {"ssh", "-G", "--", host, NULL};
    double deadline = dt_clock_monotonic_seconds() + RESOLVE_SECONDS;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2], status = -1;
    bool whole = false;
    pid_t pid;

    dt_strbuf_reset(out);
    if (dt_startup_spawn_attributes(&attributes, 0) != 0)
        return false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        posix_spawnattr_destroy(&attributes);
        return false;
    }
    if (posix_spawn_file_actions_init(&actions) == 0) {
        if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_adddup2(&actions, ends[1], 1) == 0 &&
            posix_spawnp(&pid, argv[0], &actions, &attributes, (char *const *)argv, environ) == 0) {
            close(ends[1]);
            ends[1] = -1;
            whole = read_until(out, ends[0], deadline);
            if (!whole)
                kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    close(ends[0]);
    if (ends[1] >= 0)
        close(ends[1]);
    if (!whole || status != 0)
        dt_strbuf_reset(out);
    return out->length > 0;
}

/* The value of the line "proxyjump ..." of what ssh -G printed, in the arena; NULL if there is none. */
static char *proxy_jump(const char *resolved, dt_arena *arena)
{
    static const char key[] = "\nproxyjump ";
    const char *at = strstr(resolved, key);

    if (at == NULL)
        return NULL;
    at += sizeof(key) - 1;
    return dt_arena_strndup(arena, at, strcspn(at, "\n"));
}

/* A jump host, [user@]host[:port] or a URL, as a URL: ssh takes a port on its command line in no other form. */
static const char *as_url(const char *jump, dt_arena *arena)
{
    static const char scheme[] = "ssh://";

    return strncmp(jump, scheme, strlen(scheme)) == 0 ? jump
                                                      : dt_arena_printf(arena, "%s%s", scheme, jump);
}

static void add(XXH3_state_t *hash, const char *text)
{
    XXH3_128bits_update(hash, text, strlen(text) + 1);
}

/* Adds a host's configuration to the hash, and its jump hosts to the end of the list. */
static void add_host(XXH3_state_t *hash, const char *host, const char **jumps, size_t *count,
                     dt_arena *arena)
{
    dt_strbuf resolved;
    char *list, *next;

    dt_strbuf_init(&resolved);
    add(hash, host);
    if (resolve(&resolved, host)) {
        add(hash, resolved.data);
        list = proxy_jump(resolved.data, arena);
        while (list != NULL && (next = strsep(&list, ",")) != NULL)
            if (*count < JUMPS_MAX && next[0] != '\0')
                jumps[(*count)++] = as_url(next, arena);
    }
    dt_strbuf_release(&resolved);
}

dt_status dt_ssh_socket_name(const char **out, const char *node, dt_arena *arena, dt_error *err)
{
    XXH3_state_t *hash = XXH3_createState();
    const char *jumps[JUMPS_MAX];
    XXH128_canonical_t digest;
    char name[DT_SSH_SOCKET_NAME_BYTES + 1];
    dt_status st = DT_OK;
    size_t count = 0;

    *out = NULL;
    if (hash == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    XXH3_128bits_reset(hash);
    add_host(hash, node, jumps, &count, arena);
    for (size_t i = 0; i < count; i++) {
        if (jumps[i] == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        add_host(hash, jumps[i], jumps, &count, arena);
    }
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(hash));
    for (size_t i = 0; i < sizeof(digest.digest); i++)
        snprintf(name + 2 * i, 3, "%02x", digest.digest[i]);
    *out = dt_arena_strdup(arena, name);
    if (*out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
out:
    XXH3_freeState(hash);
    return st;
}
