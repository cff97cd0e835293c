#include "engine/checkpoint/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "engine/checkpoint/checkpoint_int.h"
#include "engine/config.h"
#include "engine/data/data.h"
#include "recipes/fields/fields.h"

/* Moments are only compatible within an optimizer family; an optimizer without moments can resume
 * from any. `model` is the checkpoint's. */
static dt_status check_optimizer(const dt_checkpoint *checkpoint, const dt_model *model,
                                 const dt_recipe *recipe, dt_error *err)
{
    const char *was = checkpoint->index.info.optimizer;
    const char *family = dt_optimizers[recipe->optimizer.kind].family;
    const dt_optimizer_facts *facts = dt_optimizer_find(was);
    bool moments = dt_optimizer_states(&recipe->optimizer, false) > 0;

    if (moments && (facts == NULL || strcmp(facts->family, family) != 0))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' was trained with optimizer '%s', whose moments this recipe's "
                       "optimizer cannot use (resume with 'optimizer.kind=%s')",
                       checkpoint->path, was, was);
    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];
        int states = dt_optimizer_states(&recipe->optimizer, dt_param_is_matrix(param));
        const dt_checkpoint_tensor *tensor =
            dt_checkpoint_index_find(&checkpoint->index, param->name);

        if (!param->trainable)
            continue;
        for (int s = 0; s < states; s++)
            if (tensor->pieces[DT_CHECKPOINT_STATE + s].count == 0)
                return DT_FAIL(err, DT_ERR_RECIPE,
                               "'%s' lacks moments that this recipe's optimizer needs: it was "
                               "trained with '%s' without them (resume with 'optimizer.kind=%s'%s)",
                               checkpoint->path, was, was,
                               facts->needs_momentum ? " and 'optimizer.momentum=0'" : "");
    }
    return DT_OK;
}

/* Fields of the model that do not affect what a trained model computes: its initialization,
 * dropout, and the vocabulary, which the tokenizer determines. */
static const char *const beside[] = {
    "model.preset", "model.from",   "model.dropout", "model.attention_dropout",
    "model.vocab",  "lora.dropout", "lora.from"};

static bool computes(dt_architecture_kind kind, const char *path)
{
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
        if (strcmp(beside[i], path) == 0)
            return false;
    return !dt_architecture_ignores(kind, path);
}

/* An integer field of 0 stands for a value derived from other fields; a real difference then shows
 * in a shape. */
static bool same_value(const json_t *was, const json_t *now)
{
    if (json_is_integer(was) && json_is_integer(now))
        return json_integer_value(was) == json_integer_value(now) || json_integer_value(was) == 0 ||
               json_integer_value(now) == 0;
    if (json_is_number(was) && json_is_number(now))
        return json_number_value(was) == json_number_value(now);
    return json_equal(was, now);
}

static void add_value(dt_strbuf *out, const json_t *value)
{
    if (json_is_string(value))
        dt_strbuf_add_str(out, json_string_value(value));
    else if (json_is_number(value))
        dt_strbuf_add_fmt(out, "%.15g", json_number_value(value));
    else
        dt_json_write(out, value);
}

static void add_changes(dt_strbuf *words, const char *group, const json_t *before, json_t *after,
                        dt_architecture_kind kind)
{
    const char *name;
    json_t *now;

    json_object_foreach(after, name, now) {
        const json_t *was = json_object_get(before, name);
        char path[64];

        snprintf(path, sizeof(path), "%s.%s", group, name);
        if (was == NULL || same_value(was, now) || !computes(kind, path))
            continue;
        dt_strbuf_add_fmt(words, "%s%s was ", words->length == 0 ? "" : "; ", path);
        add_value(words, was);
        dt_strbuf_add_str(words, ", is ");
        add_value(words, now);
    }
}

void dt_checkpoint_model_changes(dt_strbuf *words, const dt_checkpoint *checkpoint,
                                 const dt_recipe *recipe)
{
    static const char *const groups[] = {"model", "lora"};
    json_t *resolved = dt_recipe_to_json(recipe);

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        add_changes(words, groups[i], json_object_get(checkpoint->index.info.recipe, groups[i]),
                    json_object_get(resolved, groups[i]), recipe->model.kind);
    json_decref(resolved);
}

static dt_status check_changes(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    dt_checkpoint_model_changes(&words, checkpoint, recipe);
    if (words.length > 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is from a model that computes something else: %s (undo the change, or add "
                 "--new-model to continue training its parameters in the new model)",
                 checkpoint->path, words.data);
out:
    dt_strbuf_release(&words);
    return st;
}

dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             bool new_model, dt_error *err)
{
    dt_tokenizer *tokenizer = NULL;
    dt_model *model = NULL;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_tokenizer_from_json(&tokenizer, checkpoint->index.info.tokenizer, err));
    DT_TRY(dt_config_train(&config, recipe, dt_tokenizer_vocab(tokenizer), err));
    DT_TRY(dt_model_describe(&model, &config, err));
    DT_TRY(dt_checkpoint_check_model(checkpoint, model, err));
    if (!new_model)
        DT_TRY(check_changes(checkpoint, recipe, err));
    DT_TRY(check_optimizer(checkpoint, model, recipe, err));
out:
    dt_model_description_free(model);
    dt_tokenizer_free(tokenizer);
    return st;
}
