/* model: opens a model, calls what its kind implements, and has what all kinds share: hooks of units, views
 * of parameters, keys of masks. */
#include "engine/model/model.h"

#include <stdlib.h>

#include "engine/model/kind.h"
#include "engine/progress.h"
#include "engine/stopwatch.h"

dt_philox_key dt_model_dropout_key(const dt_batch *batch, int layer, dt_philox_op op)
{
    dt_philox_key key = {.seed = batch->seed,
                         .step = batch->step,
                         .micro_step = batch->micro_step,
                         .data_rank = batch->data_rank,
                         .layer = (uint32_t)layer,
                         .op = op,
                         .clock = batch->clock};
    return key;
}

dt_status dt_model_before_unit(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    dt_progress_made();
    dt_stopwatch_unit(unit, model->unit_count, backward);
    return hooks && hooks->before_unit ? hooks->before_unit(hooks->self, unit, backward, err)
                                       : DT_OK;
}

dt_status dt_model_after_unit(dt_model *model, int unit, bool backward, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->after_unit ? hooks->after_unit(hooks->self, unit, backward, err) : DT_OK;
}

dt_status dt_model_grads_ready(dt_model *model, int unit, dt_error *err)
{
    const dt_model_hooks *hooks = model->hooks;

    return hooks && hooks->unit_grads_ready ? hooks->unit_grads_ready(hooks->self, unit, err)
                                            : DT_OK;
}

dt_status dt_model_blocks_forward(dt_model *model, int first, int end, dt_block_pass block,
                                  const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    for (int layer = first; layer < end; layer++) {
        DT_TRY(dt_model_before_unit(model, layer + 1, false, err));
        DT_TRY(block(model, layer, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, false, err));
    }
out:
    return st;
}

dt_status dt_model_blocks_backward(dt_model *model, int first, int end, dt_block_pass block,
                                   const dt_batch *batch, dt_error *err)
{
    dt_status st = DT_OK;

    for (int layer = end - 1; layer >= first; layer--) {
        DT_TRY(dt_model_before_unit(model, layer + 1, true, err));
        DT_TRY(block(model, layer, batch, err));
        DT_TRY(dt_model_after_unit(model, layer + 1, true, err));
        DT_TRY(dt_model_grads_ready(model, layer + 1, err));
    }
out:
    return st;
}

dt_status dt_model_visit_units(dt_model *model,
                               dt_status (*visit)(void *self, int unit, dt_error *err), void *self,
                               dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_model_before_unit(model, 0, false, err));
    DT_TRY(visit(self, 0, err));
    for (int unit = 1; unit < model->unit_count; unit++) {
        DT_TRY(dt_model_before_unit(model, unit, false, err));
        DT_TRY(visit(self, unit, err));
        DT_TRY(dt_model_after_unit(model, unit, false, err));
    }
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

static const dt_param *param_of(const dt_model *model, int unit, int which)
{
    DT_ASSERT(which < model->units[unit].param_count);
    return &model->params[model->units[unit].first_param + which];
}

/* base NULL: without data. */
static dt_tensor view(const dt_param *param, void *base, dt_dtype dtype)
{
    unsigned char *data = base;
    dt_tensor out = {.dtype = dtype, .ndim = param->ndim};

    if (data != NULL)
        out.data = data + (size_t)param->offset_elems * dt_dtype_bytes(dtype);
    for (int i = 0; i < DT_MAX_DIMS; i++)
        out.dim[i] = param->held.dim[i];
    return out;
}

dt_tensor dt_model_weight(const dt_model *model, int unit, int which)
{
    const dt_param *param = param_of(model, unit, which);
    void *base = param->trainable ? model->weights[unit] : model->frozen[unit];

    DT_ASSERT(base);
    return view(param, base, model->config.dtype);
}

dt_tensor dt_model_grad(const dt_model *model, int unit, int which)
{
    const dt_param *param = param_of(model, unit, which);

    DT_ASSERT(!param->trainable || model->grads[unit]);
    return view(param, param->trainable ? model->grads[unit] : NULL, DT_F32);
}

#define DECLARE(KIND, name) extern const dt_model_kind dt_##name##_kind;
#define ROW(KIND, name)     &dt_##name##_kind,
DT_MODELS(DECLARE)

/* By dt_architecture_kind. */
static const dt_model_kind *const kinds[DT_MODEL_KINDS] = {DT_MODELS(ROW)};

/* Returns dt_NAME_kind, which the kind defines in engine/model/NAME/kind.c. */
static const dt_model_kind *model_kind_find(dt_architecture_kind kind)
{
    DT_ASSERT((size_t)kind < DT_MODEL_KINDS);
    return kinds[kind];
}

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
    model->kind = model_kind_find(config->kind);
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
    const dt_model_kind *kind = model_kind_find(config->kind);

    return kind->passes->activation_bytes(kind, config);
}

bool dt_model_can_overwrite(const dt_model *model, const dt_param *param)
{
    return model->device->ops->matmul_first_weight != NULL && model->kind->decoder != NULL &&
           model->config.lora.rank == 0 && model->config.decoder.beta == 0 && param->trainable &&
           dt_param_is_matrix(param);
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
                            double *counted, dt_error *err)
{
    return model->kind->passes->evaluate(model, batch, loss_sum, counted, err);
}

dt_status dt_model_count_classes(dt_model *model, int64_t *counts, dt_error *err)
{
    DT_ASSERT(dt_model_classes(model) > 0);
    return model->kind->passes->count_classes(model, counts, err);
}

int64_t dt_model_classes(const dt_model *model)
{
    const dt_model_passes *passes = model->kind->passes;

    return passes->classes != NULL ? passes->classes(&model->config) : 0;
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
