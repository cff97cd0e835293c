/* dp: trains one process with a replica of the model per device, each in a thread; replica 0 is the master.
 *
 *   held, bytes per parameter element      fp32 compute   bf16 compute
 *   master: parameters (fp32)                   4              4
 *           parameters (compute type)           -              2
 *           gradients (fp32)                    4              4
 *           optimizer m, v (fp32)               8              8
 *   each of the R-1 others: parameters          4              2
 *           gradients (fp32)                    4              4
 *   sum                                   16 + 8   18 + 6
 *   buffers: the batches; the activations of the R-1 others; on GPUs a unit's gradients (fp32)
 *
 *   copied per step between the replicas: (R-1) * 4 bytes per element to the master (gradients),
 *   (R-1) * 4 or 2 bytes back (parameters); nothing between processes, since there is only one
 *
 * A step     scatter the batch by sequences, run a pass in every replica; after all micro-steps, add
 *            the gradients to the master's in the order of the replicas, update the master, and copy
 *            the parameters to the others. Nothing overlaps: ddp is faster, dp needs no communicator
 * Threads    strategy_int.h; each replica has its own device: a CPU device with as many threads as the
 *            master's, or the next GPU
 * Errors     DT_ERR_RECIPE for more than one process
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "engine/strategy/strategy_int.h"

/* A replica. The master's model and memory are in the state and the shard instead. */
typedef struct dp_replica {
    dt_replica replica;
    dt_device device;
    dt_model *model;
    dt_device_arena memory;
    double loss_sum; /* loss sum of the last pass */
    double counted;
} dp_replica;

/* Arguments of a pass in all replicas. */
typedef struct dp_pass {
    dt_strategy_state *state;
    const dt_micro_batch *batch;
    double loss_scale;
} dp_pass;

typedef struct dp_state {
    dt_device_arena memory;
    dt_shard shard;
    dp_replica *replicas;
    int64_t count;
    /* copy of another GPU's gradients of a unit; NULL if the master can read them directly */
    float *received;
    dt_thread_pool *thread_pool;
} dp_state;

static dt_tensor flat(const dt_model *model, void *data, int unit, dt_dtype dtype)
{
    return dt_tensor_1d(data, dtype, model->units[unit].elems);
}

/* --- setup */

static int64_t received_bytes(const dp_state *own, const dt_model *model)
{
    int64_t most = 0;

    if (model->device->host_reads || own->count == 1)
        return 0;
    for (int unit = 0; unit < model->unit_count; unit++)
        if (model->units[unit].elems > most)
            most = model->units[unit].elems;
    return 4 * most;
}

static void lay_out_master(void *self, dt_layout *layout)
{
    dt_strategy_state *state = self;
    dp_state *own = state->own;

    for (int unit = 0; unit < state->model->unit_count; unit++)
        dt_shard_take_unit(&own->shard, unit, layout);
    dt_shard_take_work(&own->shard, layout);
    if (received_bytes(own, state->model) > 0)
        own->received = dt_layout_take(layout, (size_t)received_bytes(own, state->model));
}

static void lay_out_replica(void *self, dt_layout *layout)
{
    dt_model *model = self;

    for (int unit = 0; unit < model->unit_count; unit++) {
        size_t elems = (size_t)model->units[unit].elems;

        model->weights[unit] = dt_layout_take(layout, elems * dt_dtype_bytes(model->config.dtype));
        model->frozen[unit] = dt_layout_take(layout, (size_t)model->units[unit].frozen_elems *
                                                         dt_dtype_bytes(model->config.dtype));
        model->grads[unit] = dt_layout_take(layout, elems * sizeof(float));
    }
}

static dt_status open_replica(dp_replica *out, int64_t n, const dt_model *master, bool recorded,
                              dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(master->device->open_replica(master->device, &out->device, n, err));
    DT_TRY(out->device.enter(&out->device, err));
    DT_TRY(dt_model_open(&out->model, &master->config, &out->device, err));
    DT_TRY(dt_layout_open(&out->memory, &out->device, lay_out_replica, out->model, err));
    DT_TRY(dt_replica_open(&out->replica, out->model, recorded, false, err));
out:
    return st;
}

