/* node_process: runs a command on a node and reports its exit code. Its streams are /dev/null.
 *
 * Ownership  frees itself after `exited`; let_go kills the command, cancels the callback and frees the
 *            process once it is reaped
 * Threads    call from the loop's thread
 */
#ifndef DT_CONNECTION_NODE_PROCESS_H
#define DT_CONNECTION_NODE_PROCESS_H

#include <stdint.h>
#include <uv.h>

#include "base/error.h"

typedef struct dt_node_process dt_node_process;

/* number: the signal that killed it, 0: none. The process pointer is invalid from here on. */
typedef void dt_node_exited_fn(void *context, int64_t code, int number);

/* Returns NULL if the command cannot be started; then `exited` is not called. */
dt_node_process *dt_node_process_start(uv_loop_t *loop, const char **argv,
                                       dt_node_exited_fn *exited, void *context);
/* `exited` is called as usual; accepts NULL */
void dt_node_process_kill(dt_node_process *process);
void dt_node_process_let_go(dt_node_process *process); /* accepts NULL */

/* Runs `dtrun-agent end FOLDER` on the node, over a connection of its own. */
dt_node_process *dt_node_process_end_agent(uv_loop_t *loop, const char *node, const char *agent,
                                           const char *folder, dt_node_exited_fn *exited,
                                           void *context);

#endif
