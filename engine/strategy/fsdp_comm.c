/* fsdp_comm: what fsdp sends: reduced gradients, and gathered weights. */
#include "engine/ops/ops.h"
#include "engine/strategy/fsdp_int.h"

/* fsdp_reduce: reduces gradients. A rank that holds parts of the gradients computes a unit's whole
 * gradients into a buffer, and adds the part that the reduce-scatter leaves there to its own. Blocks
 * alternate between two buffers, so that one is sent while the next is computed. Sums over micro-steps
 * are in fp32 even if bf16 is sent.
 *
 * Replicas   ranks of other nodes that hold the same parts add their sums once a step, after the last micro-step: a
 *            part is launched along the replica axis as soon as its reduce-scatter is done, which is when the
 *            reduction of the block two further down starts
 */

/* This rank's part of a unit's gradients, within the whole buffer `grads`. */
static dt_tensor part_of(const dt_fsdp *own, int unit, void *grads, dt_dtype dtype)
{
    const dt_shard_unit *part = &own->shard.units[unit];
    size_t start_bytes = (size_t)part->start_elems * dt_dtype_bytes(dtype);

    return dt_tensor_1d((unsigned char *)grads + start_bytes, dtype, part->elems);
}

/* A unit's part of the gradients is summed within its group: start summing it over replicas. */
static dt_status sum_replicas(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    const dt_shard_unit *part = &own->shard.units[unit];
    dt_tensor sent = dt_tensor_1d(part->grad, DT_F32, part->elems);
    dt_status st = DT_OK;

    if (own->bf16_parts != NULL) {
        dt_tensor rounded = dt_tensor_1d(own->bf16_parts[unit], DT_BF16, part->elems);

        DT_TRY(device->ops->cast(device, &rounded, &sent, err));
        sent = rounded;
    }
    DT_TRY(dt_async_comm_all_reduce(own->replicas, NULL, sent.data, part->elems, sent.dtype, err));
out:
    return st;
}

/* Wait until all parts are summed over replicas. */
static dt_status wait_for_replicas(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_status st = DT_OK;

    DT_TRY(dt_async_comm_wait_all(own->replicas, err));
    for (int unit = 0; own->bf16_parts != NULL && unit < state->model->unit_count; unit++) {
        const dt_shard_unit *part = &own->shard.units[unit];
        dt_tensor grads = dt_tensor_1d(part->grad, DT_F32, part->elems);
        dt_tensor rounded = dt_tensor_1d(own->bf16_parts[unit], DT_BF16, part->elems);

        if (part->elems > 0)
            DT_TRY(device->ops->cast(device, &grads, &rounded, err));
    }
out:
    return st;
}

/* Wait for the buffer's reduction, and move the part to where this rank holds it. */
static dt_status finish(dt_strategy_state *state, dt_fsdp_grad_buffer *grad_buffer, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_tensor home, part;
    float *grads;
    dt_status st = DT_OK;

    if (grad_buffer->unit < 0)
        return DT_OK;
    DT_TRY(dt_async_comm_wait(own->async_comm, grad_buffer->ticket, err));
    grads = own->holds_grads ? own->whole_grads[grad_buffer->unit] : grad_buffer->grads;
    part = part_of(own, grad_buffer->unit, grads, DT_F32);
    if (own->sends_bf16) {
        dt_tensor received = part_of(own, grad_buffer->unit, grad_buffer->bf16_buffer, DT_BF16);

        DT_TRY(device->ops->cast(device, &part, &received, err));
    }
    home = dt_tensor_1d(own->shard.units[grad_buffer->unit].grad, DT_F32, part.dim[0]);
    if (home.data != part.data)
        DT_TRY(device->ops->residual_forward(device, &home, &home, &part, err));
    if (own->replicas != NULL && grad_buffer->last)
        DT_TRY(sum_replicas(state, grad_buffer->unit, err));
    grad_buffer->unit = -1;
out:
    return st;
}

dt_status dt_fsdp_reduce_begin(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_fsdp_grad_buffer *grad_buffer = dt_fsdp_grad_buffer_of(own, unit);
    dt_tensor grads;
    dt_status st = DT_OK;

    if (own->holds_grads)
        return DT_OK;
    DT_TRY(finish(state, grad_buffer, err));
    grads = dt_tensor_1d(grad_buffer->grads, DT_F32, dt_fsdp_unit_elems(own, unit));
    if (dt_tensor_elems(&grads) > 0)
        DT_TRY(device->ops->zero(device, &grads, err));
    state->model->grads[unit] = grad_buffer->grads;
out:
    return st;
}

dt_status dt_fsdp_reduce_start(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_fsdp_grad_buffer *grad_buffer = dt_fsdp_grad_buffer_of(own, unit);
    int64_t elems = dt_fsdp_unit_elems(own, unit);
    dt_tensor sent = dt_tensor_1d(state->model->grads[unit], DT_F32, elems), part;
    dt_status st = DT_OK;

    if ((own->holds_grads && own->micro_steps_left > 1) || elems == 0)
        return DT_OK;
    dt_show_before_send(state, unit, state->model->grads[unit], elems);
    if (own->holds_grads)
        DT_TRY(finish(state, grad_buffer, err)); /* units share the bf16 copy */
    if (own->replicas != NULL && unit > 0 && unit + 2 < state->model->unit_count)
        DT_TRY(finish(state, dt_fsdp_grad_buffer_of(own, unit + 2), err));
    if (own->sends_bf16) {
        dt_tensor bf16_buffer = dt_tensor_1d(grad_buffer->bf16_buffer, DT_BF16, elems);

        DT_TRY(device->ops->cast(device, &bf16_buffer, &sent, err));
        sent = bf16_buffer;
    }
    part = part_of(own, unit, sent.data, sent.dtype);
    DT_TRY(dt_async_comm_reduce_scatter(own->async_comm, &grad_buffer->ticket, part.data, sent.data,
                                        part.dim[0], sent.dtype, err));
    grad_buffer->unit = unit;
    grad_buffer->last = own->micro_steps_left == 1;
    if (!own->holds_grads)
        state->model->grads[unit] = NULL;
out:
    return st;
}

