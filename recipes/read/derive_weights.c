/* derive_weights: sets the model's fields from the files of model.from, and the adapter's from those of lora.from
 * (recipes/read/reading.h). */
#include <string.h>

#include "base/file.h"
#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface.h"
#include "recipes/foreign/peft.h"
#include "recipes/foreign/weights.h"
#include "recipes/read/reading.h"

#define GENERATION_MAX ((size_t)1 << 20)

/* Reports a field of the recipe that differs from the file. */
static dt_status refuse(const dt_reading *reading, const char *path, const char *text,
                        const char *where, const char *key)
{
    json_t *value = dt_field_to_json(reading->recipe, dt_field_find(path));
    dt_strbuf own;

    dt_strbuf_init(&own);
    dt_json_write(&own, value);
    DT_FAIL(reading->err, DT_ERR_RECIPE, "'%s' is %s, and '%s' has %s%s%s%s: leave it out", path,
            own.data, where, text, key != NULL ? " ('" : "", key != NULL ? key : "",
            key != NULL ? "')" : "");
    dt_text_mark_prefix(reading->err, dt_reading_mark(reading, path));
    dt_strbuf_release(&own);
    json_decref(value);
    return DT_ERR_RECIPE;
}

/* Whether two patterns, each repeated, have the same letters for this many blocks. */
static bool repeat_alike(const char *one, const char *other, int64_t blocks)
{
    size_t length = strlen(one), length2 = strlen(other);

    for (int64_t i = 0; i < blocks && length > 0 && length2 > 0; i++)
        if (one[(size_t)i % length] != other[(size_t)i % length2])
            return false;
    return length > 0 && length2 > 0;
}

/* Returns whether the recipe's value means the same as the file's. */
static bool agrees(const dt_reading *reading, const dt_field *field,
                   const dt_huggingface_value *value)
{
    dt_recipe theirs = *reading->recipe;
    json_t *mine, *other;
    bool same;

    DT_ASSERT(dt_huggingface_set(&theirs, field, value->text, reading->arena, NULL) == DT_OK);
    mine = dt_field_to_json(reading->recipe, field);
    other = dt_field_to_json(&theirs, field);
    same = json_equal(mine, other) ||
           (value->at_most && json_number_value(mine) < json_number_value(other)) ||
           (value->repeats > 0 && json_is_string(mine) &&
            repeat_alike(json_string_value(mine), value->text, value->repeats));
    json_decref(mine);
    json_decref(other);
    return same;
}

static dt_status take_from(dt_reading *reading, const dt_huggingface_value *value,
                           const char *where, const char *from)
{
    const dt_field *field = dt_field_find(value->path);

    if (!dt_reading_given(reading, value->path)) {
        DT_ASSERT(dt_huggingface_set(reading->recipe, field, value->text, reading->arena, NULL) ==
                  DT_OK);
        dt_reading_derived(reading, value->path, value->text, from);
        return DT_OK;
    }
    return agrees(reading, field, value)
               ? DT_OK
               : refuse(reading, value->path, value->text, where, value->key);
}

static dt_status take(dt_reading *reading, const dt_huggingface_value *value, const char *where)
{
    return take_from(reading, value, where, "model.from");
}

/* Reports an error of the files at model.from. */
static dt_status at_from(const dt_reading *reading, dt_status st)
{
    if (st == DT_ERR_RECIPE)
        dt_text_mark_prefix(reading->err, dt_reading_mark(reading, "model.from"));
    return st;
}

/* --- config.json */

static dt_status take_config(dt_reading *reading, const json_t *config, const char *where)
{
    dt_huggingface_model model;
    dt_status st = DT_OK;

    DT_TRY(
        at_from(reading, dt_huggingface_read(&model, config, where, reading->arena, reading->err)));
    DT_TRY(take(reading, &(dt_huggingface_value){"model.kind", model.kind, "model_type", false, 0},
                where));
    for (size_t i = 0; i < model.count; i++)
        DT_TRY(take(reading, &model.values[i], where));
out:
    return st;
}

