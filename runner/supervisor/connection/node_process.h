/* node_process: a command that runs on a node, of which only the exit code is of interest. Its
 * streams are /dev/null.
 *
 * Ownership  frees itself after `exited`, or when it is buried after let_go, which kills it and makes
 *            that no call comes
 * Threads    the loop's
 */
#ifndef DT_CONNECTION_NODE_PROCESS_H
#define DT_CONNECTION_NODE_PROCESS_H

#include <stdint.h>
#include <uv.h>

#include "base/error.h"

typedef struct dt_node_process dt_node_process;

/* number: the signal that killed it, 0: none. The process is NULL from here on. */
typedef void dt_node_exited_fn(void *context, int64_t code, int number);

/* NULL where it cannot be started; then no call comes. */
dt_node_process *dt_node_process_start(uv_loop_t *loop, const char **argv,
                                       dt_node_exited_fn *exited, void *context);
void dt_node_process_kill(dt_node_process *process);   /* `exited` tells; accepts NULL */
void dt_node_process_let_go(dt_node_process *process); /* accepts NULL */

/* `dtrun-agent end FOLDER` there, over a connection of its own. */
dt_node_process *dt_node_process_end_agent(uv_loop_t *loop, const char *node, const char *agent,
                                           const char *folder, dt_node_exited_fn *exited,
                                           void *context);

#endif
