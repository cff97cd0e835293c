/* describe: builds the parameter table of a model. Kept in a file of its own so that programs can
 * link it without a device. */
#include <stdlib.h>

#include "engine/model/kind.h"

void dt_model_make_table(dt_model *model)
{
    dt_param_table table;

    dt_param_table_make(&table, &model->config, &model->arena);
    model->params = table.params;
    model->param_count = table.param_count;
    model->units = table.units;
    model->unit_count = table.unit_count;
}

dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err)
{
    dt_model *model = calloc(1, sizeof *model);
    dt_status st = DT_OK;

    *out = NULL;
    if (!model)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of parameters");
    model->config = *config;
    dt_model_make_table(model);
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
    dt_arena_release(&model->arena);
    free(model);
}
