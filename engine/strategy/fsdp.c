/* fsdp: divides parameters, gradients and optimizer state among the ranks, and gathers a unit (a block,
 * or the root: embeddings and final norm) when it is used (Rajbhandari et al. 2020, ZeRO).
 *
 *   held by each of W ranks, bytes per parameter element
 *   shard                      full      gradients (ZeRO-2)    optimizer (ZeRO-1)
 *   fp32 master                4/W         4/W   (fp32: -)       4/W   (fp32: -)
 *   weights, compute type       -          2     (fp32: 4)       2     (fp32: 4)
 *   gradients (fp32)           4/W         4/W                   4
 *   optimizer m, v (fp32)      8/W         8/W                   8/W
 *   sum, bf16 compute         16/W        2 + 16/W              6 + 12/W
 *   sum, fp32 compute         16/W        4 + 12/W              8 +  8/W
 *   frozen parameters: the line "weights, compute type" alone, with shard full in W parts too
 *   In fp32 the master is a part of the weights if the rank holds them whole. If reduce_each_micro_step
 *   is false, gradients are held whole too (4 instead of 4/W).
 *
 *   buffers, used during parts of a step: shard full: the gathered root and two gathered blocks (all
 *   blocks if reshard_after_forward is false) in the compute type; if gradients are held in parts: those
 *   of the root and of two blocks in fp32; with reduce_dtype bf16 2 bytes for each element being sent;
 *   the batch
 *
 *   sent per step by each rank, S bytes of weights in the compute type, G of gradients in the type
 *   that is sent, with `accumulate` micro-steps:
 *     gather   (W-1)/W * S, once a step; with shard full and resharding, the blocks once more for
 *              each further pass, except the two that the previous pass left in the buffers
 *              that of frozen parameters only where the buffer holds another unit's
 *     reduce   (W-1)/W * G, for each micro-step if gradients are held in parts, else once
 *   so in fp32 at most 3 (W-1)/W * S with one micro-step, 2 (W-1)/W * S without resharding
 *
 * Order      the model's hooks launch gathers and reductions in the order of units, the same on all
 *            ranks; an update invalidates gathered weights
 * Resharding the root stays gathered from its first use in a step to the update: both ends use it
 * Sums       in the order of the communicator; over micro-steps in fp32. Bit-identical in every run
 * Threads    one communication thread (strategy_int.h)
 */
#include <math.h>
#include <stdlib.h>

#include "engine/strategy/fsdp_int.h"

/* --- hooks that the model calls */

/* The unit that this pass uses after `unit`, which is gathered meanwhile; 0: none. */
static int next_unit(const dt_model *model, int unit, bool backward)
{
    int last = model->unit_count - 1;

    if (!backward)
        return unit < last ? unit + 1 : 0;
    return unit == 0 ? last : unit - 1; /* the backward pass starts with the root: head and loss */
}

static dt_status before_unit(void *self, int unit, bool backward, dt_error *err)
{
    dt_strategy_state *state = self;
    int next = next_unit(state->model, unit, backward);
    dt_status st = DT_OK;

    DT_TRY(dt_fsdp_gather_start(state, unit, err));
    if (next > 0)
        DT_TRY(dt_fsdp_gather_start(state, next, err));
    if (backward)
        DT_TRY(dt_fsdp_reduce_begin(state, unit, err));
    DT_TRY(dt_fsdp_gather_wait(state, unit, err));
out:
    return st;
}

static dt_status after_unit(void *self, int unit, bool backward, dt_error *err)
{
    dt_strategy_state *state = self;
    dt_fsdp *own = state->own;

    if (!own->keeps_weights && unit > 0) {
        /* another unit may use its gather buffer from here on */
        state->model->weights[unit] = NULL;
        state->model->frozen[unit] = NULL;
    }
    return DT_OK;
}

static dt_status unit_grads_ready(void *self, int unit, dt_error *err)
{
    return dt_fsdp_reduce_start(self, unit, err);
}

