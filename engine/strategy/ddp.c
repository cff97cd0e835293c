/* ddp: replicates everything on each rank and sums gradients during the backward pass.
 *
 *   held by each rank          fp32 compute   bf16 compute     bytes per parameter element
 *   parameters (fp32 master)        4              4
 *   parameters (compute type)       -              2           (fp32: the master itself)
 *   gradients (fp32)                4              4
 *   optimizer m, v (fp32)           8              8           (4 with one moment, 0 with none)
 *   sum                            16             18
 *   buffers: the batch; with reduce_dtype bf16 2 more, for the gradients that are sent
 *
 *   sent per step by each rank: 2 (W-1)/W * 4 bytes per element (ring all-reduce of the
 *   gradients; half of it with reduce_dtype bf16), whatever the number of micro-steps; at the start
 *   the master once, from data rank 0. If the optimizer updates whole matrices, each rank computes
 *   the direction of some and broadcasts it: 4 bytes per element of a matrix, sent by its owner W-1 times
 *
 * Buckets    one per unit, cut into pieces of at most bucket_mb, the very first of at most
 *            first_bucket_mb. The backward pass completes the units from the last block to the
 *            root, on all ranks alike; a bucket is launched when its unit is complete in the last
 *            micro-step, and the root, with the tied embedding, comes last.
 * Memory     one arena, allocated at setup; gradients and weights in the compute type are found through
 *            model->grads and model->weights, like the model does
 * Threads    setup starts the communication thread (strategy_int.h) if there are peers
 */
#include <math.h>
#include <stdlib.h>

#include "engine/strategy/strategy_int.h"

typedef struct ddp_state {
    dt_replica replica;
    dt_device_arena memory;
    dt_shard shard;
    uint16_t **bf16_buffers;   /* per unit: gradients converted to bf16, with reduce_dtype bf16 */
    dt_async_comm *async_comm; /* NULL if there is only one data rank */
    int64_t first_bucket_elems, bucket_elems;
    int next_unit; /* unit of the next bucket to launch */
    int64_t micro_steps_left;
    bool overwrites; /* the next pass overwrites what was not zeroed */
} ddp_state;

/* --- setup */

static void lay_out(void *self, dt_layout *layout)
{
    dt_strategy_state *state = self;
    ddp_state *own = state->own;

    for (int unit = 0; unit < state->model->unit_count; unit++) {
        dt_shard_take_unit(&own->shard, unit, layout);
        if (own->bf16_buffers != NULL)
            own->bf16_buffers[unit] =
                dt_layout_take(layout, 2 * (size_t)state->model->units[unit].elems);
    }
    dt_shard_take_work(&own->shard, layout);
}

