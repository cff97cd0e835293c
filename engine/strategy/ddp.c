/* ddp: every rank holds everything; gradients are summed while the backward pass goes on.
 *
 *   held by each rank          fp32 compute   bf16 compute     bytes per parameter element
 *   parameters (fp32 master)        4              4
 *   parameters (compute type)       -              2           (fp32: the master itself)
 *   gradients (fp32)                4              4
 *   optimizer m, v (fp32)           8              8
 *   sum                            16             18
 *
 *   sent per step by each rank: 2 (W-1)/W * 4 bytes per element (ring all-reduce of the
 *   gradients), whatever the number of micro-steps; at the start the master once, from rank 0
 *
 * Buckets    one per unit, cut into pieces of at most bucket_mb. The backward pass completes the
 *            units from the last block to the root, on all ranks alike; a bucket is launched when
 *            its unit is complete in the last micro-step, and the root, with the tied embedding,
 *            comes last.
 * Memory     one arena, taken at setup; gradients and weights in the compute type are found through
 *            model->grads and model->weights, as the model finds them. Parameters are read and
 * written through host pointers: a device whose memory the host cannot read needs staging here.
 * Threads    setup starts the communication thread (reducer.h) where there are peers
 */
#include <math.h>
#include <stdlib.h>

#include "engine/strategy/reducer.h"
#include "engine/strategy/replica.h"
#include "engine/strategy/strategy.h"

#include "base/banned.h"

/* Neighbouring parameters of one unit that decay, or do not: one call of the optimizer. */
typedef struct run {
    int unit;
    int64_t start_elems, elems;
    bool decay;
} run;

typedef struct ddp_state {
    dt_replica replica;
    dt_device_arena memory;
    float **master, **m, **v; /* per unit */
    run *runs;
    int run_count;
    dt_state_chunk *chunks; /* every parameter, whole */
    dt_reducer *reducer;    /* NULL where there is one rank */
    int64_t bucket_elems;
    int next_unit; /* the bucket that is to be launched next */
    int64_t micro_steps_left;
} ddp_state;

static bool keeps_copy(const dt_model *model)
{
    return model->config.dtype != DT_F32;
}

static dt_tensor flat(void *data, dt_dtype dtype, const dt_model *model, int unit)
{
    return dt_tensor_1d(data, dtype, model->units[unit].elems);
}

/* --- setup */

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static dt_status take_memory(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_model *model = state->model;
    size_t copy_bytes = keeps_copy(model) ? dt_dtype_bytes(model->config.dtype) : 0;
    size_t units = (size_t)model->unit_count, capacity_bytes = 0;
    dt_status st = DT_OK;

    own->master = calloc(units, sizeof(*own->master));
    own->m = calloc(units, sizeof(*own->m));
    own->v = calloc(units, sizeof(*own->v));
    own->runs = calloc((size_t)model->param_count, sizeof(*own->runs));
    own->chunks = calloc((size_t)model->param_count, sizeof(*own->chunks));
    if (own->master == NULL || own->m == NULL || own->v == NULL || own->runs == NULL ||
        own->chunks == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");

    for (int unit = 0; unit < model->unit_count; unit++) {
        size_t elems = (size_t)model->units[unit].elems;

        capacity_bytes += 4 * round_up(4 * elems) + round_up(copy_bytes * elems);
        state->parameters_bytes += (int64_t)((4 + copy_bytes) * elems);
        state->gradients_bytes += (int64_t)(4 * elems);
        state->optimizer_bytes += (int64_t)(8 * elems);
    }
    st = dt_device_arena_open(&own->memory, model->device, capacity_bytes, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "parameters, gradients and optimizer state");
        goto out;
    }
    for (int unit = 0; unit < model->unit_count; unit++) {
        size_t elems = (size_t)model->units[unit].elems;

        own->master[unit] = dt_device_arena_take(&own->memory, 4 * elems);
        model->grads[unit] = dt_device_arena_take(&own->memory, 4 * elems);
        own->m[unit] = dt_device_arena_take(&own->memory, 4 * elems);
        own->v[unit] = dt_device_arena_take(&own->memory, 4 * elems);
        model->weights[unit] = copy_bytes > 0
                                   ? dt_device_arena_take(&own->memory, copy_bytes * elems)
                                   : (void *)own->master[unit];
    }
out:
    return st;
}

