#include "engine/model/model.h"

#include <stdlib.h>

#include "engine/model/kind.h"

dt_status dt_model_open(dt_model **out, const dt_model_config *config, dt_device *device,
                        dt_error *err)
{
    dt_model *model = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_model_config_check(config, err));
    model = calloc(1, sizeof *model);
    if (!model)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the model");
    model->config = *config;
    model->kind = dt_model_kind_find(config->kind);
    model->device = device;
    dt_model_make_table(model);
    model->weights = calloc((size_t)model->unit_count, sizeof *model->weights);
    model->frozen = calloc((size_t)model->unit_count, sizeof *model->frozen);
    model->grads = calloc((size_t)model->unit_count, sizeof *model->grads);
    if (!model->weights || !model->frozen || !model->grads)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the model");
    model->activation_bytes = model->kind->passes->activation_bytes(model->kind, config);
    DT_TRY(model->kind->passes->open(model, err));
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
    model->kind->passes->close(model);
    free(model->grads);
    free(model->frozen);
    free(model->weights);
    dt_model_description_free(model);
}

size_t dt_model_activation_bytes(const dt_model_config *config)
{
    const dt_model_kind *kind = dt_model_kind_find(config->kind);

    return kind->passes->activation_bytes(kind, config);
}

int64_t dt_model_param_elems(const dt_model *model)
{
    int64_t elems = 0;

    for (int i = 0; i < model->param_count; i++)
        elems += model->params[i].elems;
    return elems;
}

/* --- functions that the kind implements */

dt_status dt_model_pass(dt_model *model, const dt_batch *batch, const double *loss_scale,
                        dt_error *err)
{
    return model->kind->passes->pass(model, batch, loss_scale, err);
}

dt_status dt_model_loss(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err)
{
    return model->kind->passes->loss(model, batch, loss_sum, err);
}

dt_status dt_model_evaluate(dt_model *model, const dt_batch *batch, double *loss_sum,
                            int64_t *counted, dt_error *err)
{
    return model->kind->passes->evaluate(model, batch, loss_sum, counted, err);
}

dt_status dt_model_text_of(dt_model_text *out, const dt_model *model, dt_error *err)
{
    if (model->kind->passes->text == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "a model of kind '%s' does not generate text%s",
                       dt_architecture_find(model->config.kind)->name,
                       dt_architecture_find(model->config.kind)->reads_pairs
                           ? ": it translates lines (use 'dtrun generate RUN --input FILE')"
                           : "");
    *out = model->kind->passes->text(model);
    return DT_OK;
}

dt_status dt_model_logits(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                          dt_error *err)
{
    return model->kind->passes->logits(model, batch, last, logits, err);
}

dt_status dt_model_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens, float *logits,
                          dt_error *err)
{
    return model->kind->passes->extend(model, sequence, tokens, logits, err);
}

dt_status dt_model_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                               dt_error *err)
{
    return model->kind->passes->extend_each(model, tokens, logits, err);
}

dt_status dt_model_replace(dt_model *model, int64_t to, int64_t from, dt_error *err)
{
    return model->kind->passes->replace(model, to, from, err);
}

int64_t dt_model_extended(const dt_model *model, int64_t sequence)
{
    return model->kind->passes->extended(model, sequence);
}

dt_status dt_model_translate(dt_model *model, int64_t sentence, const dt_tensor *source,
                             dt_error *err)
{
    if (model->kind->passes->translate == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "a model of kind '%s' does not translate",
                       dt_architecture_find(model->config.kind)->name);
    return model->kind->passes->translate(model, sentence, source, err);
}

dt_status dt_model_translate_next(dt_model *model, const dt_tensor *previous,
                                  const int32_t *parents, float *logits, dt_error *err)
{
    return model->kind->passes->translate_next(model, previous, parents, logits, err);
}