static dt_status take_memory(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_model *model = state->model;
    int64_t elems = 0;
    dt_status st = DT_OK;

    if (state->options.reduce_dtype == DT_REDUCE_BF16 && state->mesh.data.size > 1) {
        own->bf16_buffers = calloc((size_t)model->unit_count, sizeof(*own->bf16_buffers));
        if (own->bf16_buffers == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    }
    DT_TRY(dt_shard_open(&own->shard, model, &state->options.optimizer, err));
    DT_TRY(dt_shard_record(&own->shard, state->options.graphs, state->mesh.world.rank == 0, err));
    DT_TRY(dt_layout_open(&own->memory, model->device, lay_out, state, err));
    DT_TRY(dt_shard_make_tables(&own->shard, state->mesh.data.rank == 0, err));

    for (int unit = 0; unit < model->unit_count; unit++)
        elems += model->units[unit].elems;
    state->parameters_bytes = 4 * elems;
    if (model->config.dtype != DT_F32)
        state->parameters_bytes += (int64_t)dt_dtype_bytes(model->config.dtype) * elems;
    state->parameters_bytes += dt_shard_frozen_bytes(&own->shard);
    state->gradients_bytes = 4 * elems;
    state->optimizer_bytes = dt_shard_optimizer_bytes(&own->shard);
    state->keeps_weights = true;
    state->held_bytes = state->parameters_bytes + state->gradients_bytes + state->optimizer_bytes;
    state->buffers_bytes = (int64_t)(own->replica.upload.bytes + own->shard.work_bytes) +
                           (own->bf16_buffers != NULL ? 2 * elems : 0);
out:
    return st;
}

static int64_t elems_of_mb(double mb)
{
    double elems = mb * 1e6 / sizeof(float);

    return elems > 1 ? (int64_t)elems : 1;
}

static dt_status open_async_comm(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_comm comm;
    int64_t buckets = 1; /* one for the first bucket, which is cut smaller */
    dt_status st = DT_OK;

    own->bucket_elems = elems_of_mb(state->options.bucket_mb);
    own->first_bucket_elems = elems_of_mb(state->options.first_bucket_mb);
    if (own->first_bucket_elems > own->bucket_elems)
        own->first_bucket_elems = own->bucket_elems;
    for (int unit = 0; unit < state->model->unit_count; unit++)
        buckets += (state->model->units[unit].elems + own->bucket_elems - 1) / own->bucket_elems;
    if (buckets < state->model->param_count) /* room for the broadcasts of whole matrices */
        buckets = state->model->param_count;
    DT_TRY(dt_comm_open_device(&comm, state->model->device, state->events, "ddp", state->mesh.data,
                               DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(dt_async_comm_open(&own->async_comm, &comm, state->model->device, buckets, err));
out:
    return st;
}

/* Broadcast memory from data rank 0 and wait: speed does not matter at the start of a run. */
static dt_status share_from_data_rank_0(dt_strategy_state *state, void *data, size_t bytes,
                                        dt_error *err)
{
    ddp_state *own = state->own;
    dt_async_comm_ticket ticket;
    dt_status st = DT_OK;

    if (own->async_comm == NULL || data == NULL || bytes == 0)
        return DT_OK;
    DT_TRY(dt_async_comm_broadcast(own->async_comm, &ticket, data, bytes, 0, err));
    DT_TRY(dt_async_comm_wait(own->async_comm, ticket, err));
out:
    return st;
}

/* Broadcast a unit's parameters from data rank 0. */
static dt_status share_params(dt_strategy_state *state, int unit, dt_error *err)
{
    const ddp_state *own = state->own;
    const dt_shard_unit *slice = &own->shard.units[unit];
    size_t frozen_bytes = dt_dtype_bytes(state->model->config.dtype) * (size_t)slice->frozen_elems;
    dt_status st = DT_OK;

    DT_TRY(share_from_data_rank_0(state, slice->master, 4 * (size_t)slice->elems, err));
    DT_TRY(share_from_data_rank_0(state, slice->frozen, frozen_bytes, err));
out:
    return st;
}

/* Broadcast a whole matrix's direction from the rank that computed it: half the bytes of an
 * all-reduce of its gradients. */
static dt_status give_matrix(void *self, float *matrix, int64_t elems, int64_t from, dt_error *err)
{
    ddp_state *own = self;

    return dt_async_comm_broadcast(own->async_comm, NULL, matrix, 4 * (size_t)elems, from, err);
}

static dt_status wait_for_matrices(void *self, dt_error *err)
{
    ddp_state *own = self;

    return dt_async_comm_wait_all(own->async_comm, err);
}

static dt_status unit_grads_ready(void *self, int unit, dt_error *err);

static dt_status ddp_setup(dt_strategy_state *state, uint64_t seed, dt_error *err)
{
    dt_model *model = state->model;
    ddp_state *own = calloc(1, sizeof(*own));
    dt_status st = DT_OK;

    if (own == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the strategy");
    state->own = own;
    DT_TRY(dt_replica_open(&own->replica, model, state->options.graphs, state->mesh.world.rank == 0,
                           err));
    DT_TRY(take_memory(state, err));
    if (!state->options.loads)
        DT_TRY(dt_shard_init(&own->shard, seed, err));
    if (state->mesh.data.size > 1)
        DT_TRY(open_async_comm(state, err));
    for (int unit = 0; unit < model->unit_count; unit++)
        DT_TRY(share_params(state, unit, err));
    if (own->async_comm != NULL)
        state->sent_bytes = dt_async_comm_sent_bytes(own->async_comm);
    DT_TRY(dt_shard_refresh(&own->shard, err));
    state->hooks = (dt_model_hooks){.self = state, .unit_grads_ready = unit_grads_ready};
    if (own->async_comm != NULL) {
        model->hooks = &state->hooks;
        own->shard.peers = (dt_shard_peers){.self = own,
                                            .rank = state->mesh.data.rank,
                                            .count = state->mesh.data.size,
                                            .give = give_matrix,
                                            .wait = wait_for_matrices};
    }
out:
    return st;
}

/* --- a step */

static dt_status ddp_step_begin(dt_strategy_state *state, int64_t micro_steps, dt_error *err)
{
    ddp_state *own = state->own;

    own->micro_steps_left = micro_steps;
    return dt_zero_first_gradients(state->model, &own->overwrites, err);
}

/* Convert a unit's gradients to or from the bf16 copy that is sent. */
static dt_status convert(dt_strategy_state *state, int unit, bool to_bf16, dt_error *err)
{
    ddp_state *own = state->own;
    dt_device *device = state->model->device;
    int64_t elems = state->model->units[unit].elems;
    dt_tensor grads = dt_tensor_1d(state->model->grads[unit], DT_F32, elems);
    dt_tensor sent = dt_tensor_1d(own->bf16_buffers[unit], DT_BF16, elems);

    if (elems == 0)
        return DT_OK;
    return to_bf16 ? device->ops->cast(device, &sent, &grads, err)
                   : device->ops->cast(device, &grads, &sent, err);
}

/* Hook: `unit` got its last gradient of this micro-step. */
static dt_status unit_grads_ready(void *self, int unit, dt_error *err)
{
    dt_strategy_state *state = self;
    ddp_state *own = state->own;
    dt_dtype dtype = own->bf16_buffers != NULL ? DT_BF16 : DT_F32;
    unsigned char *data = (unsigned char *)state->model->grads[unit];
    int64_t left = state->model->units[unit].elems, most = own->bucket_elems;
    dt_status st = DT_OK;

    if (own->micro_steps_left > 1)
        return DT_OK;
    DT_ASSERT(unit == own->next_unit);
    own->next_unit--;
    dt_show_before_send(state, unit, state->model->grads[unit], left);
    if (unit == state->model->unit_count - 1)
        most = own->first_bucket_elems;
    if (own->bf16_buffers != NULL) {
        DT_TRY(convert(state, unit, true, err));
        data = (unsigned char *)own->bf16_buffers[unit];
    }
    while (left > 0) {
        int64_t elems = left < most ? left : most;

        DT_TRY(dt_async_comm_all_reduce(own->async_comm, NULL, data, elems, dtype, err));
        data += (size_t)elems * dt_dtype_bytes(dtype);
        left -= elems;
        most = own->bucket_elems;
    }
out:
    return st;
}

static dt_status ddp_forward_backward(dt_strategy_state *state, const dt_micro_batch *batch,
                                      double loss_scale, double *loss_sum, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    own->next_unit = state->model->unit_count - 1;
    state->model->overwrites = own->overwrites;
    DT_TRY(dt_replica_forward_backward(&own->replica, batch, 0, 1, loss_scale, loss_sum, err));
    own->micro_steps_left--;
    own->overwrites = false;
out:
    state->model->overwrites = false;
    return st;
}

static dt_status ddp_evaluate(dt_strategy_state *state, const dt_micro_batch *batch,
                              double *loss_sum, double *counted, dt_error *err)
{
    ddp_state *own = state->own;

    return dt_replica_evaluate(&own->replica, batch, 0, 1, loss_sum, counted, err);
}

static dt_status finish_reduction(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    if (own->async_comm == NULL)
        return DT_OK;
    DT_ASSERT(own->next_unit == -1);
    DT_TRY(dt_async_comm_wait_all(own->async_comm, err));
    for (int unit = 0; own->bf16_buffers != NULL && unit < state->model->unit_count; unit++)
        DT_TRY(convert(state, unit, false, err));
    state->sent_bytes = dt_async_comm_sent_bytes(own->async_comm);
out:
    return st;
}

static dt_status ddp_grads_finish(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(finish_reduction(state, err));
    DT_TRY(dt_shard_sum_terms(&own->shard, state, err));
out:
    return st;
}

/* All data ranks hold the same gradients, so all compute the same sum. Tensor ranks add theirs. */
static dt_status ddp_grad_norm(dt_strategy_state *state, double *norm, dt_error *err)
{
    ddp_state *own = state->own;
    double squares;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_sum_squares(&own->shard, &squares, err));
    if (state->layer != NULL) {
        squares = dt_mesh_term(&state->mesh, DT_MESH_TENSOR, squares);
        DT_TRY(state->comm->all_reduce_f64(state->comm, &squares, 1, err));
    }
    *norm = sqrt(squares);
out:
    return st;
}

static dt_status ddp_update(dt_strategy_state *state, const dt_optimizer_args *args, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_update(&own->shard, args, err));
    if (own->async_comm != NULL)
        state->sent_bytes = dt_async_comm_sent_bytes(own->async_comm);
out:
    return st;
}

/* --- checkpoints: only data rank 0 of each tensor rank writes and reads; it broadcasts what it has read */

static bool ddp_held_part(const dt_strategy_state *state, int param, dt_held_part *out)
{
    const ddp_state *own = state->own;

    return dt_shard_held_part(&own->shard, param, out);
}

static dt_status ddp_export_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                  int *count, dt_error *err)
{
    ddp_state *own = state->own;

    return dt_shard_export(&own->shard, chunks, count, err);
}

static dt_status ddp_import_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                  int *count, dt_error *err)
{
    ddp_state *own = state->own;

    return dt_shard_import(&own->shard, chunks, count, err);
}

