/* connections: limits the connections that all processes of this user are opening at once, and bypasses a
 * shared connection that is stuck. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/transport/remote.h"
#include "runner/transport/transport_int.h"

/* --- slots, and the folder of slots and control sockets */

/* A socket's path has at most 107 bytes: the folder, "/", the socket's name and the suffix of ssh's temporary
 * name (17). */
#define FOLDER_MAX_BYTES  (107 - 1 - DT_SSH_SOCKET_NAME_BYTES - 17)
#define TRY_EVERY_SECONDS 0.05

/* Makes the folder; returns whether it is private. /tmp is writable by all users, and the owner of the folder could
 * pose as a node. */
static bool make_private(const char *path)
{
    struct stat info;

    if (strlen(path) > FOLDER_MAX_BYTES || (mkdir(path, 0700) != 0 && errno != EEXIST))
        return false;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 077) == 0;
}

dt_status dt_connection_slots_folder(const char **out, dt_arena *arena, dt_error *err)
{
    unsigned long user = (unsigned long)geteuid();
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *cache = NULL, *tried = NULL;
    const char *paths[4];
    size_t count = 0;

    if (runtime != NULL && runtime[0] == '/' && access(runtime, W_OK | X_OK) == 0)
        paths[count++] = dt_arena_printf(arena, "%s/dtrun", runtime);
    paths[count++] = dt_arena_printf(arena, "/tmp/dtrun-%lu", user);
    /* where another user has taken the name in /tmp */
    paths[count++] = dt_arena_printf(arena, "/run/user/%lu/dtrun", user);
    if (dt_dir_make(&cache, DT_DIR_CACHE, arena, NULL) == DT_OK)
        paths[count++] = dt_arena_printf(arena, "%s/ssh", cache);
    for (size_t i = 0; i < count; i++) {
        if (make_private(paths[i])) {
            *out = paths[i];
            return DT_OK;
        }
        tried = tried == NULL ? paths[i] : dt_arena_printf(arena, "%s', '%s", tried, paths[i]);
    }
    *out = NULL;
    return DT_FAIL(err, DT_ERR_IO,
                   "cannot make a private folder for ssh's sockets: none of '%s' is a folder of "
                   "yours with mode 0700 and a path of at most %d bytes: set XDG_RUNTIME_DIR to a "
                   "folder of your own with a short name",
                   tried, FOLDER_MAX_BYTES);
}

dt_status dt_connection_slot_take(int *fd, double timeout_seconds, const atomic_bool *cancelled,
                                  dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + timeout_seconds;
    const char *folder;
    dt_arena arena;
    dt_status st;

    *fd = -1;
    dt_arena_init(&arena, 1024);
    DT_TRY(dt_connection_slots_folder(&folder, &arena, err));
    for (;;) {
        for (int i = 0; i < DT_SLOT_COUNT; i++) {
            char path[FOLDER_MAX_BYTES + 32];
            dt_error problem = DT_ERROR_INIT;

            snprintf(path, sizeof(path), "%s/slot-%d", folder, i);
            st = dt_file_lock(fd, path, &problem);
            if (st == DT_OK)
                goto out;
            if (st != DT_ERR_BUSY)
                DT_THROW(err, st, "%s", problem.message);
        }
        if (cancelled != NULL && atomic_load(cancelled))
            DT_THROW(err, DT_ERR_BUSY, "cancelled");
        if (dt_clock_monotonic_seconds() > deadline)
            DT_THROW(err, DT_ERR_TIMEOUT,
                     "%d other connections were still being opened after %.0f s", DT_SLOT_COUNT,
                     timeout_seconds);
        dt_clock_sleep_seconds(TRY_EVERY_SECONDS);
    }
out:
    dt_arena_release(&arena);
    return st;
}

/* renew: bypasses a shared connection that is stuck.
 *
 * Commands to a node share one connection. After an interruption TCP retransmits at growing
 * intervals: a connection that was cut for ten seconds may stay silent for twenty-five, while a new
 * one works at once.
 */

#define PATIENCE_SECONDS 2.0

/* Returns true for a stopped process whose title is "ssh: FOLDER/NAME [mux]", which ssh gives to a
 * master. */
static bool is_paused_master(const void *context, char state, const char *words, size_t length)
{
    const char *socket = context;

    return dt_proc_is_paused(state) && length > 0 && strncmp(words, socket, strlen(socket)) == 0 &&
           strstr(words, "[mux]") != NULL;
}

/* Kills ssh masters that a signal has stopped: they block all runs, and do not answer 'ssh -O
 * stop'. */
static void end_paused_masters(dt_arena *arena)
{
    const char *folder, *socket = NULL;

    if (dt_connection_slots_folder(&folder, arena, NULL) == DT_OK)
        socket = dt_arena_printf(arena, "ssh: %s/", folder);
    if (socket != NULL)
        (void)dt_proc_end_all("cmdline", is_paused_master, socket, PATIENCE_SECONDS);
}

void dt_remote_renew(const char *node)
{
    const dt_transport *transport;
    const char **argv;
    dt_arena arena;
    int code;

    dt_arena_init(&arena, 4096);
    end_paused_masters(&arena);
    if (dt_transport_find(&transport, node, NULL) == DT_OK && transport->renew != NULL &&
        transport->renew(&argv, node, &arena, NULL) == DT_OK)
        (void)dt_child_run(&code, &(dt_child_call){.argv = argv, .seconds = PATIENCE_SECONDS},
                           NULL);
    dt_arena_release(&arena);
}
