/* session_mesh: places a rank in the mesh, and connects the ranks that divide layers. */
#include "engine/train/session.h"

/* The mesh of the plan's ranks, whose groups dt_plan_check_groups has checked. */
static dt_mesh make_mesh(const dt_plan *plan, int64_t rank)
{
    const dt_recipe *recipe = &plan->recipe;
    int64_t data = plan->world_size / recipe->tensor.size;
    int64_t shards = dt_recipe_shard_ranks(recipe, plan->world_size, dt_plan_node_ranks(plan));

    return dt_mesh_of(rank, data / shards, shards, recipe->tensor.size);
}

dt_status dt_session_place(dt_train_session *session, int64_t rank, dt_error *err)
{
    int64_t tensor = session->recipe->tensor.size;
    dt_status st = DT_OK;

    DT_TRY(dt_plan_check_groups(session->plan, err));
    session->mesh = make_mesh(session->plan, rank);
    if (tensor == 1)
        return DT_OK;
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
