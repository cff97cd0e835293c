/* bridge: exchanges lines with one agent.
 *
 * A command (`dtrun-agent connect`, run through ssh or another transport) has one end of a socket pair as
 * its stdin and stdout, and a pipe as its stderr, on which it reports why a node cannot be reached.
 *
 * Ownership  close kills the command, and frees the bridge once the command is reaped; no callback is
 *            called after close. close may be called inside a callback
 * Threads    call from the loop's thread
 */
#ifndef DT_CONNECTION_BRIDGE_H
#define DT_CONNECTION_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"
#include "base/json.h"

typedef struct dt_bridge dt_bridge;

/* All MUST be set. */
typedef struct dt_bridge_calls {
    /* a line of the agent */
    void (*line)(void *context, const char *text, size_t length, bool cut);
    void (*batch)(void *context); /* all complete lines of the last read were delivered */
    void (*problem)(void *context, const char *text, size_t length); /* a line of stderr */
    /* once, after the last `problem` */
    void (*ended)(void *context, const char *why);
} dt_bridge_calls;

dt_status dt_bridge_open(dt_bridge **out, uv_loop_t *loop, const char **argv,
                         const dt_bridge_calls *calls, void *context, dt_error *err);
void dt_bridge_close(dt_bridge *bridge); /* accepts NULL */

/* Sends a command; takes `command`. Does nothing if the bridge is NULL. */
void dt_bridge_send(dt_bridge *bridge, json_t *command);
/* Stops or resumes reading; lines that were read are still delivered. Accepts NULL. */
void dt_bridge_pause(dt_bridge *bridge, bool pause);
/* Suspends or resumes the command, and reading from it. Accepts NULL. */
void dt_bridge_freeze(dt_bridge *bridge, bool freeze);

#endif
