/* kind: the MLP: which activations a pass keeps and where, layers, the head with its loss, and whole passes.
 *
 *   rows ─(cast)─ layer 0 ─ activation ─ ... ─ layer L-1 ─ activation ─ head ─ loss
 *
 * B rows of a batch; I W O L as in recipes/architecture/kinds.h; act: config.dtype.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/device/device.h"
#include "engine/model/linear.h"
#include "engine/ops/ops.h"

typedef struct dt_mlp_layer {
    dt_tensor sums; /* act (B,W): sums x w^T + b, before the activation */
    /* act (B,W): activation(sums); sums itself without backward; shared by all layers under
     * recompute */
    dt_tensor out;
} dt_mlp_layer;

typedef struct dt_mlp_state {
    dt_device_arena arena; /* memory of all activations, laid out again by every pass */
    void *targets;         /* host copy of a batch's targets, to count them */
    float *on_host;        /* host copy of a batch's outputs, to find the predicted classes */

    int64_t B;            /* rows of the current pass */
    dt_tensor rows;       /* act (B,I): the batch's own tensor if act is F32 */
    dt_mlp_layer *layers; /* [L] layers */
    dt_tensor outputs;    /* (B,O) act, or F32 without backward; later their gradient */
    dt_tensor losses;     /* F32 (B): loss of each row */
    /* act (B,W): gradient of a layer's output, and memory for the next one */
    dt_tensor dout, dspare;
} dt_mlp_state;

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
    bool keeps = backward && dt_model_keeps_norms(plan->config);
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

static void take_all(layout *plan, dt_mlp_state *state, dt_mlp_layer *layers, bool backward)
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

    take_all(&plan, &state, NULL, backward);
    return plan.memory.bytes;
}

static size_t mlp_activation_bytes(const dt_model_kind *kind, const dt_model_config *config)
{
    size_t without = count_bytes(config, false);
    size_t with = config->inference ? 0 : count_bytes(config, true);

    return with > without ? with : without;
}

/* Point the state's tensors into the arena for a pass over B rows. */
static void mlp_lay_out(dt_model *model, int64_t B, bool backward)
{
    dt_mlp_state *state = model->state;
    layout plan = {.config = &model->config, .memory = {.arena = &state->arena}, .B = B};

    state->arena.used_bytes = 0;
    take_all(&plan, state, state->layers, backward);
}

/* The input of layer `layer`, or of the head for L. */
static const dt_tensor *mlp_input_of(const dt_mlp_state *state, int layer)
{
    return layer == 0 ? &state->rows : &state->layers[layer - 1].out;
}

/* The linear layer of a unit; backward: with its gradients. */
static dt_linear mlp_linear(const dt_model *model, int unit, bool backward)
{
    dt_linear linear = {.w = dt_model_weight(model, unit, DT_MLP_W),
                        .b = dt_model_weight(model, unit, DT_MLP_B)};

    if (backward) {
        linear.dw = dt_model_grad(model, unit, DT_MLP_W);
        linear.db = dt_model_grad(model, unit, DT_MLP_B);
    }
    return linear;
}

static dt_status activate(dt_model *model, int layer, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_mlp_layer *a = &state->layers[layer];

    return model->device->ops->activation_forward(model->device, &a->out, &a->sums,
                                                  model->config.mlp.activation, err);
}

/* these functions do not read the batch */
static dt_status mlp_layer_forward(dt_model *model, int layer, const dt_batch *batch, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = mlp_linear(model, layer + 1, false);
    dt_status st = DT_OK;

    /* (B,I) or (B,W) -> sums (B,W) -> out (B,W) */
    DT_TRY(dt_linear_forward(model, &linear, &state->layers[layer].sums, mlp_input_of(state, layer),
                             err));
    DT_TRY(activate(model, layer, err));
out:
    return st;
}

/* Turns state->dout from the gradient of the layer's output into that of its input. Computes no gradient of
 * the model's input rows. */
static dt_status mlp_layer_backward(dt_model *model, int layer, const dt_batch *batch,
                                    dt_error *err)
{
    dt_device *device = model->device;
    const dt_ops *ops = device->ops;
    dt_mlp_state *state = model->state;
    dt_linear linear = mlp_linear(model, layer + 1, true);
    dt_tensor dsums = state->dout;
    dt_status st = DT_OK;

    /* dout (B,W) -> dsums (B,W), in place -> dw (W,I) or (W,W), db (W) -> dspare (B,W) */
    DT_TRY(ops->activation_backward(device, &dsums, &state->dout, &state->layers[layer].sums,
                                    model->config.mlp.activation, err));
    if (layer > 0 && !dt_model_keeps_norms(&model->config))
        DT_TRY(activate(model, layer - 1, err));
    DT_TRY(dt_linear_backward(model, &linear, layer > 0 ? &state->dspare : NULL, &dsums,
                              mlp_input_of(state, layer), err));
    if (layer > 0) {
        state->dout = state->dspare;
        state->dspare = dsums;
    }
out:
    return st;
}

static bool has_classes(const dt_model *model)
{
    return model->config.mlp.loss == DT_LOSS_CROSS_ENTROPY;
}

/* --- the head; called once the last layer's output is computed */

static dt_status mlp_head_forward(dt_model *model, dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = mlp_linear(model, 0, false);

    return dt_linear_forward(model, &linear, &state->outputs,
                             mlp_input_of(state, (int)model->config.mlp.layers), err);
}

