#include <stdlib.h>

#include "engine/strategy/fsdp_int.h"
#include "recipes/cost/traffic.h"

int64_t dt_fsdp_unit_elems(const dt_fsdp *own, int unit)
{
    return own->world_size * own->shard.units[unit].elems;
}

/* the same of its frozen parameters */
static int64_t fsdp_frozen_elems(const dt_fsdp *own, int unit)
{
    return own->world_size * own->shard.units[unit].frozen_elems;
}

/* Index of a unit's buffer: the root has its own; blocks have one each, or alternate between two. */
static int place(int unit, bool each)
{
    return each || unit == 0 ? unit : 1 + (unit - 1) % 2;
}

static int place_count(const dt_model *model, bool each)
{
    return each || model->unit_count < 3 ? model->unit_count : 3;
}

dt_fsdp_gather_buffer *dt_fsdp_gather_buffer_of(const dt_fsdp *own, int unit)
{
    return &own->gather_buffers[place(unit, own->keeps_weights)];
}

/* Whether each unit has its own gradient buffer: whole fp32 gradients are reduced in place, so no
 * unit waits for another's buffer. */
static bool grad_buffer_each(const dt_fsdp *own)
{
    return own->holds_grads && !own->sends_bf16;
}

dt_fsdp_grad_buffer *dt_fsdp_grad_buffer_of(const dt_fsdp *own, int unit)
{
    return &own->grad_buffers[place(unit, grad_buffer_each(own))];
}

static void place_part(dt_fsdp *own, int unit)
{
    dt_shard_unit *part = &own->shard.units[unit];

    part->elems = dt_fsdp_part_elems(own->shard.model->units[unit].elems, own->world_size);
    part->start_elems = own->rank * part->elems;
    part->frozen_elems =
        dt_fsdp_part_elems(own->shard.model->units[unit].frozen_elems, own->world_size);
    part->frozen_start_elems = own->rank * part->frozen_elems;
}

/* Units that share a buffer need the size of the largest. elems_of: dt_fsdp_unit_elems or fsdp_frozen_elems. */
static int64_t place_elems(const dt_fsdp *own, int at, bool each,
                           int64_t (*elems_of)(const dt_fsdp *own, int unit))
{
    int64_t most = 0;

    for (int unit = 0; unit < own->shard.model->unit_count; unit++)
        if (place(unit, each) == at && elems_of(own, unit) > most)
            most = elems_of(own, unit);
    return most;
}

/* Elements of gather buffer `i`: of trained and frozen parameters. */
static int64_t gathered_elems(const dt_fsdp *own, int i)
{
    return place_elems(own, i, own->keeps_weights, dt_fsdp_unit_elems) +
           place_elems(own, i, own->keeps_weights, fsdp_frozen_elems);
}

static void lay_out_slots(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;
    size_t bytes = dt_dtype_bytes(state->model->config.dtype);

    for (int i = 0; i < own->gather_buffer_count; i++) {
        dt_fsdp_gather_buffer *buffer = &own->gather_buffers[i];

        buffer->unit = buffer->frozen_unit = -1;
        buffer->weights = dt_layout_take(
            layout, bytes * (size_t)place_elems(own, i, own->keeps_weights, dt_fsdp_unit_elems));
        buffer->frozen = dt_layout_take(
            layout, bytes * (size_t)place_elems(own, i, own->keeps_weights, fsdp_frozen_elems));
    }
}

static void lay_out_lanes(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;

    for (int i = 0; i < own->grad_buffer_count; i++) {
        dt_fsdp_grad_buffer *grad_buffer = &own->grad_buffers[i];
        size_t elems = (size_t)place_elems(own, i, grad_buffer_each(own), dt_fsdp_unit_elems);

        grad_buffer->unit = -1;
        if (!own->holds_grads)
            grad_buffer->grads = dt_layout_take(layout, 4 * elems);
        if (own->sends_bf16)
            grad_buffer->bf16_buffer = dt_layout_take(layout, 2 * elems);
    }
}

/* If weights are held whole, the part of the frozen ones is a part of them. */
static void lay_out_frozen(dt_strategy_state *state, int unit, dt_layout *layout)
{
    dt_fsdp *own = state->own;
    dt_shard_unit *part = &own->shard.units[unit];
    size_t bytes = dt_dtype_bytes(state->model->config.dtype);
    unsigned char *whole = dt_fsdp_gather_buffer_of(own, unit)->frozen;

    if (!own->holds_weights)
        part->frozen = dt_layout_take(layout, bytes * (size_t)part->frozen_elems);
    else if (whole != NULL)
        part->frozen = whole + bytes * (size_t)part->frozen_start_elems;
}

