#include "engine/comm/comm.h"

#include <string.h>

void dt_comm_close(dt_comm *comm)
{
    if (comm->close != NULL)
        comm->close(comm);
    memset(comm, 0, sizeof(*comm));
}
