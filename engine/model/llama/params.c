#include "engine/model/llama/model_int.h"

#include "base/banned.h"

static dt_tensor view(const dt_model *model, int unit, int which, dt_dtype dtype,
                      dt_tensor (*of)(const dt_model *, int unit, int which))
{
    const dt_llama_config *config = &model->config.llama;
    int before = 0;

    if (dt_llama_lacks(config, unit, which))
        return (dt_tensor){.dtype = dtype};
    for (int i = 0; i < which; i++)
        before += !dt_llama_lacks(config, unit, i);
    return of(model, unit, before);
}

dt_tensor dt_llama_weight(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, model->config.dtype, dt_model_weight);
}

dt_tensor dt_llama_grad(const dt_model *model, int unit, int which)
{
    return view(model, unit, which, DT_F32, dt_model_grad);
}

void dt_llama_weights(dt_tensor *out, const dt_model *model, int layer)
{
    for (int i = 0; i < DT_LLAMA_BLOCK_PARAMS; i++)
        out[i] = dt_llama_weight(model, layer + 1, i);
}

void dt_llama_grads(dt_tensor *out, const dt_model *model, int layer)
{
    for (int i = 0; i < DT_LLAMA_BLOCK_PARAMS; i++)
        out[i] = dt_llama_grad(model, layer + 1, i);
}

dt_tensor dt_llama_joined(const dt_tensor *params, int first, int last)
{
    dt_tensor all = params[first];

    for (int i = first + 1; i <= last && all.data != NULL; i++) {
        DT_ASSERT((unsigned char *)params[i].data ==
                  (unsigned char *)all.data + dt_tensor_bytes(&all));
        all.dim[0] += params[i].dim[0];
    }
    return all;
}

int dt_llama_head_param(const dt_model *model)
{
    return model->config.llama.own_lm_head ? DT_LLAMA_HEAD : DT_LLAMA_EMBED;
}
