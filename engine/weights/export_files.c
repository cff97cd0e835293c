/* export_files: writes the files of an export that are not tensors. The tokens at which dtrun ends a text become the
 * end tokens of all files, so that generate() of transformers ends where dtrun ends; other fields are carried along
 * from the files that the run started from.
 */
#include "base/file.h"
#include "engine/data/data.h"
#include "engine/weights/weights.h"
#include "engine/weights/weights_int.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"

#define ORIGIN_MOST ((size_t)256 << 20) /* a tokenizer.json of a large vocabulary has 30 MB */

typedef struct ends {
    json_t *ids;   /* array: model.end_ids, or the token that ends documents; can be empty */
    int64_t begin; /* token that the tokenizer puts before a text; -1: none, or several */
} ends;

static void find_ends(ends *out, const dt_weights_exporter *e)
{
    const dt_string_list *ids = &e->recipe.model.end_ids;
    int32_t end = dt_tokenizer_end_of_text(e->tokenizer);
    dt_bpe_around around = dt_tokenizer_around(e->tokenizer);
    double id;

    *out = (ends){.ids = json_array(), .begin = -1};
    for (int64_t i = 0; i < ids->count; i++)
        if (dt_text_number(&id, ids->items[i]) && (int64_t)id < e->vocab)
            json_array_append_new(out->ids, json_integer((json_int_t)id));
    if (ids->count == 0 && end >= 0)
        json_array_append_new(out->ids, json_integer(end));
    if (around.before_count == 1)
        out->begin = around.before[0];
}

/* Sets eos_token_id as one id or a list, and bos_token_id if the file has none. */
static void put_ids(json_t *file, const ends *ends_of_text)
{
    size_t count = json_array_size(ends_of_text->ids);
    const json_t *begin = json_object_get(file, "bos_token_id");

    if (count > 0)
        json_object_set(file, "eos_token_id",
                        count == 1 ? json_array_get(ends_of_text->ids, 0) : ends_of_text->ids);
    if (ends_of_text->begin >= 0 && (begin == NULL || json_is_null(begin)))
        json_object_set_new(file, "bos_token_id", json_integer(ends_of_text->begin));
}

/* --- the files that the run started from */

/* Reads a JSON file of a folder; *out is NULL if the folder (NULL: none) lacks it. */
static dt_status read_json(json_t **out, dt_weights_exporter *e, const char *folder,
                           const char *name, dt_error *err)
{
    const char *path;

    *out = NULL;
    if (folder == NULL)
        return DT_OK;
    path = dt_arena_printf(&e->arena, "%s/%s", folder, name);
    return dt_file_exists(path) ? dt_json_read_foreign(out, path, ORIGIN_MOST, err) : DT_OK;
}

