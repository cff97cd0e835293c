/* listener: accepts connections to a Unix socket, on a libuv loop.
 *
 * Ownership  the callback must close the connection; close does not remove the socket from the folder
 */
#ifndef DT_RUNNER_LISTENER_H
#define DT_RUNNER_LISTENER_H

#include <uv.h>

#include "base/error.h"

typedef struct dt_listener dt_listener;
typedef void dt_listener_fn(void *context, int connection);

dt_status dt_listener_open(dt_listener **out, uv_loop_t *loop, const char *folder, const char *name,
                           dt_listener_fn *take, void *context, dt_error *err);
void dt_listener_close(dt_listener *listener); /* accepts NULL */

#endif
