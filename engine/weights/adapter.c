/* adapter: an adapter of low rank as PEFT has it, and merged with its base. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/weights/weights.h"
#include "engine/weights/weights_int.h"
#include "recipes/architecture/decoder.h"
#include "recipes/architecture/published.h"

const char *dt_weights_export_name(const dt_published_tensor **row, dt_weights_exporter *e,
                                   const char *ours)
{
    static const dt_published_tensor of_adapter = {0};
    const char *theirs;

    *row = &of_adapter; /* A and B are as in dtrun */
    theirs = dt_weights_adapter_name(e->family, ours, &e->arena);
    if (theirs == NULL && strstr(ours, ".lora_") == NULL)
        theirs = dt_weights_name(row, e->family, ours, &e->arena);
    return theirs != NULL ? dt_weights_full_name(e->family, theirs, &e->arena) : NULL;
}

/* Returns the row of the base's weight that A or B belongs to, if it is a part of one of theirs; NULL: it is not. */
static const dt_published_tensor *joined_row(const dt_weights_exporter *e, const char *ours,
                                             dt_arena *arena)
{
    const char *end = strstr(ours, ".lora_");
    const dt_published_tensor *row;

    if (end == NULL ||
        dt_weights_name(&row, e->family,
                        dt_arena_printf(arena, "%.*s.weight", (int)(end - ours), ours),
                        arena) == NULL)
        return NULL;
    return row->parts > 0 ? row : NULL;
}

/* Adapters of the parts of one matrix are one adapter of it: their A below each other, their B as blocks on a diagonal,
 * so that its rank is the sum of theirs. */
dt_status dt_weights_join_adapter(dt_weights_joined *out, dt_weights_exporter *e,
                                  const dt_param *param, dt_error *err)
{
    const dt_published_tensor *row = joined_row(e, param->name, &e->arena);
    const char *letter = strstr(param->name, ".lora_");
    int all = 0;

    *out = (dt_weights_joined){.parts = 1};
    if (row == NULL)
        return DT_OK;
    for (int i = 0; i < row->parts; i++) {
        const dt_param *other = param + i - row->part;
        const char *theirs = strstr(other->name, ".lora_");

        all += other >= e->model->params && other < e->model->params + e->model->param_count &&
               other->unit == param->unit && theirs != NULL && strcmp(theirs, letter) == 0;
    }
    if (all < row->parts)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "'%s' is a part of '%s' in a model of type '%s', whose other parts have no "
            "adapter: train with all of 'lora.targets' that it has, or export with --merge",
            param->name, row->theirs, e->family->model_type);
    *out = (dt_weights_joined){row->part, row->parts, strstr(letter, "lora_B") != NULL};
    return DT_OK;
}

/* The modules of an adapter, each once, and those that consist of parts with the sums of their ranks. */
static json_t *modules_of(json_t *ranks, json_t *alphas, const dt_weights_exporter *e, double alpha)
{
    const dt_model_config *config = &e->model->config;
    const dt_lora_target *targets = dt_architecture_find(config->kind)->targets;
    const dt_param_rows *rows = dt_architecture_find(config->kind)->rows;
    json_t *modules = json_array();
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (int i = 0; targets[i].name != NULL; i++) {
        const dt_published_tensor *row;
        const char *module = targets[i].module, *theirs;

        if (!(config->lora.targets >> i & 1))
            continue;
        theirs = dt_weights_name(
            &row, e->family,
            dt_arena_printf(&arena, "%s0.%s", rows->block_prefix, targets[i].weight), &arena);
        if (theirs != NULL && row->parts > 0) {
            if (row->part > 0)
                continue;
            theirs =
                dt_arena_printf(&arena, "%.*s", (int)(strlen(theirs) - strlen(".weight")), theirs);
            module = strrchr(theirs, '.') + 1;
            json_object_set_new(ranks, module, json_integer(row->parts * config->lora.rank));
            json_object_set_new(
                alphas, module,
                dt_json_number(alpha * (e->recipe.lora.rslora ? sqrt((double)row->parts)
                                                              : (double)row->parts)));
        }
        json_array_append_new(modules, json_string(module));
    }
    dt_arena_release(&arena);
    return modules;
}