static void make_tables(dt_strategy_state *state)
{
    ddp_state *own = state->own;
    const dt_model *model = state->model;

    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];
        run *last = own->run_count > 0 ? &own->runs[own->run_count - 1] : NULL;
        int64_t at = param->offset_elems;

        own->chunks[i] = (dt_state_chunk){.param = i,
                                          .elems = param->elems,
                                          .value = own->master[param->unit] + at,
                                          .m = own->m[param->unit] + at,
                                          .v = own->v[param->unit] + at};
        /* The gap between two parameters holds zeros, and AdamW keeps zeros. */
        if (last != NULL && last->unit == param->unit && last->decay == param->decay &&
            at >= last->start_elems + last->elems)
            last->elems = at + param->elems - last->start_elems;
        else
            own->runs[own->run_count++] = (run){param->unit, at, param->elems, param->decay};
    }
}

static dt_status share_from_rank_0(dt_strategy_state *state, float **buffers, dt_error *err)
{
    dt_status st = DT_OK;

    for (int unit = 0; unit < state->model->unit_count; unit++)
        DT_TRY(state->comm->broadcast(state->comm, buffers[unit],
                                      4 * (size_t)state->model->units[unit].elems, 0, err));
out:
    return st;
}

/* The weights in the compute type, from the master. */
static dt_status refresh_weights(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_model *model = state->model;
    dt_status st = DT_OK;

    for (int unit = 0; keeps_copy(model) && unit < model->unit_count; unit++) {
        dt_tensor master = flat(own->master[unit], DT_F32, model, unit);
        dt_tensor weights = flat(model->weights[unit], model->config.dtype, model, unit);

        DT_TRY(model->device->ops->cast(model->device, &weights, &master, err));
    }
out:
    return st;
}

/* The model says that `unit` got its last gradient of this micro-step. */
static dt_status unit_grads_ready(void *self, int unit, dt_error *err)
{
    dt_strategy_state *state = self;
    ddp_state *own = state->own;
    int64_t left = state->model->units[unit].elems;
    float *at = state->model->grads[unit];
    dt_status st = DT_OK;

    if (own->reducer == NULL || own->micro_steps_left > 1)
        return DT_OK;
    DT_ASSERT(unit == own->next_unit);
    own->next_unit--;
    while (left > 0) {
        int64_t elems = left < own->bucket_elems ? left : own->bucket_elems;

        DT_TRY(dt_reducer_launch(own->reducer, at, elems, err));
        at += elems;
        left -= elems;
    }
out:
    return st;
}

