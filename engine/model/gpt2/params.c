#include "engine/model/gpt2/model_int.h"

#include "base/banned.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    const dt_gpt2_config *config = &model->config.gpt2;
    int before = 0;

    if (unit > 0)
        return of(model, unit, which);
    if (dt_gpt2_lacks(config, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !dt_gpt2_lacks(config, i);
    return of(model, unit, before);
}

dt_tensor dt_gpt2_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_gpt2_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

int dt_gpt2_head_param(const dt_model *model)
{
    return model->config.gpt2.own_lm_head ? DT_GPT2_HEAD : DT_GPT2_WTE;
}