json_t *dt_weights_adapter_config(const dt_weights_exporter *e)
{
    const dt_model_config *config = &e->model->config;
    const dt_recipe *recipe = &e->recipe;
    double alpha = recipe->lora.alpha > 0 ? recipe->lora.alpha : 2.0 * (double)recipe->lora.rank;
    json_t *ranks = json_object(), *alphas = json_object(), *out;
    json_t *modules = modules_of(ranks, alphas, e, alpha);
    bool turned = false; /* PEFT's fan_in_fan_out: the weights are (in, out) */

    for (const dt_published_tensor *row = e->family->tensors; row->ours != NULL; row++)
        turned = turned || row->transposed;
    out = json_pack(
        "{s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:b, s:b, s:s, s:b, s:b, s:n, s:n}", "peft_type",
        "LORA", "task_type", "CAUSAL_LM", "base_model_name_or_path",
        dt_json_text(recipe->model.from), "r", (json_int_t)config->lora.rank, "lora_alpha",
        alpha == floor(alpha) ? json_integer((json_int_t)alpha) : dt_json_number(alpha),
        "lora_dropout", dt_json_number(config->lora.dropout), "target_modules", modules,
        "use_rslora", (int)recipe->lora.rslora, "fan_in_fan_out", (int)turned, "bias", "none",
        "inference_mode", 1, "init_lora_weights", 1, "modules_to_save", "revision");
    if (json_object_size(ranks) > 0) {
        json_object_set(out, "rank_pattern", ranks);
        json_object_set(out, "alpha_pattern", alphas);
    }
    json_decref(ranks);
    json_decref(alphas);
    return out;
}

/* Finds A or B of a weight by its name; -1: it has no adapter. */
static int find(const dt_model *model, const char *weight, char which)
{
    char name[256];

    snprintf(name, sizeof(name), "%.*s.lora_%c.weight", (int)(strlen(weight) - strlen(".weight")),
             weight, which);
    for (int i = 0; i < model->param_count; i++)
        if (strcmp(model->params[i].name, name) == 0)
            return i;
    return -1;
}

/* values += scale B A, each element summed in double precision. */
static dt_status add_product(float *values, dt_weights_exporter *e, int at_a, int at_b,
                             dt_error *err)
{
    const dt_param *a = &e->model->params[at_a], *b = &e->model->params[at_b];
    int64_t rank = a->dim[0], in = a->dim[1], out = b->dim[0];
    float *left = malloc((size_t)b->elems * sizeof(*left));
    float *right = malloc((size_t)a->elems * sizeof(*right));
    double *sums = malloc((size_t)in * sizeof(*sums));
    dt_status st = DT_OK;

    if (left == NULL || right == NULL || sums == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to merge '%s'", a->name);
    DT_TRY(dt_checkpoint_load_param(e->checkpoint, b, left, err));
    DT_TRY(dt_checkpoint_load_param(e->checkpoint, a, right, err));
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++)
            sums[i] = 0;
        for (int64_t r = 0; r < rank; r++)
            for (int64_t i = 0; i < in; i++)
                sums[i] += (double)left[o * rank + r] * (double)right[r * in + i];
        for (int64_t i = 0; i < in; i++)
            values[o * in + i] =
                (float)((double)values[o * in + i] + e->model->config.lora.scale * sums[i]);
    }
out:
    free(left);
    free(right);
    free(sums);
    return st;
}

dt_status dt_weights_read_merged(float *values, dt_weights_exporter *e, int param, dt_error *err)
{
    const dt_param *weight = &e->model->params[param];
    dt_box box = dt_box_whole(weight->dim, weight->ndim);
    dt_slice whole = dt_slice_whole(&box);
    int a = -1, b = -1;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_read(values, e->base, e->model, param, &whole, err));
    if (weight->ndim == 2) {
        a = find(e->model, weight->name, 'A');
        b = find(e->model, weight->name, 'B');
    }
    if (a >= 0 && b >= 0)
        DT_TRY(add_product(values, e, a, b, err));
out:
    return st;
}

dt_status dt_weights_open_base(dt_weights_exporter *e, const dt_checkpoint_info *info,
                               dt_error *err)
{
    const dt_weights_export_options *options = e->options;
    bool adapter = e->model->config.lora.rank > 0;
    dt_status st = DT_OK;

    if (!adapter && (options->peft || options->merge))
        DT_THROW(
            err, DT_ERR_USAGE,
            "'%s' is a whole model, not an adapter: export it with '--to hf', without '--merge'",
            options->checkpoint);
    if (adapter && !options->peft && !options->merge)
        DT_THROW(
            err, DT_ERR_USAGE,
            "'%s' is an adapter: export it with '--to peft', or add '--merge' for a whole model",
            options->checkpoint);
    if (!options->merge)
        goto out;
    DT_TRY(dt_weights_find(&e->base_files, e->recipe.model.from, &e->arena, err));
    DT_TRY(dt_weights_base_check(&e->base_files, info->base, options->checkpoint, err));
    DT_TRY(dt_weights_open(&e->base, &e->base_files, err));
    DT_TRY(dt_weights_check(e->base, e->model, err));
out:
    return st;
}