/* Replaces the outputs by their gradient. */
static dt_status loss_backward(dt_model *model, const dt_tensor *targets, const double *loss_scale,
                               dt_error *err)
{
    dt_device *device = model->device;
    dt_mlp_state *state = model->state;
    dt_tensor classes = dt_tensor_1d(targets->data, DT_I32, state->B);

    if (has_classes(model))
        return device->ops->cross_entropy_backward(device, &state->losses, &state->outputs,
                                                   &classes, NULL, model->config.mlp.outputs,
                                                   loss_scale, 0, err);
    return device->ops->squared_error_backward(device, &state->losses, &state->outputs, targets,
                                               loss_scale, err);
}

/* Losses; gradients of the head's parameters, and of its input, into state->dout. */
static dt_status mlp_head_train(dt_model *model, const dt_tensor *targets, const double *loss_scale,
                                dt_error *err)
{
    dt_mlp_state *state = model->state;
    dt_linear linear = mlp_linear(model, 0, true);
    dt_status st = DT_OK;

    DT_TRY(loss_backward(model, targets, loss_scale, err));
    DT_TRY(dt_linear_backward(model, &linear, &state->dout, &state->outputs,
                              mlp_input_of(state, (int)model->config.mlp.layers), err));
out:
    return st;
}

/* Compute the losses only. */
static dt_status mlp_head_evaluate(dt_model *model, const dt_tensor *targets, dt_error *err)
{
    dt_device *device = model->device;
    dt_mlp_state *state = model->state;
    dt_tensor classes = dt_tensor_1d(targets->data, DT_I32, state->B);

    if (has_classes(model))
        return device->ops->cross_entropy_forward(device, &state->losses, &state->outputs, &classes,
                                                  NULL, model->config.mlp.outputs, err);
    return device->ops->squared_error_forward(device, &state->losses, &state->outputs, targets,
                                              err);
}

/* Count the targets that count: rows for classes, single numbers for regression. */
static dt_status mlp_count(double *counted, dt_model *model, const dt_tensor *targets,
                           dt_error *err)
{
    dt_mlp_state *state = model->state;
    const int32_t *classes = state->targets;
    const float *numbers = state->targets;
    dt_status st = DT_OK;

    DT_TRY(model->device->copy_out(model->device, state->targets, targets->data,
                                   dt_tensor_bytes(targets), err));
    *counted = 0;
    for (int64_t i = 0; i < dt_tensor_elems(targets); i++)
        *counted += has_classes(model) ? classes[i] >= 0 : !isnan(numbers[i]);
out:
    return st;
}

/* Returns the index of the largest output, the first of equals; -1: one of them is not finite. */
static int64_t predicted_class(const float *outputs, int64_t count)
{
    int64_t best = 0;

    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(outputs[i]))
            return -1;
        if (outputs[i] > outputs[best])
            best = i;
    }
    return best;
}

static int64_t mlp_classes(const dt_model_config *config)
{
    return config->mlp.loss == DT_LOSS_CROSS_ENTROPY ? config->mlp.outputs : 0;
}

static dt_status mlp_count_classes(dt_model *model, int64_t *counts, dt_error *err)
{
    const dt_mlp_state *state = model->state;
    int64_t classes = model->config.mlp.outputs;
    const int32_t *targets = state->targets;
    dt_status st = DT_OK;

    DT_TRY(model->device->copy_out(model->device, state->on_host, state->outputs.data,
                                   (size_t)(state->B * classes) * sizeof(float), err));
    for (int64_t i = 0; i < state->B; i++) {
        int64_t predicted = predicted_class(state->on_host + i * classes, classes);

        if (targets[i] >= 0 && predicted >= 0)
            counts[targets[i] * classes + predicted]++;
    }
out:
    return st;
}

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
    state->on_host = calloc((size_t)(config->batch * config->mlp.outputs), sizeof *state->on_host);
    if (!state->layers || !state->targets || !state->on_host)
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
    free(state->on_host);
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
    mlp_lay_out(model, rows->dim[0], backward);
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
    DT_TRY(dt_model_blocks_forward(model, 0, (int)model->config.mlp.layers, mlp_layer_forward,
                                   batch, err));
    DT_TRY(mlp_head_forward(model, err));
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
    DT_TRY(mlp_head_train(model, &batch->inputs[DT_MLP_TARGETS], loss_scale, err));
    DT_TRY(dt_model_blocks_backward(model, 0, (int)model->config.mlp.layers, mlp_layer_backward,
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

static dt_status evaluate(dt_model *model, const dt_batch *batch, double *loss_sum, double *counted,
                          dt_error *err)
{
    const dt_tensor *targets = &batch->inputs[DT_MLP_TARGETS];
    const dt_mlp_state *state = model->state;
    dt_status st = DT_OK;

    lay_out(model, batch, false);
    DT_TRY(forward(model, batch, err));
    DT_TRY(mlp_head_evaluate(model, targets, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
    DT_TRY(model->device->ops->sum(model->device, loss_sum, &state->losses, err));
    DT_TRY(mlp_count(counted, model, targets, err));
out:
    return st;
}

static const dt_model_passes passes = {
    .activation_bytes = mlp_activation_bytes,
    .open = open_model,
    .close = close_model,
    .pass = pass,
    .loss = loss,
    .evaluate = evaluate,
    .classes = mlp_classes,
    .count_classes = mlp_count_classes,
};

const dt_model_kind dt_mlp_kind = {&passes, NULL};