/* Gather and gradient buffers have fixed places: a unit finds its own in every pass. */
static void place_units(void *self)
{
    dt_strategy_state *state = self;
    dt_fsdp *own = state->own;
    dt_model *model = state->model;

    for (int unit = 0; unit < model->unit_count; unit++) {
        model->weights[unit] = dt_fsdp_gather_buffer_of(own, unit)->weights;
        model->frozen[unit] = dt_fsdp_gather_buffer_of(own, unit)->frozen;
        model->grads[unit] =
            own->holds_grads ? own->whole_grads[unit] : dt_fsdp_grad_buffer_of(own, unit)->grads;
    }
}

/* --- setup */

static void read_options(dt_strategy_state *state)
{
    const dt_strategy_options *options = &state->options;
    dt_fsdp *own = state->own;

    own->rank = state->mesh.axis[DT_AXIS_SHARD].rank;
    own->world_size = state->mesh.axis[DT_AXIS_SHARD].size;
    own->holds_weights = options->shard != DT_SHARD_FULL;
    own->keeps_weights = own->holds_weights || !options->reshard_after_forward;
    own->holds_grads = options->shard == DT_SHARD_OPTIMIZER || !options->reduce_each_micro_step;
    own->sends_bf16 = options->reduce_dtype == DT_REDUCE_BF16;
}

/* Open the communicator along an axis of the mesh, for `jobs` collectives at once. */
static dt_status open_along(dt_async_comm **out, dt_strategy_state *state, const char *name,
                            dt_mesh_axis axis, int64_t jobs, dt_error *err)
{
    dt_device *device = state->model->device;
    dt_comm comm;
    dt_status st = DT_OK;

    DT_TRY(dt_comm_open_device(&comm, device, state->events, name, state->mesh.axis[axis],
                               DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(dt_async_comm_open(out, &comm, device, jobs, err));
out:
    return st;
}

static dt_status fsdp_setup(dt_strategy_state *state, uint64_t seed, dt_error *err)
{
    dt_fsdp *own = calloc(1, sizeof(*own));
    int64_t units = state->model->unit_count;
    dt_status st = DT_OK;

    if (own == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the strategy");
    state->own = own;
    read_options(state);
    DT_TRY(dt_replica_open(&own->replica, state->model, state->options.graphs,
                           state->mesh.world.rank == 0, err));
    DT_TRY(dt_fsdp_take_memory(state, err));
    for (int unit = 0; unit < state->model->unit_count; unit++)
        state->model->grads[unit] = own->whole_grads[unit];
    /* Every rank initializes only its own parts: initial values depend only on the seed. */
    if (!state->options.loads)
        DT_TRY(dt_shard_init(&own->shard, seed, err));
    /* At most two gathers and one reduction per unit. */
    DT_TRY(open_along(&own->async_comm, state, "fsdp", DT_AXIS_SHARD, 3 * units, err));
    if (state->mesh.axis[DT_AXIS_REPLICA].size > 1)
        DT_TRY(open_along(&own->replicas, state, "replicas", DT_AXIS_REPLICA, units, err));
    state->hooks = (dt_model_hooks){.self = state,
                                    .before_unit = before_unit,
                                    .after_unit = after_unit,
                                    .unit_grads_ready = unit_grads_ready,
                                    .place_units = place_units};
    state->model->hooks = &state->hooks;
out:
    return st;
}

/* --- a step */

static dt_status fsdp_step_begin(dt_strategy_state *state, int64_t micro_steps, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_status st = DT_OK;

    own->micro_steps_left = micro_steps;
    for (int unit = 0; unit < state->model->unit_count; unit++) {
        const dt_shard_unit *part = &own->shard.units[unit];
        dt_tensor grads = dt_tensor_1d(part->grad, DT_F32, part->elems);

        if (own->holds_grads)
            grads = dt_tensor_1d(own->whole_grads[unit], DT_F32, dt_fsdp_unit_elems(own, unit));
        if (dt_tensor_elems(&grads) > 0)
            DT_TRY(device->ops->zero(device, &grads, err));
    }
out:
    return st;
}

static dt_status fsdp_forward_backward(dt_strategy_state *state, const dt_micro_batch *batch,
                                       double loss_scale, double *loss_sum, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_replica_forward_backward(&own->replica, batch, 0, 1, loss_scale, loss_sum, err));
    own->micro_steps_left--;
out:
    return st;
}

static dt_status fsdp_evaluate(dt_strategy_state *state, const dt_micro_batch *batch,
                               double *loss_sum, double *counted, dt_error *err)
{
    dt_fsdp *own = state->own;

    return dt_replica_evaluate(&own->replica, batch, 0, 1, loss_sum, counted, err);
}

static dt_status fsdp_grads_finish(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_fsdp_reduce_finish(state, err));
    DT_TRY(dt_async_comm_wait_all(own->async_comm, err));
    DT_TRY(dt_shard_sum_terms(&own->shard, state, err));
    dt_fsdp_count_sent(state);
out:
    return st;
}

/* Every parameter element that a tensor rank counts belongs to one rank of the shard axis, and padding is zero. */
static dt_status fsdp_grad_norm(dt_strategy_state *state, double *norm, dt_error *err)
{
    dt_fsdp *own = state->own;
    double squares;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_sum_squares(&own->shard, &squares, err));
    squares = dt_mesh_term(&state->mesh, DT_MESH_SHARD | DT_MESH_TENSOR, squares);
    DT_TRY(state->comm->all_reduce_f64(state->comm, &squares, 1, err));
    *norm = sqrt(squares);
out:
    return st;
}