static dt_status open_reducer(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    double bucket_elems = state->options.bucket_mb * 1e6 / sizeof(float);
    int64_t buckets = 0;
    dt_status st = DT_OK;
    dt_comm comm;

    own->bucket_elems = bucket_elems > 1 ? (int64_t)bucket_elems : 1;
    for (int unit = 0; unit < state->model->unit_count; unit++)
        buckets += (state->model->units[unit].elems + own->bucket_elems - 1) / own->bucket_elems;
    DT_TRY(dt_comm_open(&comm, state->events, "ddp", state->comm->rank, state->comm->world_size,
                        DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(dt_reducer_open(&own->reducer, &comm, buckets, err));
out:
    return st;
}

static dt_status ddp_setup(dt_strategy_state *state, uint64_t seed, dt_error *err)
{
    dt_model *model = state->model;
    dt_status st = DT_OK;
    ddp_state *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the strategy");
    state->own = own;
    DT_TRY(dt_replica_open(&own->replica, model, err));
    DT_TRY(take_memory(state, err));
    make_tables(state);
    if (state->comm->rank == 0)
        for (int i = 0; i < model->param_count; i++)
            dt_model_init_param(own->chunks[i].value, model, i, seed);
    if (state->comm->world_size > 1) {
        DT_TRY(open_reducer(state, err));
        DT_TRY(share_from_rank_0(state, own->master, err));
    }
    DT_TRY(refresh_weights(state, err));

    state->buffers_bytes = (int64_t)own->replica.memory.capacity_bytes;
    state->held_bytes = state->parameters_bytes + state->gradients_bytes + state->optimizer_bytes;
    state->hooks = (dt_model_hooks){.self = state, .unit_grads_ready = unit_grads_ready};
    model->hooks = &state->hooks;
out:
    return st;
}

/* --- a step */

static dt_status ddp_step_begin(dt_strategy_state *state, int64_t micro_steps, dt_error *err)
{
    ddp_state *own = state->own;
    dt_model *model = state->model;
    dt_status st = DT_OK;

    own->micro_steps_left = micro_steps;
    for (int unit = 0; unit < model->unit_count; unit++) {
        dt_tensor grads = flat(model->grads[unit], DT_F32, model, unit);

        DT_TRY(model->device->ops->zero(model->device, &grads, err));
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
    DT_TRY(dt_replica_forward_backward(&own->replica, batch, 0, 1, loss_scale, loss_sum, err));
    own->micro_steps_left--;
out:
    return st;
}

static dt_status ddp_evaluate(dt_strategy_state *state, const dt_micro_batch *batch,
                              double *loss_sum, int64_t *counted, dt_error *err)
{
    ddp_state *own = state->own;

    return dt_replica_evaluate(&own->replica, batch, 0, 1, loss_sum, counted, err);
}

static dt_status ddp_grads_finish(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    if (own->reducer != NULL) {
        DT_ASSERT(own->next_unit == -1);
        DT_TRY(dt_reducer_wait(own->reducer, err));
        state->sent_bytes = dt_reducer_sent_bytes(own->reducer);
    }
out:
    return st;
}

/* All ranks hold the same gradients, so that all compute the same norm. */
static dt_status ddp_grad_norm(dt_strategy_state *state, double *norm, dt_error *err)
{
    dt_model *model = state->model;
    double total = 0.0;
    dt_status st = DT_OK;

    for (int unit = 0; unit < model->unit_count; unit++) {
        dt_tensor grads = flat(model->grads[unit], DT_F32, model, unit);
        double squares;

        DT_TRY(model->device->ops->sum_squares(model->device, &squares, &grads, err));
        total += squares;
    }
    *norm = sqrt(total);
out:
    return st;
}

static dt_status ddp_update(dt_strategy_state *state, const dt_optimizer_args *args, dt_error *err)
{
    ddp_state *own = state->own;
    dt_model *model = state->model;
    dt_dtype dtype = model->config.dtype;
    dt_status st = DT_OK;

    for (int i = 0; i < own->run_count; i++) {
        const run *r = &own->runs[i];
        dt_tensor param = dt_tensor_1d(own->master[r->unit] + r->start_elems, DT_F32, r->elems);
        dt_tensor m = dt_tensor_1d(own->m[r->unit] + r->start_elems, DT_F32, r->elems);
        dt_tensor v = dt_tensor_1d(own->v[r->unit] + r->start_elems, DT_F32, r->elems);
        dt_tensor grad = dt_tensor_1d(model->grads[r->unit] + r->start_elems, DT_F32, r->elems);
        dt_tensor copy = dt_tensor_1d(NULL, dtype, r->elems);
        dt_optimizer_args of_run = *args;

        if (keeps_copy(model))
            copy.data =
                (char *)model->weights[r->unit] + (size_t)r->start_elems * dt_dtype_bytes(dtype);
        if (!r->decay)
            of_run.weight_decay = 0.0;
        DT_TRY(model->device->ops->optimizer_step(model->device, &param, &copy, &m, &v, &grad,
                                                  &of_run, err));
    }
out:
    return st;
}

/* --- checkpoints: rank 0 writes and reads, the others get theirs from it */

static dt_status ddp_export_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                  int *count, dt_error *err)
{
    ddp_state *own = state->own;

    *chunks = own->chunks;
    *count = state->comm->rank == 0 ? state->model->param_count : 0;
    return DT_OK;
}

static dt_status ddp_import_finish(dt_strategy_state *state, dt_error *err)
{
    ddp_state *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(share_from_rank_0(state, own->master, err));
    DT_TRY(share_from_rank_0(state, own->m, err));
    DT_TRY(share_from_rank_0(state, own->v, err));
    DT_TRY(refresh_weights(state, err));
out:
    return st;
}

static void ddp_teardown(dt_strategy_state *state)
{
    ddp_state *own = state->own;

    if (own == NULL)
        return;
    dt_reducer_close(own->reducer);
    dt_replica_close(&own->replica);
    dt_device_arena_close(&own->memory);
    free(own->master);
    free(own->m);
    free(own->v);
    free(own->runs);
    free(own->chunks);
    free(own);
    state->own = NULL;
    state->model->hooks = NULL;
    for (int unit = 0; unit < state->model->unit_count; unit++) {
        state->model->weights[unit] = NULL;
        state->model->grads[unit] = NULL;
    }
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
    .export_state = ddp_export_state,
    .import_state = ddp_export_state,
    .import_finish = ddp_import_finish,
    .teardown = ddp_teardown,
};
