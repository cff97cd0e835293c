/* huggingface_write: finds the family of a recipe's model, and writes its config.json. */
#include <stdlib.h>
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

/* Returns whether the recipe's field has this value. */
static bool is_text(const dt_recipe *recipe, const char *path, const char *text)
{
    const dt_field *field = dt_field_find(path);
    json_t *value = dt_field_to_json(recipe, field), *other = json_array();
    dt_recipe scratch;
    bool same;

    if (field->type != DT_FIELD_STRINGS) { /* no list has a value but [] */
        dt_recipe_init(&scratch);
        DT_ASSERT(dt_field_set_text(&scratch, field, text, NULL) == DT_OK);
        json_decref(other);
        other = dt_field_to_json(&scratch, field);
    }
    same = json_equal(value, other);
    json_decref(value);
    json_decref(other);
    return same;
}

/* Returns whether the recipe has the family's value of a field that config.json leaves out. */
static bool is_so(const dt_recipe *recipe, const dt_published_key *key)
{
    return is_text(recipe, key->path, key->absent);
}

/* Returns the first field that the family does not compute as the recipe has it; NULL: none. */
static const char *family_lacks(const dt_published *family, const dt_recipe *recipe)
{
    const char *const *path = dt_architecture_find(recipe->model.kind)->switches;

    for (const dt_published_key *key = family->keys; !dt_huggingface_ends(key); key++)
        if (key->path != NULL && (key->key == NULL ? !is_so(recipe, key)
                                  : key->positive  ? is_text(recipe, key->path, "0")
                                                   : false))
            return key->path;
    for (; path != NULL && *path != NULL; path++)
        if (!dt_huggingface_names(family, *path) &&
            !is_text(recipe, *path, dt_field_find(*path)->fallback))
            return *path;
    return NULL;
}

/* Finds the family that the recipe names. */
static dt_status named_family(const dt_published **out, const dt_recipe *recipe, dt_error *err)
{
    const dt_published *family = dt_architecture_find(recipe->model.kind)->published;
    const char *lacks;

    while (family != NULL && family->model_type != NULL &&
           strcmp(family->model_type, recipe->model.family) != 0)
        family++;
    if (family == NULL || family->model_type == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'model.family' is '%.40s', which kind '%s' does not have",
                       recipe->model.family, dt_architecture_find(recipe->model.kind)->name);
    *out = family;
    lacks = family_lacks(family, recipe);
    return lacks == NULL
               ? DT_OK
               : DT_FAIL(err, DT_ERR_RECIPE,
                         "a model with this '%s' cannot be represented as '%s' in Hugging Face's "
                         "transformers: leave 'model.family' out, or change '%s'",
                         lacks, family->model_type, lacks);
}

dt_status dt_huggingface_family(const dt_published **out, const dt_recipe *recipe, dt_error *err)
{
    const dt_published *family = dt_architecture_find(recipe->model.kind)->published;
    const char *differs = NULL;

    if (recipe->model.family[0] != '\0')
        return named_family(out, recipe, err);
    for (; family != NULL && family->model_type != NULL; family++) {
        const char *lacks = family_lacks(family, recipe);

        *out = family;
        if (lacks == NULL)
            return DT_OK;
        differs = lacks;
    }
    if (differs == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "a model of kind '%s' cannot be represented in Hugging Face's transformers",
                       dt_architecture_find(recipe->model.kind)->name);
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "a model with this '%s' cannot be represented in Hugging Face's transformers",
                   differs);
}

/* A word of the file for the recipe's: a string, or a number that is written as one. NULL: none. */
static json_t *theirs_of(const dt_published_key *key, const char *ours, size_t length)
{
    for (const dt_published_word *pair = key->words; pair->theirs != NULL; pair++)
        if (strlen(pair->ours) == length && strncmp(pair->ours, ours, length) == 0) {
            json_t *number = json_loads(pair->theirs, JSON_DECODE_ANY, NULL);

            return number != NULL ? number : json_string(pair->theirs);
        }
    return NULL;
}

/* A list with the word of each block. */
static json_t *letters_out(const dt_published_key *key, const char *pattern, int64_t layers)
{
    json_t *list = json_array();

    for (int64_t l = 0; l < layers && pattern[0] != '\0'; l++)
        json_array_append_new(list, theirs_of(key, pattern + (size_t)l % strlen(pattern), 1));
    return list;
}

static json_t *numbers_out(const json_t *texts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(texts); i++)
        json_array_append_new(
            list, dt_json_number(strtod(json_string_value(json_array_get(texts, i)), NULL)));
    return list;
}

static dt_status value_out(json_t **out, const dt_recipe *recipe, const dt_published_key *key,
                           int64_t vocab, dt_error *err)
{
    const char *word;
    json_t *ours;

    if (strcmp(key->path, "model.vocab") == 0) {
        *out = json_integer(vocab);
        return DT_OK;
    }
    ours = field_json(recipe, key->path);
    word = json_string_value(ours);
    if (key->null != NULL && is_text(recipe, key->path, key->null))
        *out = json_null();
    else if (key->letters)
        *out = letters_out(key, word, recipe->model.layers);
    else if (key->words != NULL)
        *out = theirs_of(key, word, strlen(word));
    else
        *out = dt_huggingface_is_list(key) ? numbers_out(ours) : json_incref(ours);
    json_decref(ours);
    if (*out != NULL)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "Hugging Face's transformers have no '%s' like this recipe's", key->path);
}

/* Keeps the spelling of the original config.json if both mean the same, such as gelu_pytorch_tanh. */
static bool means_the_same(const json_t *before, const json_t *now, const dt_published_key *key,
                           dt_arena *arena)
{
    const char *a = before != NULL ? dt_huggingface_text_of(before, key, arena) : NULL;
    const char *b = dt_huggingface_text_of(now, key, arena);

    if (key->letters)
        return false;

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

    if (key->letters) /* without a window it does not matter which blocks have it */
        return is_so(recipe, key) && (strcmp(key->absent, "w") != 0 || recipe->model.window == 0);
    if (key->when == NULL && strchr(key->key, '.') == NULL)
        return key->absent != NULL && strcmp(key->absent, "0") == 0 && is_so(recipe, key);
    kind = dt_huggingface_kind_key(family->keys);
    if (key == kind)
        return is_so(recipe, key);
    if (strchr(key->key, '.') != NULL && key->absent != NULL && is_so(recipe, key))
        return true;
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
        else if (key->key != NULL && key->must != NULL && !key->each && !key->or_null)
            json_object_set_new(out, key->key, json_loads(key->must, JSON_DECODE_ANY, NULL));
    }
out:
    return st;
}

/* The reverse of settle_scaling for dynamic scaling, whose original length is the longest one. */
static void split_scaling(json_t *config)
{
    json_t *rope = json_object_get(config, DT_HUGGINGFACE_ROPE);
    const char *type = json_string_value(json_object_get(rope, "rope_type"));

    if (type == NULL || strcmp(type, "dynamic") != 0)
        return;
    json_object_set(config, "max_position_embeddings",
                    json_object_get(rope, "original_max_position_embeddings"));
    (void)json_object_del(rope, "original_max_position_embeddings");
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
    split_scaling(config);
    if (family->finish != NULL)
        family->finish(config);
    put_tokens(config, vocab);
    *out = json_incref(config);
out:
    json_decref(config);
    dt_arena_release(&arena);
    return st;
}
