/* fsdp_gather: gathers a unit's weights while the previous unit computes. Blocks alternate between two
 * gather buffers: while block l computes from one, block l+1 (backward: l-1) is gathered into the other,
 * whose block is no longer needed. So the last two blocks of a forward pass are still gathered when its
 * backward pass starts, and the first two when the next forward pass starts.
 */
#include "engine/ops/ops.h"
#include "engine/strategy/fsdp_int.h"

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
    gather_buffer->unit = unit;
out:
    return st;
}

dt_status dt_fsdp_gather_wait(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_fsdp_gather_buffer *gather_buffer = dt_fsdp_gather_buffer_of(own, unit);
    dt_status st = DT_OK;

    DT_ASSERT(gather_buffer->unit == unit);
    DT_TRY(dt_async_comm_wait(own->async_comm, gather_buffer->ticket, err));
    state->model->weights[unit] = gather_buffer->weights;
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

void dt_fsdp_gather_forget(dt_strategy_state *state)
{
    dt_fsdp *own = state->own;

    for (int i = 0; i < own->gather_buffer_count; i++)
        own->gather_buffers[i].unit = -1;
    for (int unit = 0; unit < state->model->unit_count; unit++)
        state->model->weights[unit] = NULL;
}
