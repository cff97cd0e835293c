/* shim: Gloo behind a C interface. The only C++ of the communicators.
 *
 * Purpose    Gloo reports by exceptions; none may cross into C. Each function here catches
 *            everything and returns a dt_status
 * Ownership  dt_gloo_open gives the caller *out; dt_gloo_close takes it back
 * Threads    one thread at a time; Gloo runs one thread of its own per communicator
 * Errors     DT_ERR_COMM: a peer is gone or the timeout is over; the communicator is unusable
 *            from then on. DT_ERR_TIMEOUT, DT_ERR_PEER, DT_ERR_CORRUPT from the rendezvous
 */
#ifndef DT_ENGINE_COMM_GLOO_SHIM_H
#define DT_ENGINE_COMM_GLOO_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/sum.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_events;
typedef struct dt_gloo dt_gloo;

typedef struct dt_gloo_options {
    struct dt_events *events; /* borrowed until dt_gloo_open returns */
    const char *name;         /* of the communicator: the rendezvous is "comm/NAME" */
    const char *address;      /* of the interface that the sockets bind to */
    int64_t rank, world_size; /* among those that it connects */
    const int64_t *ranks;     /* those, in order: ranks of the run */
    double timeout_seconds;   /* of the connection, and of each collective */
} dt_gloo_options;

dt_status dt_gloo_open(dt_gloo **out, const dt_gloo_options *options, dt_error *err);
void dt_gloo_close(dt_gloo *gloo); /* accepts NULL */

/* In place. Rings in a fixed order, so that all ranks hold the same bits, and the same ones in
 * every run: here reduce-scatter, then all-gather. */
dt_status dt_gloo_all_reduce(dt_gloo *gloo, void *data, size_t elems, const dt_sum *sum,
                             dt_error *err);
/* As dt_comm's. */
dt_status dt_gloo_reduce_scatter(dt_gloo *gloo, void *out, const void *in, size_t elems,
                                 const dt_sum *sum, dt_error *err);
dt_status dt_gloo_all_gather(dt_gloo *gloo, void *out, const void *in, size_t bytes, dt_error *err);
dt_status dt_gloo_broadcast(dt_gloo *gloo, void *data, size_t bytes, int root, dt_error *err);
/* Block i of `out` goes to rank i; block i of `in` has come from it. bytes: of a block. */
dt_status dt_gloo_swap(dt_gloo *gloo, void *in, void *out, size_t bytes, double timeout_seconds,
                       dt_error *err);
dt_status dt_gloo_barrier(dt_gloo *gloo, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
