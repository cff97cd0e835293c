/* mesh: arranges the ranks of a run along named axes, the innermost of which is `tensor`.
 *
 * Replica and shard together are the data axis: dt_mesh.data. A mesh of 3 data ranks x 2 tensor ranks:
 *
 *               tensor 0   tensor 1          rank = data * tensor.size + tensor
 *     data 0       0          1
 *     data 1       2          3              world   0 .. 5      identifies a rank in events, files, logs
 *     data 2       4          5              data    1 3 5       of rank 3
 *                                            tensor  2 3         of rank 3
 *
 * replica    ranks hold the same parts of the parameters and read different samples: all data ranks of ddp; of fsdp
 *            one of each node with `within: node`, else none
 * shard      ranks divide what a tensor rank holds (fsdp) and read different samples
 * data       replica x shard: gradients are summed along it; dropout is keyed by it
 * tensor     ranks read the same samples and divide every layer. Their numbers are adjacent, so that they are
 *            within a node
 * Sums       values that are divided over an axis are summed along it; values that are equal along it must
 *            be counted once. dt_mesh_term selects the rank that counts, for losses, norms and
 *            checkpoints alike. A parameter that tensor ranks share is counted by dt_param.held
 * A new axis a line in dt_mesh_axis, in the order of the table from the outermost to the innermost, its name in
 *            mesh.c, and its size where meshes are made
 */
#ifndef DT_ENGINE_COMM_MESH_H
#define DT_ENGINE_COMM_MESH_H

#include <stdbool.h>

#include "engine/comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the outermost to the innermost: the ranks of the last are adjacent. */
typedef enum dt_mesh_axis {
    DT_AXIS_REPLICA,
    DT_AXIS_SHARD,
    DT_AXIS_TENSOR,
    DT_MESH_AXES
} dt_mesh_axis;

/* The groups that the caller is in. */
typedef struct dt_mesh {
    dt_group axis[DT_MESH_AXES];
    dt_group world, data;
} dt_mesh;

/* The axes that something is divided over. */
enum {
    DT_MESH_REPLICA = 1 << DT_AXIS_REPLICA,
    DT_MESH_SHARD = 1 << DT_AXIS_SHARD,
    DT_MESH_TENSOR = 1 << DT_AXIS_TENSOR,
    DT_MESH_DATA = DT_MESH_REPLICA | DT_MESH_SHARD
};

/* Name of an axis, as in messages: "tensor". */
const char *dt_mesh_axis_name(dt_mesh_axis axis);

/* The mesh with these sizes, as many ranks as their product. */
dt_mesh dt_mesh_make(int64_t rank, const int64_t size[DT_MESH_AXES]);
/* The same; a size for each axis. */
dt_mesh dt_mesh_of(int64_t rank, int64_t replicas, int64_t shards, int64_t tensor);

/* Whether the caller is the one that counts among the ranks that hold the same values. */
bool dt_mesh_speaks(const dt_mesh *mesh, unsigned divided);
/* The caller's term in a sum over the world: `value`, or 0 if another rank counts it. */
double dt_mesh_term(const dt_mesh *mesh, unsigned divided, double value);

#ifdef __cplusplus
}
#endif
#endif