static void fill_accounts(dt_strategy_state *state)
{
    dp_state *own = state->own;
    dt_dtype dtype = state->model->config.dtype;
    int64_t elems = 0, others = own->count - 1, type_bytes = (int64_t)dt_dtype_bytes(dtype);

    for (int unit = 0; unit < state->model->unit_count; unit++)
        elems += state->model->units[unit].elems;
    state->parameters_bytes =
        (4 + (dtype != DT_F32 ? type_bytes : 0) + others * type_bytes) * elems;
    state->parameters_bytes += own->count * dt_shard_frozen_bytes(&own->shard);
    state->gradients_bytes = 4 * own->count * elems;
    state->optimizer_bytes = dt_shard_optimizer_bytes(&own->shard);
    state->keeps_weights = true;
    state->held_bytes = state->parameters_bytes + state->gradients_bytes + state->optimizer_bytes;
    state->buffers_bytes = others * (int64_t)state->model->activation_bytes +
                           received_bytes(own, state->model) + (int64_t)own->shard.work_bytes;
    for (int64_t r = 0; r < own->count; r++)
        state->buffers_bytes += (int64_t)own->replicas[r].replica.upload.bytes;
}

static dt_status take_weights(void *self, int64_t member, dt_error *err);
static dt_status take_frozen(void *self, int64_t member, dt_error *err);

