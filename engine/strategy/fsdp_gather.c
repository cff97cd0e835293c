/* A unit is gathered while its neighbour computes. Blocks that take turns with two slots: while
 * block l computes from one, block l+1 (backward: l-1) comes into the other, whose last block is
 * done with. So the last two blocks of a forward pass are still there when its backward pass
 * begins, and the first two when the next forward pass does.
 */
#include "engine/ops/ops.h"
#include "engine/strategy/fsdp_int.h"

#include "base/banned.h"

dt_status dt_fsdp_gather_start(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_device *device = state->model->device;
    dt_dtype dtype = state->model->config.dtype;
    const dt_share_unit *part = &own->share.units[unit];
    dt_fsdp_slot *slot = dt_fsdp_slot_of(own, unit);
    size_t bytes = (size_t)part->elems * dt_dtype_bytes(dtype);
    const void *mine = part->master;
    dt_status st = DT_OK;

    if (slot->unit == unit)
        return DT_OK;
    if (dtype != DT_F32) {
        dt_tensor master = dt_tensor_1d(part->master, DT_F32, part->elems);
        dt_tensor cast = dt_tensor_1d((unsigned char *)slot->weights + (size_t)own->rank * bytes,
                                      dtype, part->elems);

        DT_TRY(device->ops->cast(device, &cast, &master, err));
        mine = cast.data;
    }
    DT_TRY(dt_exchange_all_gather(own->exchange, &slot->ticket, slot->weights, mine, bytes, err));
    slot->unit = unit;
out:
    return st;
}

dt_status dt_fsdp_gather_wait(dt_strategy_state *state, int unit, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_fsdp_slot *slot = dt_fsdp_slot_of(own, unit);
    dt_status st = DT_OK;

    DT_ASSERT(slot->unit == unit);
    DT_TRY(dt_exchange_wait(own->exchange, slot->ticket, err));
    state->model->weights[unit] = slot->weights;
out:
    return st;
}

void dt_fsdp_gather_forget(dt_strategy_state *state)
{
    dt_fsdp *own = state->own;

    for (int i = 0; i < own->slot_count; i++)
        own->slots[i].unit = -1;
    for (int unit = 0; unit < state->model->unit_count; unit++)
        state->model->weights[unit] = NULL;
}