/* One id, or a list of them, as texts. */
static void set_end_ids(dt_reading *reading, const json_t *ids)
{
    size_t count = json_is_array(ids) ? json_array_size(ids) : 1;
    const char **items = dt_arena_alloc_array(reading->arena, count, sizeof(items[0])), *text;
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(ids) ? json_array_get(ids, i) : ids;

        items[i] = dt_arena_printf(reading->arena, "%lld", (long long)json_integer_value(id));
        dt_strbuf_add_fmt(&shown, "%s%s", i > 0 ? ", " : "[", items[i]);
    }
    dt_strbuf_add_char(&shown, ']');
    reading->recipe->model.end_ids = (dt_string_list){.items = items, .count = (int64_t)count};
    text = dt_arena_strdup(reading->arena, shown.data);
    dt_reading_derived(reading, "model.end_ids", text, "model.from");
    dt_strbuf_release(&shown);
}

static bool are_ids(const json_t *ids)
{
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (!json_is_integer(json_array_get(ids, i)))
            return false;
    return json_is_integer(ids) || json_array_size(ids) > 0;
}

/* Sets the ids that end generation, as transformers does: from generation_config.json if it exists, else from
 * config.json. */
static dt_status take_end_ids(dt_reading *reading, const json_t *config, const char *folder)
{
    const char *path = dt_arena_printf(reading->arena, "%s/" DT_HUGGINGFACE_GENERATION, folder);
    json_t *generation = NULL;
    const json_t *ids;
    dt_status st = DT_OK;

    if (dt_file_exists(path))
        DT_TRY(at_from(reading,
                       dt_json_read_foreign(&generation, path, GENERATION_MAX, reading->err)));
    ids = json_object_get(generation != NULL ? generation : config, "eos_token_id");
    if (ids == NULL || json_is_null(ids) || dt_reading_given(reading, "model.end_ids") ||
        dt_architecture_ignores(reading->recipe->model.kind, "model.end_ids"))
        goto out;
    if (!are_ids(ids))
        DT_THROW(reading->err, DT_ERR_RECIPE,
                 "'%s': 'eos_token_id' is neither an id nor a list of ids",
                 generation != NULL ? path : folder);
    set_end_ids(reading, ids);
out:
    json_decref(generation);
    return st;
}

bool dt_reading_trains_on_ids(const dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;
    const char *first;
    size_t length;

    if (recipe->data.tokens != DT_TOKENS_AUTO)
        return recipe->data.tokens != DT_TOKENS_CHAR && recipe->data.tokens != DT_TOKENS_BYTE;
    if (recipe->data.train.count == 0)
        return false;
    first = recipe->data.train.items[0];
    length = strcspn(first, "#");
    return length >= 4 && strncmp(first + length - 4, ".bin", 4) == 0;
}

/* Uses the tokenizer of the weights unless the recipe sets another. */
static void take_tokenizer(dt_reading *reading, const char *folder)
{
    dt_strbuf path;
    const char *text;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/tokenizer.json", folder);
    if (!dt_reading_given(reading, "data.tokens") && !dt_reading_given(reading, "data.tokenizer") &&
        !dt_reading_trains_on_ids(reading) && dt_file_exists(path.data)) {
        text = dt_arena_strdup(reading->arena, folder);
        reading->recipe->data.tokenizer = text;
        dt_reading_derived(reading, "data.tokenizer", text, "model.from");
    }
    dt_strbuf_release(&path);
}

/* --- index.json of a checkpoint */