dt_status dt_fsdp_reduce_finish(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_status st = DT_OK;

    for (int i = 0; i < own->grad_buffer_count; i++)
        DT_TRY(finish(state, &own->grad_buffers[i], err));
    if (own->replicas != NULL)
        DT_TRY(wait_for_replicas(state, err));
out:
    return st;
}

void dt_fsdp_count_sent(dt_strategy_state *state)
{
    const dt_fsdp *own = state->own;

    state->sent_bytes = dt_async_comm_sent_bytes(own->async_comm);
    if (own->replicas != NULL)
        state->sent_bytes += dt_async_comm_sent_bytes(own->replicas);
}

/* fsdp_gather: gathers a unit's weights while the previous unit computes. Blocks alternate between two
 * gather buffers: while block l computes from one, block l+1 (backward: l-1) is gathered into the other,
 * whose block is no longer needed. So the last two blocks of a forward pass are still gathered when its
 * backward pass starts, and the first two when the next forward pass starts.
 */

/* The frozen parameters' slices are in the compute type, and need no cast. */
static dt_status gather_frozen(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    const dt_shard_unit *part = &own->shard.units[unit];
    dt_fsdp_gather_buffer *gather_buffer = dt_fsdp_gather_buffer_of(own, unit);
    size_t bytes = (size_t)part->frozen_elems * dt_dtype_bytes(state->model->config.dtype);
    dt_status st = DT_OK;

    if (bytes == 0 || gather_buffer->frozen_unit == unit)
        return DT_OK;
    DT_TRY(dt_async_comm_all_gather(own->async_comm, &gather_buffer->frozen_ticket,
                                    gather_buffer->frozen, part->frozen, bytes, err));
    gather_buffer->frozen_unit = unit;
out:
    return st;
}

dt_status dt_fsdp_gather_start(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_dtype dtype = state->model->config.dtype;
    const dt_shard_unit *part = &own->shard.units[unit];
    dt_fsdp_gather_buffer *gather_buffer = dt_fsdp_gather_buffer_of(own, unit);
    size_t bytes = (size_t)part->elems * dt_dtype_bytes(dtype);
    const void *mine = part->master;
    dt_status st = DT_OK;

    if (gather_buffer->unit == unit)
        return DT_OK;
    DT_TRY(gather_frozen(state, unit, err));
    gather_buffer->unit = unit;
    gather_buffer->ticket = 0;
    if (bytes == 0)
        return DT_OK;
    if (dtype != DT_F32) {
        dt_tensor master = dt_tensor_1d(part->master, DT_F32, part->elems);
        dt_tensor cast =
            dt_tensor_1d((unsigned char *)gather_buffer->weights + (size_t)own->rank * bytes, dtype,
                         part->elems);

        DT_TRY(device->ops->cast(device, &cast, &master, err));
        mine = cast.data;
    }
    DT_TRY(dt_async_comm_all_gather(own->async_comm, &gather_buffer->ticket, gather_buffer->weights,
                                    mine, bytes, err));
out:
    return st;
}

dt_status dt_fsdp_gather_wait(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_fsdp_gather_buffer *gather_buffer = dt_fsdp_gather_buffer_of(own, unit);
    dt_status st = DT_OK;

    DT_ASSERT(gather_buffer->unit == unit);
    if (own->shard.units[unit].frozen_elems > 0)
        DT_TRY(dt_async_comm_wait(own->async_comm, gather_buffer->frozen_ticket, err));
    DT_TRY(dt_async_comm_wait(own->async_comm, gather_buffer->ticket, err));
    state->model->weights[unit] = gather_buffer->weights;
    state->model->frozen[unit] = gather_buffer->frozen;
out:
    return st;
}

/* Gathers into the buffer that held the unit's whole gradients; their reduction is complete. */
dt_status dt_fsdp_gather_grads(void *self, int unit, float **whole, dt_error *err)
{
    dt_strategy_state *state = self;
    dt_fsdp *own = state->own;
    const dt_shard_unit *part = &own->shard.units[unit];
    dt_async_comm_ticket ticket;
    dt_status st = DT_OK;

    *whole = own->holds_grads ? own->whole_grads[unit] : dt_fsdp_grad_buffer_of(own, unit)->grads;
    DT_TRY(dt_async_comm_all_gather(own->async_comm, &ticket, *whole, part->grad,
                                    4 * (size_t)part->elems, err));
    DT_TRY(dt_async_comm_wait(own->async_comm, ticket, err));
    dt_fsdp_count_sent(state);
out:
    return st;
}

void dt_fsdp_gather_forget(dt_strategy_state *state, bool frozen)
{
    dt_fsdp *own = state->own;

    for (int i = 0; i < own->gather_buffer_count; i++) {
        own->gather_buffers[i].unit = -1;
        if (frozen)
            own->gather_buffers[i].frozen_unit = -1;
    }
    for (int unit = 0; unit < state->model->unit_count; unit++) {
        state->model->weights[unit] = NULL;
        state->model->frozen[unit] = NULL;
    }
}
