/* comm_int: what the transports offer to comm.c. `out` comes zeroed, with rank and world_size. */
#ifndef DT_ENGINE_COMM_INT_H
#define DT_ENGINE_COMM_INT_H

#include "engine/comm/comm.h"

dt_status dt_comm_open_self(dt_comm *out);
dt_status dt_comm_open_gloo(dt_comm *out, struct dt_events *events, const char *name,
                            double timeout_seconds, dt_error *err);

#endif
