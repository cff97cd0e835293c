/* preparation: a node is made ready on a thread of libuv's pool, while the loop continues.
 *
 * The thread has a copy of what it needs; its words come over an async handle. What it finds out is
 * in place.json when it is done, as for a later supervisor.
 *
 * Ownership  frees itself after `done`, which always comes: the loop must turn until then
 * Threads    the loop's
 */
#ifndef DT_CONNECTION_PREPARATION_H
#define DT_CONNECTION_PREPARATION_H

#include <uv.h>

#include "runner/node_setup/node_setup.h"

typedef struct dt_preparation dt_preparation;

typedef struct dt_preparation_calls {
    void (*news)(void *context, const char *text);
    /* The preparation is NULL from here on. */
    void (*done)(void *context, dt_status st, const dt_error *err);
} dt_preparation_calls;

/* request: `cancelled`, `progress` and `context` are filled in here; what else it points to must
 * live until `done`. */
dt_preparation *dt_preparation_begin(uv_loop_t *loop, const dt_prepare_request *request,
                                     const dt_preparation_calls *calls, void *context);
void dt_preparation_cancel(dt_preparation *preparation); /* soon; accepts NULL */

#endif
