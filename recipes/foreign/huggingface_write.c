/* huggingface_write: writes a recipe's model as config.json. */
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface_int.h"

static json_t *field_json(const dt_recipe *recipe, const char *path)
{
    return dt_field_to_json(recipe, dt_field_find(path));
}

/* Adds the recipe's value as a text of the table. */
static void add_text(dt_strbuf *out, const json_t *value)
{
    if (json_is_string(value))
        dt_strbuf_add_str(out, json_string_value(value));
    else
        dt_json_write(out, value);
}

/* Returns whether the recipe has the family's fixed value of a field. */
static bool is_so(const dt_recipe *recipe, const dt_published_key *key)
{
    json_t *value = field_json(recipe, key->path);
    dt_strbuf text;
    bool same;

    dt_strbuf_init(&text);
    add_text(&text, value);
    same = strcmp(text.data, key->absent) == 0;
    dt_strbuf_release(&text);
    json_decref(value);
    return same;
}

dt_status dt_huggingface_family(const dt_published **out, const dt_recipe *recipe, dt_error *err)
{
    const dt_published *family = dt_architecture_find(recipe->model.kind)->published;
    const char *differs = NULL;

    for (; family != NULL && family->model_type != NULL; family++) {
        const dt_published_key *key = family->keys;

        while (!dt_huggingface_ends(key) && (key->key != NULL || is_so(recipe, key)))
            key++;
        *out = family;
        if (dt_huggingface_ends(key))
            return DT_OK;
        differs = key->path;
    }
    if (differs == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "a model of kind '%s' cannot be represented in Hugging Face's transformers",
                       dt_architecture_find(recipe->model.kind)->name);
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "a model with this '%s' cannot be represented in Hugging Face's transformers",
                   differs);
}

static dt_status value_out(json_t **out, const dt_recipe *recipe, const dt_published_key *key,
                           int64_t vocab, dt_error *err)
{
    const char *word;

    if (strcmp(key->path, "model.vocab") == 0) {
        *out = json_integer(vocab);
        return DT_OK;
    }
    *out = field_json(recipe, key->path);
    if (key->words == NULL)
        return DT_OK;
    word = json_string_value(*out);
    for (const dt_published_word *pair = key->words; pair->theirs != NULL; pair++)
        if (word != NULL && strcmp(pair->ours, word) == 0) {
            json_decref(*out);
            *out = json_string(pair->theirs);
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_RECIPE, "Hugging Face's transformers have no '%s' %s", key->path,
                   word != NULL ? word : "");
}

/* Keeps the spelling of the original config.json if both mean the same, such as gelu_pytorch_tanh. */
static bool means_the_same(const json_t *before, const json_t *now, const dt_published_key *key,
                           dt_arena *arena)
{
    const char *a = before != NULL ? dt_huggingface_text_of(before, key, arena) : NULL;
    const char *b = dt_huggingface_text_of(now, key, arena);

    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static void put(json_t *out, const char *name, json_t *value)
{
    const char *dot = strchr(name, '.');
    char room[DT_HUGGINGFACE_NAME_SIZE];
    json_t *map;

    if (dot == NULL) {
        json_object_set(out, name, value);
        return;
    }
    map = json_object_get(out, dt_huggingface_map_of(room, name));
    if (!json_is_object(map)) {
        map = json_object();
        json_object_set_new(out, room, map);
    }
    json_object_set(map, dot + 1, value);
}

/* Removes objects that contain keys; they are written again, since other spellings would repeat values or
 * override them. */
static void drop_maps(json_t *out, const dt_published *family)
{
    char room[DT_HUGGINGFACE_NAME_SIZE];

    for (const dt_published_key *key = family->keys; !dt_huggingface_ends(key); key++) {
        if (key->key != NULL && strchr(key->key, '.') != NULL)
            (void)json_object_del(out, dt_huggingface_map_of(room, key->key));
        for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
            (void)json_object_del(out, dt_huggingface_map_of(room, key->also[i]));
    }
    (void)json_object_del(out, DT_HUGGINGFACE_ROPE_NEW);
}

/* Returns whether a key can be left out with the same meaning: 0 for a derived value, or an object of the
 * default kind. */
static bool is_left_out(const dt_published *family, const dt_published_key *key,
                        const dt_recipe *recipe)
{
    const dt_published_key *kind;
    json_t *value;
    dt_strbuf text;
    bool out;

    if (strchr(key->key, '.') == NULL)
        return key->absent != NULL && strcmp(key->absent, "0") == 0 && is_so(recipe, key);
    kind = dt_huggingface_kind_key(family->keys, key);
    if (key == kind)
        return is_so(recipe, key);
    dt_strbuf_init(&text);
    value = field_json(recipe, kind->path);
    add_text(&text, value);
    out = key->when != NULL && !dt_huggingface_has_word(key->when, text.data);
    dt_strbuf_release(&text);
    json_decref(value);
    return out;
}

static dt_status put_field(json_t *out, const dt_published *family, const dt_published_key *key,
                           const dt_recipe *recipe, int64_t vocab, dt_arena *arena, dt_error *err)
{
    const json_t *before = dt_huggingface_json_at(out, key->key);
    json_t *value = NULL;
    dt_status st = DT_OK;

    if (is_left_out(family, key, recipe))
        return DT_OK;
    DT_TRY(value_out(&value, recipe, key, vocab, err));
    if (!(key->least && json_number_value(before) > json_number_value(value)) &&
        !means_the_same(before, value, key, arena))
        put(out, key->key, value);
out:
    json_decref(value);
    return st;
}

static dt_status put_fields(json_t *out, const dt_published *family, const dt_recipe *recipe,
                            int64_t vocab, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    drop_maps(out, family);
    for (const dt_published_key *key = family->keys; !dt_huggingface_ends(key); key++) {
        if (key->key != NULL && key->path != NULL)
            DT_TRY(put_field(out, family, key, recipe, vocab, arena, err));
        else if (key->key != NULL && key->must != NULL && !key->each)
            json_object_set_new(out, key->key, json_loads(key->must, JSON_DECODE_ANY, NULL));
    }
out:
    return st;
}

/* The tokenizer defines tokens that begin and end a text; the defaults of the class may not be in this
 * vocabulary. */
static void put_tokens(json_t *out, int64_t vocab)
{
    static const char *const names[] = {"bos_token_id", "eos_token_id"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *id = json_object_get(out, names[i]);

        if (id == NULL || (json_is_integer(id) && json_integer_value(id) >= vocab))
            json_object_set_new(out, names[i], json_null());
    }
}

dt_status dt_huggingface_write(json_t **out, const dt_recipe *recipe, int64_t vocab,
                               const json_t *like, dt_error *err)
{
    const dt_published *family;
    json_t *config = NULL;
    dt_arena arena;
    dt_status st = DT_OK;

    *out = NULL;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_huggingface_family(&family, recipe, err));
    config = like != NULL ? json_deep_copy(like) : json_object();
    json_object_set_new(config, "architectures", json_pack("[s]", family->architecture));
    json_object_set_new(config, "model_type", json_string(family->model_type));
    DT_TRY(put_fields(config, family, recipe, vocab, &arena, err));
    put_tokens(config, vocab);
    *out = json_incref(config);
out:
    json_decref(config);
    dt_arena_release(&arena);
    return st;
}