static void lay_out_parts(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;

    for (int unit = 0; unit < state->model->unit_count; unit++) {
        dt_shard_unit *part = &own->shard.units[unit];
        bool in_weights = own->holds_weights && state->model->config.dtype == DT_F32;
        float *whole;

        if (!in_weights)
            part->master = dt_layout_take(layout, 4 * (size_t)part->elems);
        else if ((whole = dt_fsdp_gather_buffer_of(own, unit)->weights) != NULL)
            part->master = whole + part->start_elems;
        lay_out_frozen(state, unit, layout);
        dt_shard_take_states(&own->shard, unit, layout);
        if (own->bf16_parts != NULL)
            own->bf16_parts[unit] = dt_layout_take(layout, 2 * (size_t)part->elems);
        if (!own->holds_grads) {
            part->grad = dt_layout_take(layout, 4 * (size_t)part->elems);
            continue;
        }
        whole = dt_layout_take(layout, 4 * (size_t)dt_fsdp_unit_elems(own, unit));
        own->whole_grads[unit] = whole;
        if (whole != NULL)
            part->grad = whole + part->start_elems;
    }
}

static void lay_out(void *self, dt_layout *layout)
{
    const dt_strategy_state *state = self;
    dt_fsdp *own = state->own;

    lay_out_slots(self, layout);
    lay_out_lanes(self, layout);
    lay_out_parts(self, layout);
    dt_shard_take_work(&own->shard, layout);
}

static void fill_accounts(dt_strategy_state *state)
{
    dt_fsdp *own = state->own;
    int64_t type_bytes = (int64_t)dt_dtype_bytes(state->model->config.dtype);
    int64_t part = 0, gather_buffers = 0, grad_buffers = 0;

    for (int unit = 0; unit < state->model->unit_count; unit++)
        part += own->shard.units[unit].elems;
    for (int i = 0; i < own->gather_buffer_count; i++)
        gather_buffers += gathered_elems(own, i);
    for (int i = 0; i < own->grad_buffer_count; i++)
        grad_buffers += place_elems(own, i, grad_buffer_each(own), dt_fsdp_unit_elems);

    if (!own->holds_weights || state->model->config.dtype != DT_F32)
        state->parameters_bytes += 4 * part;
    if (own->holds_weights)
        state->parameters_bytes += type_bytes * gather_buffers;
    else
        state->parameters_bytes += dt_shard_frozen_bytes(&own->shard);
    if (!own->holds_weights)
        state->buffers_bytes += type_bytes * gather_buffers;
    state->gradients_bytes = own->holds_grads ? 4 * own->world_size * part : 4 * part;
    state->optimizer_bytes = dt_shard_optimizer_bytes(&own->shard);
    state->buffers_bytes += (own->holds_grads ? 0 : 4 * grad_buffers) +
                            (own->sends_bf16 ? 2 * grad_buffers : 0) +
                            (own->bf16_parts != NULL ? 2 * part : 0) +
                            (int64_t)(own->replica.upload.bytes + own->shard.work_bytes);
    state->keeps_weights = own->keeps_weights;
    state->held_bytes = state->parameters_bytes + state->gradients_bytes + state->optimizer_bytes;
}

dt_status dt_fsdp_take_memory(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_model *model = state->model;
    bool rounds_parts = own->sends_bf16 && state->mesh.axis[DT_AXIS_REPLICA].size > 1;
    dt_status st = DT_OK;

    DT_TRY(dt_shard_open(&own->shard, model, &state->options.optimizer, err));
    DT_TRY(dt_shard_record(&own->shard, state->options.graphs, state->mesh.world.rank == 0, err));
    own->gather_buffer_count = place_count(model, own->keeps_weights);
    own->grad_buffer_count = place_count(model, grad_buffer_each(own));
    own->gather_buffers = calloc((size_t)own->gather_buffer_count, sizeof(*own->gather_buffers));
    own->grad_buffers = calloc((size_t)own->grad_buffer_count, sizeof(*own->grad_buffers));
    own->whole_grads = calloc((size_t)model->unit_count, sizeof(*own->whole_grads));
    if (rounds_parts)
        own->bf16_parts = calloc((size_t)model->unit_count, sizeof(*own->bf16_parts));
    if (own->gather_buffers == NULL || own->grad_buffers == NULL || own->whole_grads == NULL ||
        (rounds_parts && own->bf16_parts == NULL))
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    for (int unit = 0; unit < model->unit_count; unit++)
        place_part(own, unit);
    DT_TRY(dt_layout_open(&own->memory, model->device, lay_out, state, err));
    DT_TRY(dt_shard_make_tables(&own->shard, true, err));
    fill_accounts(state);
out:
    return st;
}