static void ddp_copy_of_unit(dt_strategy_state *state, int unit, float **master, int64_t *elems)
{
    const ddp_state *own = state->own;

    *master = own->shard.units[unit].master;
    *elems = own->shard.units[unit].elems;
}

static dt_status ddp_import_finish(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_to_device(&own->shard.host_mirror, err));
    for (int unit = 0; unit < state->model->unit_count; unit++) {
        dt_shard_unit *slice = &own->shard.units[unit];

        DT_TRY(share_params(state, unit, err));
        for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
            DT_TRY(share_from_data_rank_0(
                state, slice->state[s],
                dt_shard_state_bytes(&own->shard) * (size_t)slice->state_elems[s], err));
    }
    if (own->async_comm != NULL)
        state->sent_bytes = dt_async_comm_sent_bytes(own->async_comm);
    DT_TRY(dt_shard_refresh(&own->shard, err));
out:
    return st;
}

static void ddp_teardown(dt_strategy_state *state)
{
    ddp_state *own = state->own;

    if (own == NULL)
        return;
    dt_async_comm_close(own->async_comm);
    dt_replica_close(&own->replica);
    dt_shard_close(&own->shard);
    dt_device_arena_close(&own->memory);
    free(own->bf16_buffers);
    free(own);
    state->own = NULL;
    dt_shard_leave_model(state->model);
}

const dt_strategy dt_strategy_ddp = {
    .name = "ddp",
    .setup = ddp_setup,
    .step_begin = ddp_step_begin,
    .forward_backward = ddp_forward_backward,
    .evaluate = ddp_evaluate,
    .grads_finish = ddp_grads_finish,
    .grad_norm = ddp_grad_norm,
    .update = ddp_update,
    .copy_of_unit = ddp_copy_of_unit,
    .held_part = ddp_held_part,
    .export_state = ddp_export_state,
    .import_state = ddp_import_state,
    .import_base = dt_shard_import_base,
    .import_finish = ddp_import_finish,
    .teardown = ddp_teardown,
};
