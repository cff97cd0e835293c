#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/model/gpt2_int.h"

#include "base/banned.h"

#define ALIGN_ELEMS 16
#define INIT_STD    0.02

/* A row of the table: sizes are in these units, so that one list serves every model. */
typedef enum size_of { NONE, C1, C3, C4, VOCAB, CONTEXT } size_of;

typedef struct shape {
    const char *name;
    size_of rows, cols; /* cols NONE: one dimension */
    dt_init_kind init;
    bool residual; /* projects onto the residual stream: init scaled by 1/sqrt(2 layers) */
} shape;

static const shape root_shapes[DT_GPT2_ROOT_PARAMS] = {
    [DT_GPT2_WTE] = {"wte.weight", VOCAB, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_WPE] = {"wpe.weight", CONTEXT, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_LN_F_W] = {"ln_f.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_F_B] = {"ln_f.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_HEAD] = {"lm_head.weight", VOCAB, C1, DT_INIT_NORMAL, false},
};

static const shape block_shapes[DT_GPT2_BLOCK_PARAMS] = {
    [DT_GPT2_LN_1_W] = {"ln_1.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_1_B] = {"ln_1.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_ATTN_W] = {"attn.c_attn.weight", C3, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_ATTN_B] = {"attn.c_attn.bias", C3, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_ATTN_PROJ_W] = {"attn.c_proj.weight", C1, C1, DT_INIT_NORMAL, true},
    [DT_GPT2_ATTN_PROJ_B] = {"attn.c_proj.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_LN_2_W] = {"ln_2.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_2_B] = {"ln_2.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_FC_W] = {"mlp.c_fc.weight", C4, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_FC_B] = {"mlp.c_fc.bias", C4, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_MLP_PROJ_W] = {"mlp.c_proj.weight", C1, C4, DT_INIT_NORMAL, true},
    [DT_GPT2_MLP_PROJ_B] = {"mlp.c_proj.bias", C1, NONE, DT_INIT_ZERO, false},
};

static int64_t size_elems(const dt_model_config *config, size_of size)
{
    switch (size) {
    case C1:
        return config->embed;
    case C3:
        return 3 * config->embed;
    case C4:
        return 4 * config->embed;
    case VOCAB:
        return config->vocab_padded;
    case CONTEXT:
        return config->context;
    case NONE:
        break;
    }
    return 1;
}

static int64_t align_up(int64_t elems)
{
    return (elems + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
}

static bool left_out(const dt_model_config *config, int unit, int which)
{
    return unit == 0 && ((which == DT_GPT2_WPE && config->positions == DT_POSITIONS_SINUSOIDAL) ||
                         (which == DT_GPT2_HEAD && !config->own_lm_head));
}

/* Appends a unit with `count` parameters, less what the config leaves out, to the table. */
static void add_unit(dt_model *model, int unit, const shape *shapes, int count)
{
    const dt_model_config *config = &model->config;
    int64_t offset = 0;

    model->units[unit].first_param = model->param_count;
    for (int i = 0; i < count; i++) {
        dt_param *param = &model->params[model->param_count];

        if (left_out(config, unit, i))
            continue;
        model->param_count++;
        model->units[unit].param_count++;
        if (unit == 0)
            snprintf(param->name, sizeof param->name, "%s", shapes[i].name);
        else
            snprintf(param->name, sizeof param->name, "h.%d.%s", unit - 1, shapes[i].name);
        param->unit = unit;
        param->ndim = shapes[i].cols == NONE ? 1 : 2;
        param->dim[0] = size_elems(config, shapes[i].rows);
        param->dim[1] = size_elems(config, shapes[i].cols);
        param->elems = param->dim[0] * param->dim[1];
        param->offset_elems = offset;
        param->init = shapes[i].init;
        if (shapes[i].init == DT_INIT_NORMAL)
            param->init_std =
                shapes[i].residual ? INIT_STD / sqrt(2.0 * (double)config->layers) : INIT_STD;
        param->decay = param->ndim >= 2;
        offset = align_up(offset + param->elems);
    }
    model->units[unit].elems = offset;
}

dt_status dt_gpt2_params_make(dt_model *model, dt_error *err)
{
    int layers = (int)model->config.layers;
    size_t count = DT_GPT2_ROOT_PARAMS + (size_t)layers * DT_GPT2_BLOCK_PARAMS;

    model->unit_count = layers + 1;
    model->params = calloc(count, sizeof *model->params);
    model->units = calloc((size_t)model->unit_count, sizeof *model->units);
    if (!model->params || !model->units)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a table of %zu parameters", count);
    add_unit(model, 0, root_shapes, DT_GPT2_ROOT_PARAMS);
    for (int layer = 0; layer < layers; layer++)
        add_unit(model, layer + 1, block_shapes, DT_GPT2_BLOCK_PARAMS);
    return DT_OK;
}

static dt_tensor view(const dt_model *model, int unit, int which, void *base, dt_dtype dtype)
{
    int before = 0;
    const dt_param *param;
    unsigned char *data = base;

    if (left_out(&model->config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !left_out(&model->config, unit, i);
    DT_ASSERT(data && before < model->units[unit].param_count);
    param = &model->params[model->units[unit].first_param + before];
    data += (size_t)param->offset_elems * dt_dtype_bytes(dtype);
    if (param->ndim == 1)
        return dt_tensor_1d(data, dtype, param->dim[0]);
    return dt_tensor_2d(data, dtype, param->dim[0], param->dim[1]);
}

dt_tensor dt_gpt2_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->weights[unit], model->config.dtype);
}

dt_tensor dt_gpt2_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->grads[unit], DT_F32);
}

int dt_gpt2_head_param(const dt_model *model)
{
    return model->config.own_lm_head ? DT_GPT2_HEAD : DT_GPT2_WTE;
}
