/* mesh: the ranks of a run as a table, data x tensor.
 *
 *               tensor 0   tensor 1          rank = data * tensor.size + tensor
 *     data 0       0          1
 *     data 1       2          3              world   0 .. 5      who one is: events, files, logs
 *     data 2       4          5              data    1 3 5       of rank 3
 *                                            tensor  2 3         of rank 3
 *
 * data       ranks of one column hold the same parts of the parameters (or divide those further:
 *            fsdp) and read different samples; gradients are summed along it; dropout is keyed by it
 * tensor     ranks of one row read the same samples and divide parameters. They are neighbours, so
 *            that a row lies within a node
 * Sums       what is divided over an axis is added along it; what is the same along it must be
 *            counted once. dt_mesh_term says by which rank, for a loss, a norm and what is written
 *            into a checkpoint alike
 * Today      tensor.size is 1 wherever a recipe leads to. Tensor parallel is then a strategy, which
 *            opens a communicator of `tensor` for the sums within a layer, and a layout, which says
 *            of each parameter which slices of it a rank has (engine/slice.h) and whether they are
 *            divided over DT_MESH_TENSOR: first values, norm, checkpoints and what any other mesh
 *            reads of them follow from that
 */
#ifndef DT_ENGINE_COMM_MESH_H
#define DT_ENGINE_COMM_MESH_H

#include <stdbool.h>

#include "engine/comm/group.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_mesh {
    dt_group world, data, tensor; /* those that the caller is in */
} dt_mesh;

/* The axes that something is divided over: between their ranks, without what two of them share. */
enum { DT_MESH_DATA = 1, DT_MESH_TENSOR = 2 };

/* Of data_size * tensor_size ranks. */
dt_mesh dt_mesh_of(int64_t rank, int64_t data_size, int64_t tensor_size);

/* Whether the caller is the one of those that hold the same. */
bool dt_mesh_speaks(const dt_mesh *mesh, unsigned divided);
/* What it adds to a sum over the world, of what it holds: the value, or 0. */
double dt_mesh_term(const dt_mesh *mesh, unsigned divided, double value);

#ifdef __cplusplus
}
#endif
#endif
