/* ssh_config: asks ssh for its configuration of a host (ssh -G), and why it cannot connect to it.
 *
 * Ownership  results live in the arena
 * Threads    any; each call runs ssh, for 12 s at most
 */
#ifndef DT_RUNNER_SSH_CONFIG_H
#define DT_RUNNER_SSH_CONFIG_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/strbuf.h"

#define DT_SSH_JUMPS_MAX 8

/* Replaces `out` with what 'ssh -G' prints for a host; false, and `out` empty, if ssh fails or does not end. */
bool dt_ssh_resolve(dt_strbuf *out, const char *host);

/* Returns the value of the line "KEY ..." in the output of ssh -G; NULL if there is none. */
char *dt_ssh_resolved_value(const char *resolved, const char *key, dt_arena *arena);

/* Returns a jump host, [user@]host[:port] or a URL, as a URL: the only form in which ssh's command line takes a port. */
const char *dt_ssh_jump_url(const char *jump, dt_arena *arena);

/* The hosts, or the command, that a connection to a node passes through. */
typedef struct dt_ssh_way {
    const char *jumps[DT_SSH_JUMPS_MAX]; /* in the order in which a connection passes them */
    int count;
    const char *command; /* a ProxyCommand; NULL: none */
} dt_ssh_way;

/* Finds the jump hosts and the ProxyCommand of a node; none if ssh cannot resolve the node. */
void dt_ssh_way_find(dt_ssh_way *out, const char *node, dt_arena *arena);

/* Replaces `out` with ssh's messages for a connection that is not shared and does not sign in. With a connection that can
 * be shared (ControlPersist) ssh drops the messages of a jump host or a ProxyCommand. */
void dt_ssh_ask_why(dt_strbuf *out, const char *node);

#endif
