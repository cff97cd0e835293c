#include "recipes/architecture/kinds.h"

#include <math.h>

#include "recipes/architecture/architecture.h"

extern const dt_architecture dt_architecture_mlp;

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    out->mlp = (dt_mlp_config){
        .layers = recipe->model.layers,
        .width = recipe->model.embed,
        .inputs = recipe->model.inputs,
        .outputs = recipe->model.outputs,
        .activation = recipe->model.activation,
        .loss = recipe->model.loss,
    };
}

static dt_status check(const dt_model_config *config, dt_error *err)
{
    const dt_mlp_config *own = &config->mlp;
    dt_status st = DT_OK;

    DT_TRY(dt_model_check_size("layers", own->layers, 1 << 20, err));
    DT_TRY(dt_model_check_size("embed", own->width, 1 << 20, err));
    DT_TRY(dt_model_check_size("inputs", own->inputs, 1 << 24, err));
    DT_TRY(dt_model_check_size("outputs", own->outputs, 1 << 24, err));
    DT_TRY(dt_model_check_size("tokens", config->tokens, 1, err));
out:
    return st;
}

static int inputs(dt_input *out, const dt_model_config *config)
{
    bool classes = config->mlp.loss == DT_LOSS_CROSS_ENTROPY;

    out[DT_MLP_ROWS] = (dt_input){"rows", DT_F32, config->mlp.inputs};
    out[DT_MLP_TARGETS] =
        (dt_input){"targets", classes ? DT_I32 : DT_F32, classes ? 1 : config->mlp.outputs};
    return DT_MLP_INPUTS;
}

static int units(const dt_model_config *config)
{
    return (int)config->mlp.layers + 1;
}

/* Sets the (rows, columns) of a unit's matrix. */
static void matrix_of(int64_t dim[2], const dt_mlp_config *config, int unit)
{
    dim[0] = unit == 0 ? config->outputs : config->width;
    dim[1] = unit == 1 ? config->inputs : config->width;
}

/* Initial values are normal with variance 1 over the inputs of a sum, and twice that after relu, which
 * removes half (He et al. 2015); biases are 0. */
static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    bool relu = unit > 0 && config->mlp.activation == DT_ACTIVATION_RELU;
    dt_param_shape weight = {.ndim = 2, .init = DT_INIT_NORMAL};
    dt_param_shape bias = {.ndim = 1};

    matrix_of(weight.dim, &config->mlp, unit);
    weight.init_std = sqrt((relu ? 2.0 : 1.0) / (double)weight.dim[1]);
    bias.dim[0] = weight.dim[0];
    if (unit == 0) {
        dt_param_add(sink, &weight, "head.weight");
        dt_param_add(sink, &bias, "head.bias");
    } else {
        dt_param_add(sink, &weight, "layers.%d.weight", unit - 1);
        dt_param_add(sink, &bias, "layers.%d.bias", unit - 1);
    }
}

/* 6 N for each row: two FLOPs for each element of a matrix, and twice that in backward. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    int64_t dim[2];
    double forward;

    matrix_of(dim, &config->mlp, unit);
    forward = 2 * (double)dim[0] * (double)dim[1];
    return (dt_unit_flops){.forward = forward, .backward = 2 * forward};
}

/* For each row, in the compute type: the row itself unless the type is fp32; each layer's sums and, unless
 * recomputed, its activations; a gradient, and with recomputation one layer's activations. Then the
 * head's outputs (at most fp32) and the loss. */
static int64_t activation_bytes(const dt_model_config *config)
{
    const dt_mlp_config *own = &config->mlp;
    int64_t type_bytes = (int64_t)dt_dtype_bytes(config->dtype);
    int64_t layers = dt_model_keeps_norms(config) ? 2 * own->layers : own->layers + 1;
    int64_t copy = config->dtype == DT_F32 ? 0 : own->inputs;
    int64_t row = dt_size_plus(dt_size_times(layers + 2, own->width), copy);

    return dt_size_times(config->batch,
                         dt_size_plus(dt_size_times(row, type_bytes), 4 * (own->outputs + 1)));
}

static const char *const reads[] = {"model.inputs", "model.outputs", "model.loss",
                                    "model.activation", NULL};

const dt_architecture dt_architecture_mlp = {
    .name = "mlp",
    .item = "row",
    .reads = reads,
    .reads_rows = true,
    .configure = configure,
    .check = check,
    .inputs = inputs,
    .units = units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N",
    .activation_bytes = activation_bytes,
};
