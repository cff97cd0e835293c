#include "engine/generate/text.h"

#include <stdlib.h>
#include <string.h>

#include "engine/config.h"
#include "engine/data/sides.h"
#include "recipes/fields/fields.h"

/* Open the weights that an adapter was trained on; no effect if the checkpoint is not one. */
static dt_status open_base(dt_loaded *l, const char *path, const dt_weights_files *base,
                           dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(l->checkpoint);
    dt_status st = DT_OK;

    if (l->recipe.lora.rank == 0)
        return DT_OK;
    if (base != NULL && base->kind != DT_WEIGHTS_NONE)
        l->base_files = *base;
    else
        DT_TRY(dt_weights_find(&l->base_files, l->recipe.model.from, &l->arena, err));
    DT_TRY(dt_weights_base_check(&l->base_files, info->base, path, err));
    DT_TRY(dt_weights_open(&l->base, &l->base_files, err));
out:
    return st;
}

dt_status dt_loaded_open(dt_loaded *l, const char *path, const dt_weights_files *base,
                         dt_error *err)
{
    const dt_checkpoint_info *info;
    const char *kind;
    dt_status st = DT_OK;

    dt_arena_init(&l->arena, 0);
    DT_TRY(dt_checkpoint_open_values(&l->checkpoint, path, err));
    info = dt_checkpoint_get_info(l->checkpoint);
    DT_TRY(dt_recipe_from_json(&l->recipe, info->recipe, &l->arena, err));
    DT_TRY(dt_json_get_string(&kind, info->tokenizer, "kind", path, err));
    l->ids = strcmp(kind, "ids") == 0;
    DT_TRY(dt_tokenizer_from_json(&l->tokenizer, info->tokenizer, err));
    DT_TRY(dt_tokenizer_load(l->tokenizer, path, err));
    (void)dt_tokenizer_set_end_of_text(l->tokenizer, &l->recipe);
    DT_TRY(dt_tokenizer_ends(&l->ends, l->tokenizer, &l->recipe, err));
    DT_TRY(open_base(l, path, base, err));
out:
    return st;
}

dt_status dt_loaded_open_weights(dt_loaded *l, const dt_recipe *recipe,
                                 const dt_weights_files *files, dt_error *err)
{
    const json_t *tokenizer;
    dt_status st = DT_OK;

    dt_arena_init(&l->arena, 0);
    l->recipe = *recipe;
    l->recipe.lora.rank = 0;
    l->base_files = *files;
    DT_TRY(dt_weights_open(&l->base, &l->base_files, err));
    tokenizer = dt_weights_tokenizer(l->base);
    if (recipe->data.tokenizer[0] != '\0') {
        DT_TRY(dt_tokenizer_read(&l->tokenizer, recipe, err));
    } else if (tokenizer != NULL) {
        DT_TRY(dt_tokenizer_from_json(&l->tokenizer, tokenizer, err));
        DT_TRY(dt_tokenizer_load(l->tokenizer, files->folder, err));
    } else {
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no tokenizer.json", files->folder);
    }
    (void)dt_tokenizer_set_end_of_text(l->tokenizer, &l->recipe);
    DT_TRY(dt_tokenizer_ends(&l->ends, l->tokenizer, &l->recipe, err));
out:
    return st;
}

/* Copy one parameter to its unit's flat buffer, in the model's type. */
static dt_status put_weights(dt_loaded *l, const dt_param *param, const float *host, dt_error *err)
{
    dt_dtype dtype = l->model->config.dtype;
    char *unit = param->trainable ? l->model->weights[param->unit] : l->model->frozen[param->unit];
    dt_tensor to = dt_tensor_1d(unit + (size_t)param->offset_elems * dt_dtype_bytes(dtype), dtype,
                                param->elems);
    dt_tensor from = dt_tensor_1d(l->wide.data, DT_F32, param->elems);
    size_t bytes = (size_t)param->elems * sizeof(float);
    dt_status st = DT_OK;

    if (dtype == DT_F32)
        return l->device.copy_in(&l->device, to.data, host, bytes, err);
    DT_TRY(l->device.copy_in(&l->device, from.data, host, bytes, err));
    DT_TRY(l->device.ops->cast(&l->device, &to, &from, err));
out:
    return st;
}

