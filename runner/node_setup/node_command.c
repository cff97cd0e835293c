/* node_command: returns the argv with which the supervisor runs a command on a node. For another
 * machine it runs dtrun-reach, which limits concurrent logins, drops the login shell's output, and
 * explains failures. */
#include <string.h>

#include "base/dirs.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/transport.h"

bool dt_nodes_is_here(const char *node)
{
    return dt_transport_local.reaches(node);
}

/* flag: an option of dtrun-reach, or NULL. */
static dt_status reach_command(const char ***argv, const char *flag, const char *node,
                               const char *const *words, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    size_t count = 0, n = 1;

    while (words[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 4, sizeof((*argv)[0]));
    DT_TRY(dt_dir_program(&(*argv)[0], "dtrun-reach", "DTRUN_REACH", arena, err));
    if (flag != NULL)
        (*argv)[n++] = flag;
    (*argv)[n++] = node;
    memcpy(*argv + n, words, (count + 1) * sizeof(words[0]));
out:
    return st;
}

dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          bool renew, dt_arena *arena, dt_error *err)
{
    const dt_transport *transport;
    dt_status st;

    *argv = NULL;
    DT_TRY(dt_transport_find(&transport, node, err));
    if (transport->explain == NULL)
        DT_TRY(transport->command(argv, node, words, arena, err));
    else
        DT_TRY(reach_command(argv, renew ? "--renew" : NULL, node, words, arena, err));
out:
    return st;
}

dt_status dt_node_probe_command(const char ***argv, const char *node, const char *const *words,
                                dt_arena *arena, dt_error *err)
{
    return reach_command(argv, "--probe", node, words, arena, err);
}
