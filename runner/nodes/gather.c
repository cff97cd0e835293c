/* gather: a checkpoint's files from the nodes that wrote them, to the launch machine. */
#include "runner/nodes/nodes_int.h"

#include "base/banned.h"

dt_status dt_nodes_gather(const dt_node_place *places, int64_t count, const char *name,
                          const char *checkpoints_here, const atomic_bool *cancelled, dt_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (!places[i].checkpoints_shared)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                           "checkpoint '%s' is on node '%s': this version fetches none, let"
                           " '%s' be a folder that all nodes share",
                           name, places[i].node, checkpoints_here);
    return DT_OK;
}
