#include "engine/comm/comm.h"

#include <string.h>

#include "engine/comm/comm_int.h"

#include "base/banned.h"

dt_status dt_comm_open(dt_comm *out, struct dt_events *events, const char *name, int64_t rank,
                       int64_t world_size, double timeout_seconds, dt_error *err)
{
    memset(out, 0, sizeof(*out));
    DT_ASSERT(world_size >= 1 && rank >= 0 && rank < world_size);
    out->rank = rank;
    out->world_size = world_size;
    if (world_size == 1)
        return dt_comm_open_self(out);
#ifdef DT_HAVE_GLOO
    return dt_comm_open_gloo(out, events, name, timeout_seconds, err);
#else
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "cannot connect %lld ranks: this dtrun-engine was built without Gloo (install "
                   "libgloo-dev and build again, or use one rank)",
                   (long long)world_size);
#endif
}

void dt_comm_close(dt_comm *comm)
{
    if (comm->close != NULL)
        comm->close(comm);
    memset(comm, 0, sizeof(*comm));
}