static dt_status fsdp_update(dt_strategy_state *state, const dt_optimizer_args *args, dt_error *err)
{
    dt_fsdp *own = state->own;

    dt_fsdp_gather_forget(state, false);
    own->shard.gather = dt_fsdp_gather_grads;
    own->shard.gather_self = state;
    return dt_shard_update(&own->shard, args, err);
}

/* --- checkpoints: every rank reads its own parts; one of those that hold the same parts writes them */

static bool fsdp_held_part(const dt_strategy_state *state, int param, dt_held_part *out)
{
    const dt_fsdp *own = state->own;

    return dt_shard_held_part(&own->shard, param, out);
}

static dt_status fsdp_export_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                   int *count, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_export(&own->shard, chunks, count, err));
    if (state->mesh.axis[DT_AXIS_REPLICA].rank > 0)
        *count = 0;
out:
    return st;
}

static dt_status fsdp_import_state(dt_strategy_state *state, const dt_state_chunk **chunks,
                                   int *count, dt_error *err)
{
    dt_fsdp *own = state->own;

    return dt_shard_import(&own->shard, chunks, count, err);
}

static dt_status fsdp_import_finish(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;

    dt_fsdp_gather_forget(state, true);
    return dt_host_mirror_to_device(&own->shard.host_mirror, err);
}

static void fsdp_copy_of_unit(dt_strategy_state *state, int unit, float **master, int64_t *elems)
{
    const dt_fsdp *own = state->own;

    *master = own->shard.units[unit].master;
    *elems = own->shard.units[unit].elems;
}

static void fsdp_teardown(dt_strategy_state *state)
{
    dt_fsdp *own = state->own;

    if (own == NULL)
        return;
    dt_async_comm_close(own->async_comm);
    dt_async_comm_close(own->replicas);
    dt_replica_close(&own->replica);
    dt_shard_close(&own->shard);
    dt_device_arena_close(&own->memory);
    free(own->gather_buffers);
    free(own->grad_buffers);
    free(own->whole_grads);
    free(own->bf16_parts);
    free(own);
    state->own = NULL;
    dt_shard_leave_model(state->model);
}

const dt_strategy dt_strategy_fsdp = {
    .name = "fsdp",
    .setup = fsdp_setup,
    .step_begin = fsdp_step_begin,
    .forward_backward = fsdp_forward_backward,
    .evaluate = fsdp_evaluate,
    .grads_finish = fsdp_grads_finish,
    .grad_norm = fsdp_grad_norm,
    .update = fsdp_update,
    .copy_of_unit = fsdp_copy_of_unit,
    .held_part = fsdp_held_part,
    .export_state = fsdp_export_state,
    .import_state = fsdp_import_state,
    .import_base = dt_shard_import_base,
    .import_finish = fsdp_import_finish,
    .teardown = fsdp_teardown,
};
