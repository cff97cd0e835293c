/* The parameters of a model without the model: no device, no activations. */
#include <stdlib.h>

#include "engine/model/gpt2_int.h"

#include "base/banned.h"

dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err)
{
    dt_model *model = calloc(1, sizeof *model);
    dt_status st = DT_OK;

    *out = NULL;
    if (!model)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of parameters");
    model->config = *config;
    DT_TRY(dt_gpt2_params_make(model, err));
    *out = model;
    model = NULL;
out:
    dt_model_description_free(model);
    return st;
}

void dt_model_description_free(dt_model *model)
{
    if (!model)
        return;
    free(model->units);
    free(model->params);
    free(model);
}
