#include "runner/transport/transport.h"

#include <stddef.h>

/* The first transport that accepts the node's name is used. */
static const dt_transport *const transports[] = {&dt_transport_local, &dt_transport_slurm,
                                                 &dt_transport_ssh};

dt_status dt_transport_find(const dt_transport **out, const char *node, dt_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->reaches(node)) {
            *out = transports[i];
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s': invalid name (expected letters, digits and '._-@:%%/[]+')", node);
}
