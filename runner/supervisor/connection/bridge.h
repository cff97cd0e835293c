/* bridge: lines to and from one agent.
 *
 * A command (`dtrun-agent connect`, over whatever reaches the node) has one end of a socket pair as
 * its stdin and stdout, and a pipe as its stderr, where it says why a node cannot be reached.
 *
 * Ownership  close kills the command, and frees the bridge once it is buried; no call is made after
 *            it. Closing inside a call is allowed
 * Threads    the loop's
 */
#ifndef DT_CONNECTION_BRIDGE_H
#define DT_CONNECTION_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/error.h"
#include "base/json.h"

typedef struct dt_bridge dt_bridge;

/* All MUST be there. */
typedef struct dt_bridge_calls {
    void (*line)(void *context, const char *text, size_t length, bool cut); /* of the agent */
    void (*batch)(void *context); /* every whole line of what was just read is handed over */
    void (*problem)(void *context, const char *text, size_t length); /* a line of stderr */
    void (*ended)(void *context, const char *why);                   /* once, after its problems */
} dt_bridge_calls;

dt_status dt_bridge_open(dt_bridge **out, uv_loop_t *loop, const char **argv,
                         const dt_bridge_calls *calls, void *context, dt_error *err);
void dt_bridge_close(dt_bridge *bridge); /* accepts NULL */

/* Takes `command`; nothing for a NULL bridge. */
void dt_bridge_send(dt_bridge *bridge, json_t *command);
/* Nothing more is read until it is taken back; what was read is handed over. Accepts NULL. */
void dt_bridge_pause(dt_bridge *bridge, bool pause);
/* The command stands still, and nothing is read, until it is taken back. Accepts NULL. */
void dt_bridge_freeze(dt_bridge *bridge, bool freeze);

#endif
