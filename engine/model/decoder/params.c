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

dt_tensor dt_decoder_joined(const dt_tensor *params, int first, int last)
{
    dt_tensor all = params[first];

    for (int i = first + 1; i <= last && all.data != NULL; i++) {
        DT_ASSERT((unsigned char *)params[i].data ==
                  (unsigned char *)all.data + dt_tensor_bytes(&all));
        all.dim[0] += params[i].dim[0];
    }
    return all;
}

int dt_decoder_head_param(const dt_model *model)
{
    const dt_decoder_parts *parts = model->kind->decoder;

    return model->config.decoder.own_lm_head ? parts->head_param : parts->embedding_param;
}