/* Fields about training rather than about the model. */
static bool is_free(const dt_field *field)
{
    static const char *const paths[] = {"model.from", "model.preset", "model.dropout",
                                        "model.attention_dropout", "model.end_ids"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (strcmp(field->path, paths[i]) == 0)
            return true;
    return !dt_field_in_group(field, "model");
}

static dt_status take_recipe_field(dt_reading *reading, const dt_recipe *theirs,
                                   const dt_field *field, const char *where)
{
    json_t *value = dt_field_to_json(theirs, field);
    const char *text = json_string_value(value);
    dt_status st = DT_OK;
    dt_strbuf written;

    dt_strbuf_init(&written);
    if (text == NULL) {
        dt_json_write(&written, value);
        text = written.data;
    }
    text = dt_arena_strdup(reading->arena, text);
    DT_TRY(take(reading, &(dt_huggingface_value){field->path, text, NULL, false, 0}, where));
out:
    dt_strbuf_release(&written);
    json_decref(value);
    return st;
}

/* Takes the model of a checkpoint. Learned positions are rows of a matrix, so their number is fixed. */
static dt_status take_checkpoint(dt_reading *reading, const json_t *index, const char *where)
{
    dt_recipe theirs;
    dt_status st = DT_OK;

    st = dt_recipe_from_json(&theirs, json_object_get(index, "recipe"), reading->arena, NULL);
    if (st != DT_OK)
        return at_from(reading, DT_FAIL(reading->err, DT_ERR_RECIPE,
                                        "'%s' has no recipe that this dtrun can read", where));
    for (size_t i = 0; i < dt_fields_count; i++)
        if (!is_free(&dt_fields[i]))
            DT_TRY(take_recipe_field(reading, &theirs, &dt_fields[i], where));
    DT_TRY(take_recipe_field(reading, &theirs, dt_field_find("batch.tokens"), where));
    if (!dt_reading_given(reading, "model.end_ids"))
        reading->recipe->model.end_ids = theirs.model.end_ids;
out:
    return st;
}

/* --- */

static dt_status find(const char **path, dt_reading *reading)
{
    const char *from = reading->recipe->model.from;

    *path = from;
    if (strncmp(from, DT_WEIGHTS_RUN, strlen(DT_WEIGHTS_RUN)) != 0)
        return DT_OK;
    if (reading->find_run == NULL)
        return DT_FAIL(reading->err, DT_ERR_RECIPE, "'%s' names a run, but no history is available",
                       from);
    return reading->find_run(path, from, reading->arena, reading->err);
}

static dt_status look(dt_weights_files *files, json_t **description, const char **path,
                      dt_reading *reading)
{
    dt_status st = DT_OK;

    if (reading->resolved != NULL)
        DT_THROW(reading->err, DT_ERR_RECIPE,
                 "'model.from' is only for a new run: an existing run continues from its own "
                 "checkpoint");
    DT_TRY(find(path, reading));
    DT_TRY(dt_weights_find(files, *path, reading->arena, reading->err));
    DT_TRY(dt_weights_describe(description, files, reading->err));
out:
    return st;
}

static dt_status derive(dt_reading *reading)
{
    json_t *description = NULL;
    dt_weights_files files;
    const char *path;
    dt_status st = DT_OK;

    DT_TRY(at_from(reading, look(&files, &description, &path, reading)));
    reading->recipe->model.from = path;
    if (files.kind == DT_WEIGHTS_CHECKPOINT) { /* a checkpoint includes its tokenizer */
        DT_TRY(take_checkpoint(reading, description, files.folder));
    } else {
        DT_TRY(take_config(reading, description, files.description));
        if (files.kind ==
            DT_WEIGHTS_HUGGINGFACE) { /* files next to a .bin file do not belong to it */
            take_tokenizer(reading, files.folder);
            DT_TRY(take_end_ids(reading, description, files.folder));
        }
    }
out:
    json_decref(description);
    return st;
}

dt_status dt_reading_derive_weights(dt_reading *reading)
{
    dt_status st;

    if (reading->recipe->model.from[0] == '\0' || reading->troubled[dt_reading_row("model.from")] ||
        dt_reading_resolved(reading, "model.from"))
        return DT_OK;
    st = derive(reading);
    if (st == DT_OK)
        return DT_OK;
    dt_reading_trouble(reading, "model");
    return dt_reading_report(reading, st, "weights");
}

/* --- the adapter of lora.from */

/* A model.from that the recipe leaves out is the base that the folder names, if it is on this machine. */
static void take_base(dt_reading *reading, const dt_peft *peft)
{
    if (dt_reading_given(reading, "model.from") || peft->base[0] != '/' ||
        !dt_file_exists(peft->base))
        return;
    reading->recipe->model.from = peft->base;
    dt_reading_derived(reading, "model.from", peft->base, "lora.from");
}

static dt_status take_targets(dt_reading *reading, const dt_peft *peft)
{
    dt_string_list targets;
    dt_strbuf text;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    DT_TRY(dt_peft_targets(&targets, peft, reading->recipe, reading->arena, reading->err));
    for (int64_t i = 0; i < targets.count; i++)
        dt_strbuf_add_fmt(&text, "%s%s", i > 0 ? ", " : "[", targets.items[i]);
    dt_strbuf_add_char(&text, ']');
    if (dt_reading_given(reading, "lora.targets"))
        DT_THROW(reading->err, DT_ERR_RECIPE,
                 "'lora.targets' and 'lora.from' cannot be combined: '%s' has %s: leave it out",
                 peft->path, text.data);
    reading->recipe->lora.targets = targets;
    dt_reading_derived(reading, "lora.targets", dt_arena_strdup(reading->arena, text.data),
                       "lora.from");
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status take_numbers(dt_reading *reading, const dt_peft *peft)
{
    dt_arena *arena = reading->arena;
    const dt_huggingface_value values[] = {
        {"lora.rank", dt_arena_printf(arena, "%lld", (long long)peft->rank), "r", false, 0},
        {"lora.alpha", dt_arena_printf(arena, "%.17g", peft->alpha), "lora_alpha", false, 0},
        {"lora.rslora", peft->rslora ? "true" : "false", "use_rslora", false, 0},
    };
    dt_status st = DT_OK;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        DT_TRY(take_from(reading, &values[i], peft->path, "lora.from"));
    if (!dt_reading_given(reading, "lora.dropout")) {
        reading->recipe->lora.dropout = peft->dropout;
        dt_reading_derived(reading, "lora.dropout", dt_arena_printf(arena, "%g", peft->dropout),
                           "lora.from");
    }
out:
    return st;
}

static dt_status derive_adapter(dt_reading *reading, bool after_weights)
{
    dt_peft peft;
    dt_status st = DT_OK;

    if (reading->resolved != NULL)
        DT_THROW(reading->err, DT_ERR_RECIPE,
                 "'lora.from' is only for a new run: an existing run continues from its own "
                 "checkpoint");
    DT_TRY(dt_peft_read(&peft, reading->recipe->lora.from, reading->arena, reading->err));
    if (!after_weights) {
        take_base(reading, &peft);
        goto out;
    }
    DT_TRY(take_numbers(reading, &peft));
    DT_TRY(take_targets(reading, &peft));
out:
    return st;
}

dt_status dt_reading_derive_adapter(dt_reading *reading, bool after_weights)
{
    dt_status st;

    if (reading->recipe->lora.from[0] == '\0' || reading->troubled[dt_reading_row("lora.from")] ||
        dt_reading_resolved(reading, "lora.from"))
        return DT_OK;
    st = derive_adapter(reading, after_weights);
    if (st == DT_OK)
        return DT_OK;
    if (st == DT_ERR_RECIPE)
        dt_text_mark_prefix(reading->err, dt_reading_mark(reading, "lora.from"));
    dt_reading_trouble(reading, "lora");
    if (!dt_reading_given(reading, "model.from")) /* the folder would have named it */
        dt_reading_trouble(reading, "model");
    return dt_reading_report(reading, st, "weights");
}