static dt_status dp_setup(dt_strategy_state *state, uint64_t seed, dt_error *err)
{
    dp_state *own;
    dt_status st = DT_OK;

    if (state->mesh.world.size > 1)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "'strategy: dp' needs exactly one process, but there are %lld; use 'strategy: ddp'",
            (long long)state->mesh.world.size);
    if ((own = calloc(1, sizeof(*own))) == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the strategy");
    state->own = own;
    own->count = state->options.replicas;
    own->replicas = calloc((size_t)own->count, sizeof(*own->replicas));
    if (own->replicas == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld replicas", (long long)own->count);
    DT_TRY(dt_shard_open(&own->shard, state->model, &state->options.optimizer, err));
    DT_TRY(dt_shard_record(&own->shard, state->options.graphs, true, err));
    DT_TRY(dt_layout_open(&own->memory, state->model->device, lay_out_master, state, err));
    DT_TRY(dt_shard_make_tables(&own->shard, true, err));
    DT_TRY(
        dt_replica_open(&own->replicas[0].replica, state->model, state->options.graphs, true, err));
    for (int64_t r = 1; r < own->count; r++)
        DT_TRY(open_replica(&own->replicas[r], r, state->model, state->options.graphs, err));
    DT_TRY(state->model->device->enter(state->model->device, err));
    DT_TRY(dt_thread_pool_open(&own->thread_pool, own->count, err));
    if (!state->options.loads)
        DT_TRY(dt_shard_init(&own->shard, seed, err));
    DT_TRY(dt_shard_refresh(&own->shard, err));
    DT_TRY(dt_thread_pool_run(own->thread_pool, take_frozen, state, err));
    DT_TRY(dt_thread_pool_run(own->thread_pool, take_weights, state, err));
    fill_accounts(state);
out:
    return st;
}

/* --- what all replicas do in parallel */

static dt_model *model_of(const dt_strategy_state *state, int64_t member)
{
    dp_state *own = state->own;

    return own->replicas[member].replica.model;
}

/* Copy memory of the master, which does not change meanwhile. */
static dt_status take(dt_model *model, void *to, const dt_model *master, void *from, int64_t elems,
                      dt_error *err)
{
    size_t bytes = (size_t)elems * dt_dtype_bytes(model->config.dtype);

    if (bytes == 0)
        return DT_OK;
    return model->device->copy_from(model->device, to, master->device, from, bytes, err);
}

/* Copy the master's weights. */
static dt_status take_weights(void *self, int64_t member, dt_error *err)
{
    dt_strategy_state *state = self;
    const dt_model *master = state->model;
    dt_model *model = model_of(state, member);
    dt_status st = DT_OK;

    for (int unit = 0; member > 0 && unit < model->unit_count; unit++)
        DT_TRY(take(model, model->weights[unit], master, master->weights[unit],
                    model->units[unit].elems, err));
    DT_TRY(model->device->synchronize(model->device, err));
out:
    return st;
}

/* Copy the master's frozen parameters, after they were initialized or read. */
static dt_status take_frozen(void *self, int64_t member, dt_error *err)
{
    dt_strategy_state *state = self;
    const dt_model *master = state->model;
    dt_model *model = model_of(state, member);
    dt_status st = DT_OK;

    for (int unit = 0; member > 0 && unit < model->unit_count; unit++)
        DT_TRY(take(model, model->frozen[unit], master, master->frozen[unit],
                    model->units[unit].frozen_elems, err));
    DT_TRY(model->device->synchronize(model->device, err));
out:
    return st;
}

static dt_status zero_grads(void *self, int64_t member, dt_error *err)
{
    dt_model *model = model_of(self, member);
    dt_status st = DT_OK;

    DT_TRY(model->device->enter(model->device, err));
    for (int unit = 0; unit < model->unit_count; unit++) {
        dt_tensor grads = flat(model, model->grads[unit], unit, DT_F32);

        if (dt_tensor_elems(&grads) > 0)
            DT_TRY(model->device->ops->zero(model->device, &grads, err));
    }
out:
    return st;
}

static dt_status pass_forward_backward(void *self, int64_t member, dt_error *err)
{
    const dp_pass *pass = self;
    dp_state *own = pass->state->own;
    dp_replica *mine = &own->replicas[member];
    dt_device *device = mine->replica.model->device;
    dt_status st = DT_OK;

    DT_TRY(device->enter(device, err));
    DT_TRY(dt_replica_forward_backward(&mine->replica, pass->batch, member, own->count,
                                       pass->loss_scale, &mine->loss_sum, err));
    DT_TRY(device->synchronize(device, err)); /* the master reads the gradients next */
out:
    return st;
}

static dt_status pass_evaluate(void *self, int64_t member, dt_error *err)
{
    const dp_pass *pass = self;
    dp_state *own = pass->state->own;
    dp_replica *mine = &own->replicas[member];
    dt_device *device = mine->replica.model->device;
    dt_status st = DT_OK;

    DT_TRY(device->enter(device, err));
    DT_TRY(dt_replica_evaluate(&mine->replica, pass->batch, member, own->count, &mine->loss_sum,
                               &mine->counted, err));
out:
    return st;
}

/* --- a step */

static dt_status dp_step_begin(dt_strategy_state *state, int64_t micro_steps, dt_error *err)
{
    dp_state *own = state->own;

    return dt_thread_pool_run(own->thread_pool, zero_grads, state, err);
}

static dt_status dp_forward_backward(dt_strategy_state *state, const dt_micro_batch *batch,
                                     double loss_scale, double *loss_sum, dt_error *err)
{
    dp_state *own = state->own;
    dp_pass pass = {.state = state, .batch = batch, .loss_scale = loss_scale};
    dt_status st = DT_OK;

    DT_TRY(dt_thread_pool_run(own->thread_pool, pass_forward_backward, &pass, err));
    *loss_sum = 0;
    for (int64_t r = 0; r < own->count; r++)
        *loss_sum += own->replicas[r].loss_sum;
out:
    return st;
}

static dt_status dp_evaluate(dt_strategy_state *state, const dt_micro_batch *batch,
                             double *loss_sum, double *counted, dt_error *err)
{
    dp_state *own = state->own;
    dp_pass pass = {.state = state, .batch = batch};
    dt_status st = DT_OK;

    DT_TRY(dt_thread_pool_run(own->thread_pool, pass_evaluate, &pass, err));
    *loss_sum = 0;
    *counted = 0;
    for (int64_t r = 0; r < own->count; r++) {
        *loss_sum += own->replicas[r].loss_sum;
        *counted += own->replicas[r].counted;
    }
out:
    return st;
}

static dt_status dp_grads_finish(dt_strategy_state *state, dt_error *err)
{
    dp_state *own = state->own;
    dt_model *master = state->model;
    dt_device *device = master->device;
    dt_status st = DT_OK;

    for (int unit = 0; unit < master->unit_count; unit++) {
        dt_tensor sum = flat(master, master->grads[unit], unit, DT_F32);

        for (int64_t r = 1; dt_tensor_elems(&sum) > 0 && r < own->count; r++) {
            dt_model *other = model_of(state, r);
            dt_tensor more = flat(master, other->grads[unit], unit, DT_F32);

            if (own->received != NULL) {
                DT_TRY(device->copy_from(device, own->received, other->device, more.data,
                                         dt_tensor_bytes(&more), err));
                more.data = own->received;
            }
            DT_TRY(device->ops->residual_forward(device, &sum, &sum, &more, err));
            state->sent_bytes += (int64_t)dt_tensor_bytes(&more);
        }
    }
out:
    return st;
}

static dt_status dp_grad_norm(dt_strategy_state *state, double *norm, dt_error *err)
{
    dp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_sum_squares(&own->shard, norm, err));
    *norm = sqrt(*norm);
out:
    return st;
}

