/* session_tensor: places a rank in the mesh, and connects the ranks that divide layers. */
#include "engine/train/session_int.h"

#include "base/banned.h"

/* Layers are summed many times in a step, so that the ranks of a group must share a node. */
static dt_status check_group(const dt_train_session *session, dt_error *err)
{
    const dt_group *group = &session->mesh.axis[DT_AXIS_TENSOR];
    const dt_plan_rank *ranks = session->plan->ranks;

    for (int64_t m = 1; m < group->size; m++)
        if (ranks[dt_group_rank(group, m)].node != ranks[group->first].node)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "the ranks %lld to %lld divide layers ('tensor' %lld), but are on two "
                           "nodes; use a multiple of 'tensor' ranks on each node",
                           (long long)group->first,
                           (long long)dt_group_rank(group, group->size - 1),
                           (long long)group->size);
    return DT_OK;
}

dt_status dt_session_place(dt_train_session *session, int64_t rank, dt_error *err)
{
    int64_t tensor = session->recipe->tensor, world_size = session->plan->world_size;
    dt_status st = DT_OK;

    if (tensor < 1 || world_size % tensor != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'tensor' %lld does not divide the %lld ranks of the run; use a multiple of "
                 "'tensor' ranks on each node",
                 (long long)tensor, (long long)world_size);
    session->mesh = dt_mesh_of(rank, world_size / tensor, tensor);
    if (tensor == 1)
        return DT_OK;
    DT_TRY(check_group(session, err));
    if (session->replicas > 1)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'tensor' %lld and several replicas in one process cannot be combined; use "
                 "'strategy: ddp' or 'fsdp'",
                 (long long)tensor);
    if (dt_optimizers[session->recipe->optimizer.kind].whole_matrices != NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'tensor' %lld and optimizer '%s', which needs whole matrices, cannot be combined",
                 (long long)tensor, dt_optimizers[session->recipe->optimizer.kind].name);
out:
    return st;
}

/* Number of adjacent tensor ranks that share a parameter with terms of its gradient and are not the whole group; 1:
 * none. It is the same for all such parameters. */
static int64_t sharers_of(const dt_train_session *session)
{
    int64_t ranks = session->mesh.axis[DT_AXIS_TENSOR].size, sharers = 1;

    for (int i = 0; i < session->model->param_count; i++) {
        const dt_param_held *held = &session->model->params[i].held;

        if (held->summed && held->sharers < ranks) {
            DT_ASSERT(sharers == 1 || sharers == held->sharers);
            sharers = held->sharers;
        }
    }
    return sharers;
}

dt_status dt_session_open_layers(dt_train_session *session, dt_error *err)
{
    const dt_mesh *mesh = &session->mesh;
    int64_t sharers = sharers_of(session);
    dt_status st = DT_OK;

    if (mesh->axis[DT_AXIS_TENSOR].size == 1)
        return DT_OK;
    DT_TRY(dt_layer_comm_open(&session->layer, &session->device, session->events, "layer",
                              mesh->axis[DT_AXIS_TENSOR], err));
    session->model->peers = session->state.layer = &session->layer.peers;
    if (sharers == 1)
        return DT_OK;
    DT_TRY(dt_layer_comm_open(&session->sharers, &session->device, session->events, "sharers",
                              dt_group_of(mesh->world.rank, 1, sharers, mesh->world.size), err));
    session->state.sharers = &session->sharers.peers;
out:
    return st;
}

int64_t dt_train_session_sent_bytes(const dt_train_session *session)
{
    return session->state.sent_bytes + session->layer.comm.sent_bytes +
           session->sharers.comm.sent_bytes;
}
