#include "engine/model/model.h"

#include <stdlib.h>

#include "engine/model/gpt2_int.h"

#include "base/banned.h"

static dt_status check_size(const char *what, int64_t value, int64_t most, dt_error *err)
{
    if (value >= 1 && value <= most)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE, "model: '%s' is %lld; expected 1 to %lld", what,
                   (long long)value, (long long)most);
}

static dt_status check_config(const dt_model_config *config, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(check_size("layers", config->layers, DT_GPT2_MAX_LAYERS, err));
    DT_TRY(check_size("embed", config->embed, 1 << 20, err));
    DT_TRY(check_size("heads", config->heads, config->embed, err));
    DT_TRY(check_size("vocab", config->vocab, 1 << 24, err));
    DT_TRY(check_size("context", config->context, 1 << 24, err));
    DT_TRY(check_size("tokens", config->tokens, config->context, err));
    DT_TRY(check_size("batch", config->batch, 1 << 24, err));
    if (config->embed % config->heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'heads' (%lld) does not divide 'embed' (%lld); choose a divisor",
                 (long long)config->heads, (long long)config->embed);
    if (config->vocab_padded < config->vocab || config->vocab_padded % DT_VOCAB_MULTIPLE != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: a vocabulary of %lld is padded to %lld; expected the next multiple of %d",
                 (long long)config->vocab, (long long)config->vocab_padded, DT_VOCAB_MULTIPLE);
    if (!(config->dropout >= 0 && config->dropout < 1))
        DT_THROW(err, DT_ERR_RECIPE, "model: 'dropout' is %g; expected 0 up to, not including, 1",
                 config->dropout);
    if (!(config->attention_dropout >= 0 && config->attention_dropout < 1))
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'attention_dropout' is %g; expected 0 up to, not including, 1",
                 config->attention_dropout);
    if (config->positions == DT_POSITIONS_SINUSOIDAL && config->embed < 4)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: sinusoidal positions need an 'embed' of 4 or more, not %lld",
                 (long long)config->embed);
    if (config->dtype != DT_F32 && config->dtype != DT_BF16 && config->dtype != DT_F16)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "model: no pass in '%s'; choose fp32, bf16 or fp16",
                 dt_dtype_name(config->dtype));
    if (config->incremental && !config->inference)
        DT_THROW(err, DT_ERR_USAGE, "model: a sequence grows where there is no backward only");
    /* keeps every size below in 64 bits */
    if ((double)config->batch * (double)config->tokens * (double)config->embed *
            (double)config->layers >
        0x1p54)
        DT_THROW(err, DT_ERR_NOMEM,
                 "activations of %lld blocks over %lld x %lld tokens fit no memory; "
                 "take a smaller batch",
                 (long long)config->layers, (long long)config->batch, (long long)config->tokens);
out:
    return st;
}

dt_status dt_model_open(dt_model **out, const dt_model_config *config, dt_device *device,
                        dt_error *err)
{
    dt_model *model = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(check_config(config, err));
    model = calloc(1, sizeof *model);
    if (!model)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the model");
    model->config = *config;
    model->device = device;
    DT_TRY(dt_gpt2_open(model, err));
    model->weights = calloc((size_t)model->unit_count, sizeof *model->weights);
    model->grads = calloc((size_t)model->unit_count, sizeof *model->grads);
    if (!model->weights || !model->grads)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the model");
    *out = model;
    model = NULL;
out:
    dt_model_close(model);
    return st;
}

void dt_model_close(dt_model *model)
{
    if (!model)
        return;
    dt_gpt2_close(model);
    free(model->grads);
    free(model->weights);
    free(model->units);
    free(model->params);
    free(model);
}

size_t dt_model_activation_bytes(const dt_model_config *config)
{
    return dt_gpt2_activation_bytes(config);
}

int64_t dt_model_param_elems(const dt_model *model)
{
    int64_t elems = 0;

    for (int i = 0; i < model->param_count; i++)
        elems += model->params[i].elems;
    return elems;
}
