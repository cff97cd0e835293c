#include <stdlib.h>

#include "engine/model/mlp/model_int.h"

extern const dt_model_kind dt_mlp_kind;

static dt_status open_model(dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_mlp_state *state = calloc(1, sizeof *state);
    dt_status st = DT_OK;

    model->state = state;
    if (!state)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    state->layers = calloc((size_t)config->mlp.layers, sizeof *state->layers);
    state->targets = calloc((size_t)(config->batch * config->mlp.outputs), sizeof(float));
    if (!state->layers || !state->targets)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the state of the model");
    st = dt_device_arena_open(&state->arena, model->device, model->activation_bytes, err);
    if (st)
        dt_error_prefix(err, "activations of %lld layers over %lld rows",
                        (long long)config->mlp.layers, (long long)config->batch);
out:
    return st;
}

static void close_model(dt_model *model)
{
    dt_mlp_state *state = model->state;

    if (!state)
        return;
    dt_device_arena_close(&state->arena);
    free(state->targets);
    free(state->layers);
    free(state);
    model->state = NULL;
}

/* Lay out a pass of the batch's shape. Asserts that the model was opened for such a batch. */
static void lay_out(dt_model *model, const dt_batch *batch, bool backward)
{
    const dt_tensor *rows = &batch->inputs[DT_MLP_ROWS];
    dt_mlp_state *state = model->state;

    DT_ASSERT(rows->data && rows->dtype == DT_F32 && batch->inputs[DT_MLP_TARGETS].data);
    DT_ASSERT(rows->dim[0] > 0 && rows->dim[0] <= model->config.batch &&
              rows->dim[1] == model->config.mlp.inputs);
    dt_mlp_lay_out(model, rows->dim[0], backward);
    if (model->config.dtype == DT_F32)
        state->rows = *rows;
}

/* Cast the rows and run all layers. Unit 0 is in use when it returns. */
static dt_status forward(dt_model *model, const dt_batch *batch, dt_error *err)
{
    dt_device *device = model->device;
    dt_mlp_state *state = model->state;
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    if (model->config.dtype != DT_F32)
        DT_TRY(device->ops->cast(device, &state->rows, &batch->inputs[DT_MLP_ROWS], err));
    DT_TRY(dt_model_blocks_forward(model, 0, (int)model->config.mlp.layers, dt_mlp_layer_forward,
                                   batch, err));
    DT_TRY(dt_mlp_head_forward(model, err));
out:
    return st;
}

static dt_status pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                      dt_error *err)
{
    dt_status st = DT_OK;

    DT_ASSERT(!model->config.inference);
    lay_out(model, batch, true);
    DT_TRY(forward(model, batch, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(dt_model_before_unit(model, 0, true, err));
    DT_TRY(dt_mlp_head_train(model, &batch->inputs[DT_MLP_TARGETS], loss_scale, err));
    DT_TRY(dt_model_blocks_backward(model, 0, (int)model->config.mlp.layers, dt_mlp_layer_backward,
                                    batch, err));
    DT_TRY(dt_model_after_unit(model, 0, true, err));
    DT_TRY(dt_model_grads_ready(model, 0, err));
out:
    return st;
}

/* Lays out the pass again: it may have been replayed from a graph after a pass of another shape. */
static dt_status loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    const dt_mlp_state *state = model->state;

    lay_out(model, batch, true);
    return model->device->ops->sum(model->device, loss_sum, &state->losses, err);
}

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                          int64_t *counted, dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_MLP_TARGETS];
    const dt_mlp_state *state = model->state;
    dt_status st = DT_OK;

    lay_out(model, batch, false);
    DT_TRY(forward(model, batch, err));
    DT_TRY(dt_mlp_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(model->device->ops->sum(model->device, loss_sum, &state->losses, err));
    DT_TRY(dt_mlp_count(counted, model, targets, err));
out:
    return st;
}

static const dt_model_passes passes = {
    .activation_bytes = dt_mlp_activation_bytes,
    .open = open_model,
    .close = close_model,
    .pass = pass,
    .loss = loss,
    .evaluate = evaluate,
};

const dt_model_kind dt_mlp_kind = {&passes, NULL};
