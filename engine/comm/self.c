/* self: implements the communicator of a single rank. Every collective returns its input. */
#include <string.h>

#include "engine/comm/comm_int.h"

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