static int64_t largest_param(const dt_model *model)
{
    int64_t largest = 0;

    for (int i = 0; i < model->param_count; i++)
        if (model->params[i].elems > largest)
            largest = model->params[i].elems;
    return largest;
}

static dt_status load_param(dt_loaded *l, int param, dt_error *err)
{
    const dt_param *to = &l->model->params[param];
    dt_box box = dt_box_whole(to->dim, to->ndim);
    dt_slice whole = dt_slice_whole(&box);
    dt_status st = DT_OK;

    DT_TRY(l->base != NULL && (to->in_base || l->model->config.lora.rank == 0)
               ? dt_weights_read(l->host, l->base, l->model, param, &whole, err)
               : dt_checkpoint_load_param(l->checkpoint, to, l->host, err));
    DT_TRY(put_weights(l, to, l->host, err));
out:
    return st;
}

/* Implements dt_model_hooks.before_unit. */
static dt_status load_unit(void *self, int unit, bool backward, dt_error *err)
{
    dt_loaded *l = self;
    const dt_unit *of = &l->model->units[unit];
    dt_status st = DT_OK;

    (void)backward;
    for (int i = of->first_param; i < of->first_param + of->param_count; i++)
        DT_TRY(load_param(l, i, err));
out:
    return st;
}

static dt_status load_weights(dt_loaded *l, bool by_units, dt_error *err)
{
    int64_t largest = largest_param(l->model);
    dt_status st = DT_OK;

    l->host = malloc((size_t)largest * sizeof(float));
    if (l->host == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a parameter of %lld elements",
                 (long long)largest);
    if (l->base != NULL)
        DT_TRY(dt_weights_check(l->base, l->model, err));
    l->hooks = (dt_model_hooks){.self = l, .before_unit = load_unit};
    if (by_units) {
        l->model->hooks = &l->hooks;
        return DT_OK;
    }
    for (int unit = 0; unit < l->model->unit_count; unit++)
        DT_TRY(load_unit(l, unit, false, err));
    free(l->host);
    l->host = NULL;
out:
    return st;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The size of the memory of a unit's weights: with `by_units` all blocks share that of the first, which fits each. */
static dt_unit room_of_unit(const dt_model *model, const dt_loaded_room *room, int unit)
{
    dt_unit out = model->units[unit];

    for (int i = 1; room->by_units && unit > 0 && i < model->unit_count; i++) {
        out.elems = larger(out.elems, model->units[i].elems);
        out.frozen_elems = larger(out.frozen_elems, model->units[i].frozen_elems);
    }
    return out;
}

static dt_status open_weights(dt_loaded *l, const dt_loaded_room *room, size_t ids, dt_error *err)
{
    dt_model *model = l->model;
    size_t each = dt_dtype_bytes(model->config.dtype), bytes = 0, wide;
    int own = room->by_units && model->unit_count > 2 ? 2 : model->unit_count;
    dt_status st = DT_OK;
    dt_unit size;

    for (int unit = 0; unit < own; unit++) {
        size = room_of_unit(model, room, unit);
        bytes += (size_t)size.elems * each + 64 + (size_t)size.frozen_elems * each + 64;
    }
    wide = model->config.dtype == DT_F32 ? 0 : (size_t)largest_param(model) * sizeof(float);
    bytes += wide + 64 + ids * sizeof(int32_t) + 64;
    DT_TRY(dt_device_arena_open(&l->memory, &l->device, bytes, err));
    for (int unit = 0; unit < own; unit++) {
        size = room_of_unit(model, room, unit);
        model->weights[unit] = dt_device_arena_take(&l->memory, (size_t)size.elems * each);
        model->frozen[unit] = dt_device_arena_take(&l->memory, (size_t)size.frozen_elems * each);
    }
    for (int unit = own; unit < model->unit_count; unit++) {
        model->weights[unit] = model->weights[1];
        model->frozen[unit] = model->frozen[1];
    }
    l->wide.data = wide > 0 ? dt_device_arena_take(&l->memory, wide) : NULL;
    l->tokens_in.data = dt_device_arena_take(&l->memory, ids * sizeof(int32_t));
out:
    return st;
}

/* Set what the recipe left to the data, as it was in training. */
static void take_sides(dt_loaded *l)
{
    const dt_sides *sides = dt_tokenizer_sides(l->tokenizer);

    if (sides == NULL)
        return;
    if (l->recipe.model.source_vocab == 0)
        l->recipe.model.source_vocab = sides->source->vocab;
    l->recipe.model.pad = sides->target->pad;
}

dt_status dt_loaded_open_model(dt_loaded *l, const char *device, int64_t threads, dt_dtype dtype,
                               const dt_loaded_room *room, dt_error *err)
{
    dt_model_config config;
    size_t ids;
    int64_t rows;
    dt_status st = DT_OK;

    take_sides(l);
    DT_TRY(dt_config_inference(&config, &l->recipe, dt_tokenizer_vocab(l->tokenizer), err));
    config.incremental = true;
    config.dtype = dtype;
    rows = room->sequences * larger(room->versions, 1);
    if (room->tokens > 0 && room->tokens < config.tokens)
        config.tokens = room->tokens;
    /* a pass over one token per row needs as many rows as this many samples have */
    config.batch = larger(room->batch, (rows + config.tokens - 1) / config.tokens);
    config.sequences = room->sequences;
    config.versions = room->versions;
    config.kept = room->kept;
    ids = (size_t)larger(config.decoder.context, larger(room->batch, rows));
    DT_TRY(dt_device_open(&l->device, device, (int)threads, false, err));
    DT_TRY(dt_model_open(&l->model, &config, &l->device, err));
    DT_TRY(open_weights(l, room, ids, err));
    DT_TRY(load_weights(l, room->by_units, err));
out:
    return st;
}

dt_status dt_loaded_replace_weights(dt_loaded *l, const char *folder, dt_error *err)
{
    dt_status st = DT_OK;

    dt_weights_close(l->base);
    l->base = NULL;
    l->recipe.lora.rank = 0;
    DT_TRY(dt_weights_find(&l->base_files, folder, &l->arena, err));
    DT_TRY(dt_weights_open(&l->base, &l->base_files, err));
out:
    return st;
}

dt_status dt_loaded_diverged(dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "the model's outputs are not finite: the run diverged before this checkpoint "
                   "(use an earlier one)");
}

dt_status dt_loaded_first_tokens(int32_t **out, int64_t *count, const dt_loaded *l, dt_error *err)
{
    *out = NULL;
    *count = 0;
    return l->ids ? DT_OK : dt_tokenizer_first_tokens(out, count, l->tokenizer, err);
}

void dt_loaded_close(dt_loaded *l)
{
    dt_ids_release(&l->ends);
    free(l->host);
    dt_device_arena_close(&l->memory);
    dt_model_close(l->model);
    dt_device_close(&l->device);
    dt_tokenizer_free(l->tokenizer);
    dt_weights_close(l->base);
    dt_checkpoint_close(l->checkpoint);
    dt_arena_release(&l->arena);
}

dt_status dt_loaded_is_of_pairs(bool *out, const char *path, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;
    const char *kind;

    DT_TRY(dt_checkpoint_open_values(&checkpoint, path, err));
    DT_TRY(dt_json_get_string(&kind, dt_checkpoint_get_info(checkpoint)->tokenizer, "kind", path,
                              err));
    *out = strcmp(kind, "pairs") == 0;
out:
    dt_checkpoint_close(checkpoint);
    return st;
}
