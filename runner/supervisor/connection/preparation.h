/* preparation: prepares a node on a thread of libuv's pool, while the loop runs.
 *
 * The thread has its own copy of the request; its progress comes over an async handle. The result is
 * written to place.json, also for a later supervisor.
 *
 * Ownership  frees itself after `done`, which is always called: keep the loop running until then
 * Threads    call from the loop's thread
 */
#ifndef DT_CONNECTION_PREPARATION_H
#define DT_CONNECTION_PREPARATION_H

#include <uv.h>

#include "runner/node_setup/node_setup.h"

typedef struct dt_preparation dt_preparation;

typedef struct dt_preparation_calls {
    void (*news)(void *context, const char *text);
    /* The preparation pointer is invalid from here on. */
    void (*done)(void *context, dt_status st, const dt_error *err);
} dt_preparation_calls;

/* request: `cancelled`, `progress` and `context` are filled in here; what it points to must live
 * until `done`. */
dt_preparation *dt_preparation_begin(uv_loop_t *loop, const dt_prepare_request *request,
                                     const dt_preparation_calls *calls, void *context);
void dt_preparation_cancel(dt_preparation *preparation); /* takes effect soon; accepts NULL */

#endif
