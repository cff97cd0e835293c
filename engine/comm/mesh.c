#include "engine/comm/mesh.h"

#include "base/error.h"

#include "base/banned.h"

dt_mesh dt_mesh_of(int64_t rank, int64_t data_size, int64_t tensor_size)
{
    int64_t world_size = data_size * tensor_size;

    DT_ASSERT(data_size >= 1 && tensor_size >= 1 && rank >= 0 && rank < world_size);
    return (dt_mesh){
        .world = dt_group_all(rank, world_size),
        .data = dt_group_of(rank, tensor_size, data_size, world_size),
        .tensor = dt_group_of(rank, 1, tensor_size, world_size),
    };
}

bool dt_mesh_speaks(const dt_mesh *mesh, unsigned divided)
{
    return ((divided & DT_MESH_DATA) != 0 || mesh->data.rank == 0) &&
           ((divided & DT_MESH_TENSOR) != 0 || mesh->tensor.rank == 0);
}

double dt_mesh_term(const dt_mesh *mesh, unsigned divided, double value)
{
    return dt_mesh_speaks(mesh, divided) ? value : 0;
}