/* Copies a file from a folder (NULL: none), if it has it: *found. */
static dt_status copy_from(bool *found, dt_weights_exporter *e, const char *folder,
                           const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path, text;

    *found = false;
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (folder == NULL)
        goto out;
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    if (!dt_file_exists(path.data))
        goto out;
    DT_TRY(dt_file_read(&text, path.data, ORIGIN_MOST, err));
    DT_TRY(dt_weights_export_put(e, name, text.data, text.length, err));
    *found = true;
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* --- config.json and generation_config.json */

static dt_status write_configs(dt_weights_exporter *e, const ends *ends_of_text, dt_error *err)
{
    static const char *const types[] = {
        [DT_F32] = "float32", [DT_BF16] = "bfloat16", [DT_F16] = "float16"};
    static const char *const carried[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    json_t *like = NULL, *config = NULL, *generation = NULL;
    dt_status st = DT_OK;

    DT_TRY(read_json(&like, e, e->options->origin, DT_HUGGINGFACE_CONFIG, err));
    DT_TRY(dt_huggingface_write(&config, &e->recipe, e->vocab, like, err));
    put_ids(config, ends_of_text);
    /* newer versions write "dtype"; all versions read "torch_dtype" */
    json_object_del(config, "dtype");
    json_object_set_new(config, "torch_dtype", json_string(types[e->options->dtype]));
    DT_TRY(dt_weights_export_put_json(e, DT_HUGGINGFACE_CONFIG, config, err));
    DT_TRY(read_json(&generation, e, e->options->origin, DT_HUGGINGFACE_GENERATION, err));
    if (generation ==
        NULL) { /* this file, once there, is all that transformers reads for generation */
        generation = json_pack("{s:b}", "_from_model_config", 1);
        for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
            if (json_is_integer(json_object_get(config, carried[i])))
                json_object_set(generation, carried[i], json_object_get(config, carried[i]));
    }
    put_ids(generation, ends_of_text);
    DT_TRY(dt_weights_export_put_json(e, DT_HUGGINGFACE_GENERATION, generation, err));
out:
    json_decref(like);
    json_decref(config);
    json_decref(generation);
    return st;
}

/* --- the tokenizer */

/* Returns the text of a token; NULL: it is not UTF-8, so that no file can name it. */
static json_t *text_of(const dt_weights_exporter *e, int64_t id)
{
    dt_strbuf text;
    json_t *out;

    dt_strbuf_init(&text);
    dt_tokenizer_decode(&text, e->tokenizer, (int32_t)id);
    out = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return out;
}

/* Whether a token of a file, "</s>" or {"content": "</s>"}, is an end. */
static bool names_end(const dt_weights_exporter *e, const json_t *token, const json_t *ids)
{
    bool same = false;

    token = json_is_object(token) ? json_object_get(token, "content") : token;
    for (size_t i = 0; i < json_array_size(ids) && !same; i++) {
        json_t *text = text_of(e, json_integer_value(json_array_get(ids, i)));

        same = text != NULL && json_equal(text, token);
        json_decref(text);
    }
    return same;
}

/* Sets eos_token unless it is an end already: *changed. */
static void put_end(json_t *file, bool *changed, const dt_weights_exporter *e,
                    const ends *ends_of_text)
{
    json_t *text;

    *changed = json_array_size(ends_of_text->ids) > 0 &&
               !names_end(e, json_object_get(file, "eos_token"), ends_of_text->ids);
    if (!*changed)
        return;
    text = text_of(e, json_integer_value(json_array_get(ends_of_text->ids, 0)));
    *changed = text != NULL;
    if (text != NULL)
        json_object_set_new(file, "eos_token", text);
}

/* Writes tokenizer_config.json or special_tokens_map.json of the origin, with the run's end token. */
static dt_status write_special(bool *found, dt_weights_exporter *e, const char *name,
                               const ends *ends_of_text, dt_error *err)
{
    json_t *file = NULL;
    dt_status st = DT_OK;
    bool changed = false;

    *found = false;
    if (dt_tokenizer_bpe(e->tokenizer) != NULL) {
        DT_TRY(read_json(&file, e, e->options->origin, name, err));
        if (json_is_object(file))
            put_end(file, &changed, e, ends_of_text);
    }
    if (changed) {
        DT_TRY(dt_weights_export_put_json(e, name, file, err));
        *found = true;
    } else {
        DT_TRY(copy_from(found, e, e->options->origin, name, err));
    }
out:
    json_decref(file);
    return st;
}

/* Writes a tokenizer_config.json for a tokenizer.json without one: AutoTokenizer would take the class from the model's
 * type, which replaces parts of the tokenizer. */
static dt_status write_tokenizer_config(dt_weights_exporter *e, const ends *ends_of_text,
                                        dt_error *err)
{
    json_t *config = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                               "clean_up_tokenization_spaces", 0);
    bool changed;
    dt_status st;

    if (dt_tokenizer_bpe(e->tokenizer) != NULL) {
        put_end(config, &changed, e, ends_of_text);
        if (ends_of_text->begin >= 0)
            json_object_set_new(config, "bos_token", text_of(e, ends_of_text->begin));
    }
    st = dt_weights_export_put_json(e, "tokenizer_config.json", config, err);
    json_decref(config);
    return st;
}

/* Writes the tokenizer.json of characters or bytes, which came from no file. *made: the data have such a tokenizer. */
static dt_status write_plain_words(bool *made, dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    *made = dt_tokenizer_to_huggingface(&text, e->tokenizer);
    if (*made)
        DT_TRY(dt_weights_export_put(e, "tokenizer.json", text.data, text.length, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status write_words(dt_weights_exporter *e, const ends *ends_of_text, dt_error *err)
{
    static const char *const others[] = {"tokenizer.model",     "vocab.json",
                                         "merges.txt",          "added_tokens.json",
                                         "chat_template.jinja", "chat_template.json"};
    bool found, has_words, has_config;
    dt_status st = DT_OK;

    DT_TRY(copy_from(&has_words, e, e->options->checkpoint, "tokenizer.json", err));
    if (!has_words)
        DT_TRY(copy_from(&has_words, e, e->options->origin, "tokenizer.json", err));
    if (!has_words)
        DT_TRY(write_plain_words(&has_words, e, err));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        DT_TRY(copy_from(&found, e, e->options->origin, others[i], err));
    if (e->options->origin != NULL)
        DT_TRY(dt_weights_copy_templates(e->options->origin, e->folder.data, 0777, 0666, err));
    DT_TRY(write_special(&found, e, "special_tokens_map.json", ends_of_text, err));
    DT_TRY(write_special(&has_config, e, "tokenizer_config.json", ends_of_text, err));
    if (has_words && !has_config)
        DT_TRY(write_tokenizer_config(e, ends_of_text, err));
out:
    return st;
}

static dt_status write_adapter_config(dt_weights_exporter *e, dt_error *err)
{
    json_t *config = dt_weights_adapter_config(e);
    dt_status st;

    if (config == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", DT_PEFT_CONFIG);
    st = dt_weights_export_put_json(e, DT_PEFT_CONFIG, config, err);
    json_decref(config);
    return st;
}

/* Write the configs and the tokenizer's files. */
dt_status dt_weights_export_files(dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;
    ends ends_of_text;

    find_ends(&ends_of_text, e);
    DT_TRY(e->options->peft ? write_adapter_config(e, err) : write_configs(e, &ends_of_text, err));
    DT_TRY(write_words(e, &ends_of_text, err));
out:
    json_decref(ends_of_text.ids);
    return st;
}
