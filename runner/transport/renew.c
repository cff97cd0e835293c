/* renew: bypasses a shared connection that is stuck.
 *
 * Commands to a node share one connection. After an interruption TCP retransmits at growing
 * intervals: a connection that was cut for ten seconds may stay silent for twenty-five, while a new
 * one works at once.
 */
#include <string.h>

#include "base/child.h"
#include "base/proc_end.h"
#include "runner/transport/connection_slots.h"
#include "runner/transport/remote.h"

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
