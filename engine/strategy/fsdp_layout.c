#include <stdlib.h>

#include "engine/strategy/fsdp_int.h"

#include "base/banned.h"

#define PART_ALIGN_ELEMS 16 /* as parameters are aligned: 64 bytes in fp32 */

int64_t dt_fsdp_unit_elems(const dt_fsdp *own, int unit)
{
    return own->world_size * own->share.units[unit].elems;
}

/* The root has a place of its own; blocks have one each, or take turns with two. */
static int place(int unit, bool each)
{
    return each || unit == 0 ? unit : 1 + (unit - 1) % 2;
}

static int place_count(const dt_model *model, bool each)
{
    return each || model->unit_count < 3 ? model->unit_count : 3;
}

dt_fsdp_slot *dt_fsdp_slot_of(const dt_fsdp *own, int unit)
{
    return &own->slots[place(unit, own->keeps_weights)];
}

/* Whole gradients in fp32 are sent from where they lie: none has to wait for another. */
static bool lane_each(const dt_fsdp *own)
{
    return own->holds_grads && !own->narrow;
}

dt_fsdp_lane *dt_fsdp_lane_of(const dt_fsdp *own, int unit)
{
    return &own->lanes[place(unit, lane_each(own))];
}

static void cut(dt_fsdp *own, int unit)
{
    int64_t elems = own->share.model->units[unit].elems, parts = own->world_size * PART_ALIGN_ELEMS;
    dt_share_unit *part = &own->share.units[unit];

    part->elems = (elems + parts - 1) / parts * PART_ALIGN_ELEMS;
    part->start_elems = own->rank * part->elems;
}

/* Units that take turns with a place need the largest one's memory. */
static int64_t place_elems(const dt_fsdp *own, int at, bool each)
{
    int64_t most = 0;

    for (int unit = 0; unit < own->share.model->unit_count; unit++)
        if (place(unit, each) == at && dt_fsdp_unit_elems(own, unit) > most)
            most = dt_fsdp_unit_elems(own, unit);
    return most;
}

static void lay_out_slots(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;
    size_t bytes = dt_dtype_bytes(state->model->config.dtype);

    for (int i = 0; i < own->slot_count; i++) {
        own->slots[i].unit = -1;
        own->slots[i].weights =
            dt_layout_take(layout, bytes * (size_t)place_elems(own, i, own->keeps_weights));
    }
}

static void lay_out_lanes(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;

    for (int i = 0; i < own->lane_count; i++) {
        dt_fsdp_lane *lane = &own->lanes[i];
        size_t elems = (size_t)place_elems(own, i, lane_each(own));

        lane->unit = -1;
        if (!own->holds_grads)
            lane->grads = dt_layout_take(layout, 4 * elems);
        if (own->narrow)
            lane->narrow = dt_layout_take(layout, 2 * elems);
    }
}

static void lay_out_parts(dt_strategy_state *state, dt_layout *layout)
{
    dt_fsdp *own = state->own;

    for (int unit = 0; unit < state->model->unit_count; unit++) {
        dt_share_unit *part = &own->share.units[unit];
        bool in_weights = own->holds_weights && state->model->config.dtype == DT_F32;
        float *whole;

        if (!in_weights)
            part->master = dt_layout_take(layout, 4 * (size_t)part->elems);
        else if ((whole = dt_fsdp_slot_of(own, unit)->weights) != NULL)
            part->master = whole + part->start_elems;
        dt_share_take_moments(&own->share, unit, layout);
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
    lay_out_slots(self, layout);
    lay_out_lanes(self, layout);
    lay_out_parts(self, layout);
}

static void fill_accounts(dt_strategy_state *state)
{
    dt_fsdp *own = state->own;
    int64_t type_bytes = (int64_t)dt_dtype_bytes(state->model->config.dtype);
    int64_t part = 0, slots = 0, lanes = 0;

    for (int unit = 0; unit < state->model->unit_count; unit++)
        part += own->share.units[unit].elems;
    for (int i = 0; i < own->slot_count; i++)
        slots += place_elems(own, i, own->keeps_weights);
    for (int i = 0; i < own->lane_count; i++)
        lanes += place_elems(own, i, lane_each(own));

    if (!own->holds_weights || state->model->config.dtype != DT_F32)
        state->parameters_bytes += 4 * part;
    if (own->holds_weights)
        state->parameters_bytes += type_bytes * slots;
    else
        state->buffers_bytes += type_bytes * slots;
    state->gradients_bytes = own->holds_grads ? 4 * own->world_size * part : 4 * part;
    state->optimizer_bytes = dt_share_optimizer_bytes(&own->share);
    state->buffers_bytes += (own->holds_grads ? 0 : 4 * lanes) + (own->narrow ? 2 * lanes : 0) +
                            (int64_t)own->replica.feed.bytes;
    state->held_bytes = state->parameters_bytes + state->gradients_bytes + state->optimizer_bytes;
}

dt_status dt_fsdp_take_memory(dt_strategy_state *state, dt_error *err)
{
    dt_fsdp *own = state->own;
    dt_model *model = state->model;
    dt_status st = DT_OK;

    DT_TRY(dt_share_open(&own->share, model, state->options.moments, err));
    DT_TRY(dt_share_record(&own->share, state->options.graphs, state->mesh.world.rank == 0, err));
    own->slot_count = place_count(model, own->keeps_weights);
    own->lane_count = place_count(model, lane_each(own));
    own->slots = calloc((size_t)own->slot_count, sizeof(*own->slots));
    own->lanes = calloc((size_t)own->lane_count, sizeof(*own->lanes));
    own->whole_grads = calloc((size_t)model->unit_count, sizeof(*own->whole_grads));
    if (own->slots == NULL || own->lanes == NULL || own->whole_grads == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tables of the parameters");
    for (int unit = 0; unit < model->unit_count; unit++)
        cut(own, unit);
    DT_TRY(dt_layout_open(&own->memory, model->device, lay_out, state, err));
    DT_TRY(dt_share_make_tables(&own->share, true, err));
    fill_accounts(state);
out:
    return st;
}
