#include "engine/model/decoder/decoder.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    const dt_decoder_parts *parts = model->kind->decoder;
    int before = 0;

    if (parts->lacks(&model->config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !parts->lacks(&model->config, unit, i);
    return of(model, unit, before);
}

dt_tensor dt_decoder_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_decoder_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

int dt_decoder_head_param(const dt_model *model)
{
    const dt_decoder_parts *parts = model->kind->decoder;

    return model->config.decoder.own_lm_head ? parts->head_param : parts->embedding_param;
}
