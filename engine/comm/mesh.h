/* mesh: arranges the ranks of a run as a table, data x tensor.
 *
 *               tensor 0   tensor 1          rank = data * tensor.size + tensor
 *     data 0       0          1
 *     data 1       2          3              world   0 .. 5      identifies a rank in events, files, logs
 *     data 2       4          5              data    1 3 5       of rank 3
 *                                            tensor  2 3         of rank 3
 *
 * data       ranks of one column hold the same parts of the parameters (or divide those further:
 *            fsdp) and read different samples; gradients are summed along it; dropout is keyed by it
 * tensor     ranks of one row read the same samples and divide parameters. Their numbers are adjacent, so
 *            that a row is within a node
 * Sums       values that are divided over an axis are summed along it; values that are equal along it must
 *            be counted once. dt_mesh_term selects the rank that counts, for losses, norms and
 *            checkpoints alike
 * Today      tensor.size is 1 for every recipe. Tensor parallelism would be a strategy, which
 *            opens a communicator of `tensor` for the sums within a layer, and a layout, which lists
 *            for each parameter the slices that a rank holds (engine/slice.h) and whether they are
 *            divided over DT_MESH_TENSOR: initial values, norm, checkpoints and loading by any other mesh
 *            follow from that
 */
#ifndef DT_ENGINE_COMM_MESH_H
#define DT_ENGINE_COMM_MESH_H

#include <stdbool.h>

#include "engine/comm/group.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_mesh {
    dt_group world, data, tensor; /* the groups that the caller is in */
} dt_mesh;

/* The axes over which something is divided. */
enum { DT_MESH_DATA = 1, DT_MESH_TENSOR = 2 };

/* The mesh of data_size * tensor_size ranks. */
dt_mesh dt_mesh_of(int64_t rank, int64_t data_size, int64_t tensor_size);

/* Whether the caller is the one that counts among the ranks that hold the same values. */
bool dt_mesh_speaks(const dt_mesh *mesh, unsigned divided);
/* The caller's term in a sum over the world: `value`, or 0 if another rank counts it. */
double dt_mesh_term(const dt_mesh *mesh, unsigned divided, double value);

#ifdef __cplusplus
}
#endif
#endif
