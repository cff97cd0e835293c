/* renew: bypasses a shared connection that is stuck.
 *
 * Commands to a node share one connection. After an interruption TCP retransmits at growing
 * intervals: a connection that was cut for ten seconds may stay silent for twenty-five, while a new
 * one works at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc_end.h"
#include "base/startup.h"
#include "runner/transport/connection_slots.h"
#include "runner/transport/remote.h"

#define PATIENCE_SECONDS 2.0
#define SLICE_SECONDS    0.005

extern char **environ;

static bool has_ended(pid_t pid)
{
    pid_t got;

    do
        got = waitpid(pid, NULL, WNOHANG);
    while (got < 0 && errno == EINTR);
    return got != 0;
}

static void run_quietly(const char **argv)
{
    double deadline = dt_clock_monotonic_seconds() + PATIENCE_SECONDS;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    bool started;
    pid_t pid;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return;
    if (dt_startup_spawn_attributes(&attributes, 0) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return;
    }
    started = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0) == 0 &&
              posix_spawn_file_actions_adddup2(&actions, 0, 1) == 0 &&
              posix_spawn_file_actions_adddup2(&actions, 0, 2) == 0 &&
              posix_spawnp(&pid, argv[0], &actions, &attributes, (char *const *)argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (!started)
        return;
    while (!has_ended(pid)) {
        if (dt_clock_monotonic_seconds() > deadline)
            kill(pid, SIGKILL);
        dt_clock_sleep_seconds(SLICE_SECONDS);
    }
}

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

    dt_arena_init(&arena, 4096);
    end_paused_masters(&arena);
    if (dt_transport_find(&transport, node, NULL) == DT_OK && transport->renew != NULL &&
        transport->renew(&argv, node, &arena, NULL) == DT_OK)
        run_quietly(argv);
    dt_arena_release(&arena);
}
