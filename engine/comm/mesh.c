#include "engine/comm/mesh.h"

#include "base/error.h"

const char *dt_mesh_axis_name(dt_mesh_axis axis)
{
    static const char *const names[DT_MESH_AXES] = {
        [DT_AXIS_REPLICA] = "replica",
        [DT_AXIS_SHARD] = "shard",
        [DT_AXIS_TENSOR] = "tensor",
    };

    DT_ASSERT(axis >= 0 && axis < DT_MESH_AXES);
    return names[axis];
}

/* Distance between neighbours along an axis: the ranks of all axes inside it. */
static int64_t stride_of(const int64_t size[DT_MESH_AXES], int axis)
{
    int64_t stride = 1;

    for (int inner = axis + 1; inner < DT_MESH_AXES; inner++)
        stride *= size[inner];
    return stride;
}

dt_mesh dt_mesh_make(int64_t rank, const int64_t size[DT_MESH_AXES])
{
    int64_t world_size = size[0] * stride_of(size, 0);
    int64_t data_size = size[DT_AXIS_REPLICA] * size[DT_AXIS_SHARD];
    dt_mesh out = {.world = dt_group_all(rank, world_size),
                   .data =
                       dt_group_of(rank, stride_of(size, DT_AXIS_SHARD), data_size, world_size)};

    DT_ASSERT(rank >= 0 && rank < world_size);
    for (int axis = 0; axis < DT_MESH_AXES; axis++) {
        DT_ASSERT(size[axis] >= 1);
        out.axis[axis] = dt_group_of(rank, stride_of(size, axis), size[axis], world_size);
    }
    return out;
}

dt_mesh dt_mesh_of(int64_t rank, int64_t replicas, int64_t shards, int64_t tensor)
{
    const int64_t size[DT_MESH_AXES] = {
        [DT_AXIS_REPLICA] = replicas, [DT_AXIS_SHARD] = shards, [DT_AXIS_TENSOR] = tensor};

    return dt_mesh_make(rank, size);
}

bool dt_mesh_speaks(const dt_mesh *mesh, unsigned divided)
{
    for (int axis = 0; axis < DT_MESH_AXES; axis++)
        if ((divided & 1u << axis) == 0 && mesh->axis[axis].rank != 0)
            return false;
    return true;
}

double dt_mesh_term(const dt_mesh *mesh, unsigned divided, double value)
{
    return dt_mesh_speaks(mesh, divided) ? value : 0;
}
