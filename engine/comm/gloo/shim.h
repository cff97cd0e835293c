/* shim: wraps Gloo in a C interface. The only C++ of the communicators.
 *
 * Purpose    Gloo reports errors by exceptions, which must not cross into C. Each function here catches
 *            all exceptions and returns a dt_status
 * Ownership  the caller owns *out of dt_gloo_open; dt_gloo_close frees it
 * Threads    one thread at a time; Gloo runs one thread of its own per communicator
 * Errors     DT_ERR_COMM if a peer is lost or on timeout; the communicator is unusable
 *            after that. DT_ERR_TIMEOUT, DT_ERR_PEER, DT_ERR_CORRUPT from the rendezvous
 */
#ifndef DT_ENGINE_COMM_GLOO_SHIM_H
#define DT_ENGINE_COMM_GLOO_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_events;
typedef struct dt_gloo dt_gloo;

typedef struct dt_gloo_options {
    struct dt_events *events; /* borrowed until dt_gloo_open returns */
    const char *name;         /* name of the communicator: the rendezvous is "comm/NAME" */
    const char *address;      /* address of the interface that the sockets bind to */
    int64_t rank, world_size; /* rank and size within the connected ranks */
    const int64_t *ranks;     /* the ranks of the run that it connects, in order */
    double timeout_seconds;   /* timeout for connecting and for each collective */
} dt_gloo_options;

dt_status dt_gloo_open(dt_gloo **out, const dt_gloo_options *options, dt_error *err);
void dt_gloo_close(dt_gloo *gloo); /* accepts NULL */

/* In place. Rings in a fixed order (reduce-scatter, then all-gather), so that all ranks get the
 * same bits in every run; two ranks swap short arrays, with the same bits as a ring. */
dt_status dt_gloo_all_reduce(dt_gloo *gloo, void *data, size_t elems, const dt_sum *sum,
                             dt_error *err);
/* Collectives with the semantics of dt_comm (comm.h). */
dt_status dt_gloo_reduce_scatter(dt_gloo *gloo, void *out, const void *in, size_t elems,
                                 const dt_sum *sum, dt_error *err);
dt_status dt_gloo_all_gather(dt_gloo *gloo, void *out, const void *in, size_t bytes, dt_error *err);
dt_status dt_gloo_broadcast(dt_gloo *gloo, void *data, size_t bytes, int root, dt_error *err);
/* Exchange blocks: block i of `out` goes to rank i; block i of `in` comes from rank i. bytes: of a
 * block. */
dt_status dt_gloo_swap(dt_gloo *gloo, void *in, void *out, size_t bytes, double timeout_seconds,
                       dt_error *err);
dt_status dt_gloo_barrier(dt_gloo *gloo, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
