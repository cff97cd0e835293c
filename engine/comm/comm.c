/* comm: what needs no transport: processes of this machine, closing a communicator, that of a single rank,
 * and the wrapper that publishes what a rank waits for. */
#include "engine/comm/comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "engine/channel/activity.h"
#include "engine/comm/comm_int.h"
#include "engine/stopwatch.h"

/* --- processes of this machine */

dt_status dt_peer_self(dt_peer *out, dt_error *err)
{
    dt_proc_stat stat;

    if (!dt_proc_stat_read(&stat, getpid()))
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/stat: mount /proc");
    *out = (dt_peer){.pid = getpid(), .start_ticks = stat.start_ticks};
    return DT_OK;
}

bool dt_peer_alive(const dt_peer *peer)
{
    dt_proc_stat stat;

    return dt_proc_stat_read(&stat, peer->pid) && stat.start_ticks == peer->start_ticks &&
           stat.state != 'Z' && stat.state != 'X';
}

/* --- any communicator */

void dt_comm_close(dt_comm *comm)
{
    if (comm->close != NULL)
        comm->close(comm);
    memset(comm, 0, sizeof(*comm));
}

/* self: implements the communicator of a single rank. Every collective returns its input. */

static dt_status self_all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype,
                                 dt_error *err)
{
    return DT_OK;
}

static dt_status self_all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    return DT_OK;
}

static dt_status self_reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                     dt_dtype dtype, dt_error *err)
{
    if (out != in && elems > 0)
        memcpy(out, in, (size_t)elems * dt_dtype_bytes(dtype));
    return DT_OK;
}

static dt_status self_all_gather(dt_comm *comm, void *out, const void *in, size_t bytes,
                                 dt_error *err)
{
    if (out != in && bytes > 0)
        memcpy(out, in, bytes);
    return DT_OK;
}

static dt_status self_broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root,
                                dt_error *err)
{
    DT_ASSERT(root == 0);
    return DT_OK;
}

static dt_status self_barrier(dt_comm *comm, dt_error *err)
{
    return DT_OK;
}

dt_status dt_comm_open_self(dt_comm *out)
{
    out->name = "self";
    out->all_reduce = self_all_reduce;
    out->all_reduce_f64 = self_all_reduce_f64;
    out->reduce_scatter = self_reduce_scatter;
    out->all_gather = self_all_gather;
    out->broadcast = self_broadcast;
    out->barrier = self_barrier;
    return DT_OK;
}

/* traced: publishes every collective while a rank waits for it (engine/channel/activity.h), so that a
 * hanging rank can report which one it hangs in. One wrapper for all transports.
 */

typedef struct traced {
    dt_comm inner;
    const char *name;
    int64_t number; /* number of the collective, for comparison between ranks */
} traced;

/* Run `call` on the inner communicator, and copy its count of sent bytes. */
#define TELL(comm, what, bytes_of, call)                                                          \
    do {                                                                                          \
        traced *self = (comm)->state;                                                             \
        dt_comm *inner = &self->inner;                                                            \
        int wait = dt_activity_wait_begin(what, self->name, ++self->number, (int64_t)(bytes_of)); \
        int part = dt_stopwatch_part(DT_PART_BLOCKED);                                            \
        int64_t sent = inner->sent_bytes;                                                         \
        double start = dt_clock_monotonic_seconds();                                              \
        dt_status st = call;                                                                      \
                                                                                                  \
        if (inner->queue == NULL)                                                                 \
            dt_stopwatch_message(inner->sent_bytes - sent, dt_clock_monotonic_seconds() - start); \
        dt_stopwatch_part(part);                                                                  \
        dt_activity_wait_end(wait);                                                               \
        (comm)->sent_bytes = inner->sent_bytes;                                                   \
        return st;                                                                                \
    } while (0)

static dt_status all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype, dt_error *err)
{
    TELL(comm, "all_reduce", (size_t)elems * dt_dtype_bytes(dtype),
         inner->all_reduce(inner, data, elems, dtype, err));
}

static dt_status all_reduce_f64(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    TELL(comm, "all_reduce", (size_t)elems * sizeof(double),
         inner->all_reduce_f64(inner, data, elems, err));
}

static dt_status reduce_scatter(dt_comm *comm, void *out, const void *in, int64_t elems,
                                dt_dtype dtype, dt_error *err)
{
    TELL(comm, "reduce_scatter", (size_t)(elems * inner->world_size) * dt_dtype_bytes(dtype),
         inner->reduce_scatter(inner, out, in, elems, dtype, err));
}

static dt_status all_gather(dt_comm *comm, void *out, const void *in, size_t bytes, dt_error *err)
{
    TELL(comm, "all_gather", bytes * (size_t)inner->world_size,
         inner->all_gather(inner, out, in, bytes, err));
}

static dt_status broadcast(dt_comm *comm, void *data, size_t bytes, int64_t root, dt_error *err)
{
    TELL(comm, "broadcast", bytes, inner->broadcast(inner, data, bytes, root, err));
}

static dt_status barrier(dt_comm *comm, dt_error *err)
{
    TELL(comm, "barrier", 0, inner->barrier(inner, err));
}

static dt_status finish(dt_comm *comm, dt_error *err)
{
    TELL(comm, "finish", 0, inner->finish(inner, err));
}

static void close_traced(dt_comm *comm)
{
    traced *self = comm->state;

    dt_comm_close(&self->inner);
    free(self);
}

dt_status dt_comm_trace(dt_comm *comm, const char *name, dt_error *err)
{
    traced *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a communicator");
    self->inner = *comm;
    self->name = name;
    comm->state = self;
    comm->all_reduce = all_reduce;
    comm->all_reduce_f64 = all_reduce_f64;
    comm->reduce_scatter = reduce_scatter;
    comm->all_gather = all_gather;
    comm->broadcast = broadcast;
    comm->barrier = barrier;
    if (comm->finish != NULL)
        comm->finish = finish;
    comm->close = close_traced;
    return DT_OK;
}