static dt_status broadcast(dt_strategy_state *state, dt_error *err)
{
    dp_state *own = state->own;
    int64_t type_bytes = (int64_t)dt_dtype_bytes(state->model->config.dtype);
    dt_status st = DT_OK;

    DT_TRY(state->model->device->synchronize(state->model->device, err));
    DT_TRY(dt_thread_pool_run(own->thread_pool, take_weights, state, err));
    for (int unit = 0; unit < state->model->unit_count; unit++)
        state->sent_bytes += (own->count - 1) * type_bytes * state->model->units[unit].elems;
out:
    return st;
}

static dt_status dp_update(dt_strategy_state *state, const dt_optimizer_args *args, dt_error *err)
{
    dp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_update(&own->shard, args, err));
    DT_TRY(broadcast(state, err));
out:
    return st;
}

/* --- checkpoints */

static bool dp_held_part(const dt_strategy_state *state, int param, dt_held_part *out)
{
    const dp_state *own = state->own;

    return dt_shard_held_part(&own->shard, param, out);
}

static dt_status dp_export_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                 int *count, dt_error *err)
{
    dp_state *own = state->own;

    return dt_shard_export(&own->shard, chunks, count, err);
}

static dt_status dp_import_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                 int *count, dt_error *err)
{
    dp_state *own = state->own;

    return dt_shard_import(&own->shard, chunks, count, err);
}

static dt_status dp_import_finish(dt_strategy_state *state, dt_error *err)
{
    dp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_host_mirror_to_device(&own->shard.host_mirror, err));
    DT_TRY(dt_shard_refresh(&own->shard, err));
    DT_TRY(dt_thread_pool_run(own->thread_pool, take_frozen, state, err));
    DT_TRY(broadcast(state, err));
out:
    return st;
}

static void close_replica(dp_replica *replica)
{
    dt_replica_close(&replica->replica);
    dt_device_arena_close(&replica->memory);
    dt_model_close(replica->model);
    dt_device_close(&replica->device);
}

static void dp_teardown(dt_strategy_state *state)
{
    dp_state *own = state->own;

    if (own == NULL)
        return;
    dt_thread_pool_close(own->thread_pool);
    for (int64_t r = 0; own->replicas != NULL && r < own->count; r++)
        close_replica(&own->replicas[r]);
    dt_shard_close(&own->shard);
    dt_device_arena_close(&own->memory);
    free(own->replicas);
    free(own);
    state->own = NULL;
    dt_shard_leave_model(state->model);
}

const dt_strategy dt_strategy_dp = {
    .name = "dp",
    .setup = dp_setup,
    .step_begin = dp_step_begin,
    .forward_backward = dp_forward_backward,
    .evaluate = dp_evaluate,
    .grads_finish = dp_grads_finish,
    .grad_norm = dp_grad_norm,
    .update = dp_update,
    .held_part = dp_held_part,
    .export_state = dp_export_state,
    .import_state = dp_import_state,
    .import_base = dt_shard_import_base,
    .import_finish = dp_import_finish,
    .teardown = dp_teardown,
};
