#include "engine/device/device.h"
#include "engine/model/mlp/model_int.h"

typedef struct layout {
    const dt_model_config *config;
    dt_layout memory;
    int64_t B;
} layout;

static dt_tensor take(layout *plan, dt_dtype dtype, int64_t width)
{
    dt_tensor tensor = dt_tensor_2d(NULL, dtype, plan->B, width);

    tensor.data = dt_layout_take(&plan->memory, dt_tensor_bytes(&tensor));
    return tensor;
}

/* With backward, per row and layer: W for the sums, and W for the activation unless it is
 * recomputed from the sums, which is cheap (then one W for all layers). Without backward: two W in
 * total, used by layers in turn. layers NULL: count only. */
static void lay_out_layers(layout *plan, dt_mlp_layer *layers, bool backward)
{
    const dt_mlp_config *own = &plan->config->mlp;
    bool keeps = backward && plan->config->recompute == DT_RECOMPUTE_NONE;
    dt_mlp_layer layer = {0};

    if (!keeps)
        layer.out = take(plan, plan->config->dtype, own->width);
    if (!backward)
        layer.sums = take(plan, plan->config->dtype, own->width);
    for (int64_t l = 0; l < own->layers; l++) {
        if (backward)
            layer.sums = take(plan, plan->config->dtype, own->width);
        if (keeps)
            layer.out = take(plan, plan->config->dtype, own->width);
        if (layers)
            layers[l] = layer;
    }
}

static void lay_out(layout *plan, dt_mlp_state *state, dt_mlp_layer *layers, bool backward)
{
    const dt_model_config *config = plan->config;

    state->B = plan->B;
    if (config->dtype != DT_F32)
        state->rows = take(plan, config->dtype, config->mlp.inputs);
    state->outputs = take(plan, backward ? config->dtype : DT_F32, config->mlp.outputs);
    state->losses = take(plan, DT_F32, 1);
    state->losses.ndim = 1;
    lay_out_layers(plan, layers, backward);
    if (backward) {
        state->dout = take(plan, config->dtype, config->mlp.width);
        state->dspare = take(plan, config->dtype, config->mlp.width);
    }
}

static size_t count_bytes(const dt_model_config *config, bool backward)
{
    layout plan = {.config = config, .B = config->batch};
    dt_mlp_state state = {0};

    lay_out(&plan, &state, NULL, backward);
    return plan.memory.bytes;
}

size_t dt_mlp_activation_bytes(const dt_model_kind *kind, const dt_model_config *config)
{
    size_t without = count_bytes(config, false);
    size_t with = config->inference ? 0 : count_bytes(config, true);

    return with > without ? with : without;
}

void dt_mlp_lay_out(dt_model *model, int64_t B, bool backward)
{
    dt_mlp_state *state = model->state;
    layout plan = {.config = &model->config, .memory = {.arena = &state->arena}, .B = B};

    state->arena.used_bytes = 0;
    lay_out(&plan, state, state->layers, backward);
}
