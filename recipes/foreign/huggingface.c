/* huggingface: reads a model from config.json, with the tables of families. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface_int.h"

typedef struct reading {
    dt_huggingface_model *out;
    const json_t *config;
    const char *where;
    dt_arena *arena;
} reading;

/* Returns whether the row ends a table. */
bool dt_huggingface_ends(const dt_published_key *key)
{
    return key->key == NULL && key->path == NULL;
}

static bool is_among(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_called(const dt_published_key *key, const char *name)
{
    if (key->key != NULL && strcmp(key->key, name) == 0)
        return true;
    for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
        if (strcmp(key->also[i], name) == 0)
            return true;
    return false;
}

static const dt_published_key *find_key(const dt_published_key *keys, const char *name)
{
    for (; !dt_huggingface_ends(keys); keys++)
        if (is_called(keys, name))
            return keys;
    return NULL;
}

/* Returns "map" for "map.key", and "key" for "key". room: DT_HUGGINGFACE_NAME_SIZE. */
const char *dt_huggingface_map_of(char *room, const char *key)
{
    snprintf(room, DT_HUGGINGFACE_NAME_SIZE, "%.*s", (int)strcspn(key, "."), key);
    return room;
}

const json_t *dt_huggingface_json_at(const json_t *object, const char *key)
{
    const char *dot = strchr(key, '.');
    char map[DT_HUGGINGFACE_NAME_SIZE];

    object = json_object_get(object, dt_huggingface_map_of(map, key));
    return dot != NULL ? json_object_get(object, dot + 1) : object;
}

/* Returns the file's value of a key, under any of its names; NULL if missing or null. */
static const json_t *value_of(const json_t *config, const dt_published_key *key)
{
    const json_t *value = key->key != NULL ? dt_huggingface_json_at(config, key->key) : NULL;

    for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
        if (value == NULL || json_is_null(value))
            value = dt_huggingface_json_at(config, key->also[i]);
    return json_is_null(value) ? NULL : value;
}

/* Returns the key that `when` is about: that of the scaling of rotary positions. */
const dt_published_key *dt_huggingface_kind_key(const dt_published_key *keys)
{
    while (keys->key == NULL ||
           strncmp(keys->key, DT_HUGGINGFACE_ROPE ".", strlen(DT_HUGGINGFACE_ROPE ".")) != 0)
        keys++;
    return keys;
}

/* Returns whether the word is in a list of words separated by spaces. */
bool dt_huggingface_has_word(const char *words, const char *word)
{
    size_t length = strlen(word), each;

    for (; *words != '\0'; words += each + strspn(words + each, " ")) {
        each = strcspn(words, " ");
        if (each == length && strncmp(words, word, length) == 0)
            return true;
    }
    return false;
}

/* Formats a value for a message, cut to the room. */
static const char *shown(char *room, size_t size, const json_t *value)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, value);
    snprintf(room, size, "%s", text.data);
    dt_strbuf_release(&text);
    return room;
}

static dt_status find_family(const dt_published **family, dt_architecture_kind *kind,
                             const json_t *config, const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    const char *type;
    dt_strbuf known;

    dt_strbuf_init(&known);
    if (!json_is_object(config))
        DT_THROW(err, DT_ERR_RECIPE, "'%s' is not a JSON object", where);
    type = json_string_value(json_object_get(config, "model_type"));
    if (type == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' has no 'model_type': the kind of model is unknown",
                 where);
    for (size_t i = 0; dt_architecture_published(family, kind, i); i++) {
        if (strcmp((*family)->model_type, type) == 0)
            goto out;
        dt_strbuf_add_fmt(&known, "%s'%s'", i > 0 ? ", " : "", (*family)->model_type);
    }
    DT_THROW(err, DT_ERR_RECIPE, "'%s': a model of type '%.60s' is not supported (supported: %s)",
             where, type, known.data);
out:
    dt_strbuf_release(&known);
    return st;
}

static dt_status refuse_value(const reading *in, const dt_published_key *key, const json_t *value,
                              const char *expected, dt_error *err)
{
    char room[100];

    return DT_FAIL(err, DT_ERR_RECIPE, "'%s': '%s' is %s: dtrun computes such a model only with %s",
                   in->where, key->key, shown(room, sizeof(room), value), expected);
}

static bool same_json(const json_t *value, const json_t *must)
{
    return json_is_number(value) && json_is_number(must)
               ? json_number_value(value) == json_number_value(must)
               : json_equal(value, must);
}

/* Checks that the file's value is the one that the model computes. */
static dt_status check_must(const reading *in, const dt_published_key *key, const json_t *value,
                            dt_error *err)
{
    json_t *must = json_loads(key->must, JSON_DECODE_ANY, NULL);
    bool same = !key->each && (same_json(value, must) || (key->or_null && json_is_null(value)));

    if (key->each) {
        same = json_is_array(value) || json_is_null(value);
        for (size_t i = 0; i < json_array_size(value); i++)
            same = same && same_json(json_array_get(value, i), must);
    }
    json_decref(must);
    return same ? DT_OK : refuse_value(in, key, value, key->must, err);
}

static const char *shortest(double value, dt_arena *arena)
{
    char text[40];
    int digits = 15;

    do
        snprintf(text, sizeof(text), "%.*g", digits++, value);
    while (digits <= 17 && strtod(text, NULL) != value);
    return dt_arena_strdup(arena, text);
}

/* Returns the recipe's word for that of the file: a string, or a number as text; NULL: unknown. */
static const char *word_of(const json_t *value, const dt_published_key *key)
{
    const char *word = json_string_value(value);
    char number[40];

    if (json_is_integer(value)) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        word = number;
    }
    for (const dt_published_word *pair = key->words; pair->theirs != NULL; pair++)
        if (word != NULL && strcmp(pair->theirs, word) == 0)
            return pair->ours;
    return NULL;
}

/* Returns the shortest pattern that gives the letters of `layers` blocks when it is repeated; NULL: not a list of known
 * words. */
static const char *pattern_of(const json_t *list, const dt_published_key *key, size_t layers,
                              dt_arena *arena)
{
    char *letters = dt_arena_alloc_array(arena, layers + 1, 1);
    size_t period = 1;

    if (!json_is_array(list) || json_array_size(list) < layers || layers == 0)
        return NULL;
    for (size_t l = 0; l < layers; l++) {
        const char *word = word_of(json_array_get(list, l), key);

        if (word == NULL)
            return NULL;
        letters[l] = word[0];
    }
    while (period < layers && memcmp(letters, letters + period, layers - period) != 0)
        period++;
    letters[period] = '\0';
    return letters;
}

/* Returns a list of numbers as texts, separated by blanks; NULL: not such a list. */
static const char *numbers_of(const json_t *list, dt_arena *arena)
{
    const char *out = "";

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_number(item))
            return NULL;
        out = dt_arena_printf(arena, "%s%s%s", out, i > 0 ? " " : "",
                              shortest(json_number_value(item), arena));
    }
    return out;
}

bool dt_huggingface_is_list(const dt_published_key *key)
{
    return dt_field_find(key->path)->type == DT_FIELD_STRINGS;
}

/* Returns the value as text of a recipe; NULL: not possible. */
const char *dt_huggingface_text_of(const json_t *value, const dt_published_key *key,
                                   dt_arena *arena)
{
    if (key->words != NULL)
        return json_is_string(value) ? word_of(value, key) : NULL;
    if (dt_huggingface_is_list(key))
        return json_is_array(value) ? numbers_of(value, arena) : NULL;
    if (json_is_integer(value))
        return dt_arena_printf(arena, "%lld", (long long)json_integer_value(value));
    if (json_is_real(value))
        return shortest(json_real_value(value), arena);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return NULL;
}

/* Checks the type and range of the recipe's field. */
static dt_status check_text(const reading *in, const dt_published_key *key, const char *text,
                            dt_error *err)
{
    const dt_field *field = dt_field_find(key->path);
    dt_recipe scratch;
    dt_status st;

    DT_ASSERT(field != NULL);
    dt_recipe_init(&scratch);
    st = dt_huggingface_set(&scratch, field, text, in->arena, err);
    if (st == DT_ERR_RECIPE)
        dt_error_prefix(err, "'%s': '%s'", in->where, key->key);
    return st;
}

/* Returns whether the key applies; keys of an object of another kind do not. */
static bool applies(const reading *in, const dt_published_key *key)
{
    const dt_published_key *kind;

    if (key->when == NULL)
        return true;
    kind = dt_huggingface_kind_key(in->out->family->keys);
    for (size_t i = 0; i < in->out->count; i++)
        if (strcmp(in->out->values[i].path, kind->path) == 0)
            return dt_huggingface_has_word(key->when, in->out->values[i].text);
    return false;
}

static void put_value(reading *in, const dt_huggingface_value *value)
{
    DT_ASSERT(in->out->count < DT_HUGGINGFACE_VALUES);
    in->out->values[in->out->count++] = *value;
}

static size_t layers_of(const json_t *config)
{
    json_int_t layers = json_integer_value(json_object_get(config, "num_hidden_layers"));

    return layers > 0 ? (size_t)layers : 0;
}

static dt_status take_field(reading *in, const dt_published_key *key, dt_error *err)
{
    const json_t *value = value_of(in->config, key);
    const char *text = key->absent;
    char room[100];
    dt_status st = DT_OK;

    if (value == NULL && key->null != NULL && json_object_get(in->config, key->key) != NULL)
        text = key->null;
    if (value != NULL) {
        text = key->letters ? pattern_of(value, key, layers_of(in->config), in->arena)
                            : dt_huggingface_text_of(value, key, in->arena);
        if (text == NULL)
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s': '%s' is %s, which dtrun does not support",
                           in->where, key->key, shown(room, sizeof(room), value));
    }
    if (text == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' has no '%s'", in->where, key->key);
    DT_TRY(check_text(in, key, text, err));
    put_value(in, &(dt_huggingface_value){key->path, text, key->key, key->at_most,
                                          key->letters ? (int64_t)layers_of(in->config) : 0});
out:
    return st;
}

static dt_status check_key(const reading *in, const char *name, const json_t *value, dt_error *err)
{
    const dt_published_key *key = find_key(in->out->family->keys, name);
    dt_status st = DT_OK;

    if (key == NULL)
        key = find_key(dt_published_common, name);
    if (key == NULL && !is_among(name, dt_published_ignored))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has '%.80s', which dtrun does not know: it may change what the model "
                 "computes",
                 in->where, name);
    if (key != NULL && key->must != NULL)
        DT_TRY(check_must(in, key, value, err));
out:
    return st;
}

/* Returns whether `name` is an object whose keys are in the table. */
static bool is_map(const dt_published *family, const char *name)
{
    size_t length = strlen(name);

    for (const dt_published_key *key = family->keys; !dt_huggingface_ends(key); key++) {
        if (key->key != NULL && strncmp(key->key, name, length) == 0 && key->key[length] == '.')
            return true;
        for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
            if (strncmp(key->also[i], name, length) == 0 && key->also[i][length] == '.')
                return true;
    }
    return false;
}

static dt_status check_map(const reading *in, const char *name, json_t *map, dt_error *err)
{
    dt_status st = DT_OK;
    const char *inner, *path;
    json_t *value;

    if (!json_is_object(map) && !json_is_null(map))
        DT_THROW(err, DT_ERR_RECIPE, "'%s': '%s' is not an object", in->where, name);
    json_object_foreach(map, inner, value) {
        path = dt_arena_printf(in->arena, "%s.%s", name, inner);
        DT_TRY(check_key(in, path, value, err));
    }
out:
    return st;
}

static dt_status check_others(const reading *in, dt_error *err)
{
    dt_status st = DT_OK;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)in->config, name, value)
        DT_TRY(is_map(in->out->family, name) ? check_map(in, name, value, err)
                                             : check_key(in, name, value, err));
out:
    return st;
}

/* Whether a family's table has a field of the recipe. */
bool dt_huggingface_names(const dt_published *family, const char *path)
{
    for (const dt_published_key *key = family->keys; !dt_huggingface_ends(key); key++)
        if (key->path != NULL && strcmp(key->path, path) == 0)
            return true;
    return false;
}

/* The switches that the family's table does not name have their default. */
static void take_switches(reading *in, const dt_architecture *kind)
{
    if (kind->switches == NULL)
        return;
    put_value(in, &(dt_huggingface_value){"model.family", in->out->family->model_type, "model_type",
                                          false, 0});
    for (const char *const *path = kind->switches; *path != NULL; path++) {
        const char *text = dt_field_find(*path)->fallback;

        if (!dt_huggingface_names(in->out->family, *path))
            put_value(in, &(dt_huggingface_value){*path, strcmp(text, "[]") == 0 ? "" : text, NULL,
                                                  false, 0});
    }
}

/* What the classes derive from other fields: the original length is the longest one if it is left out, and always with
 * dynamic scaling; the factor is the ratio of the two. */
static void settle_scaling(json_t *config)
{
    json_t *rope = json_object_get(config, DT_HUGGINGFACE_ROPE);
    json_t *longest = json_object_get(config, "max_position_embeddings"), *original;
    const char *type = json_string_value(json_object_get(rope, "rope_type"));

    if (type == NULL)
        type = json_string_value(json_object_get(rope, "type"));
    if (type == NULL || !json_is_number(longest))
        return;
    if (strcmp(type, "dynamic") == 0)
        json_object_set(rope, "original_max_position_embeddings", longest);
    original = json_object_get(config, "original_max_position_embeddings");
    if (original == NULL && dt_huggingface_has_word("llama3 yarn longrope", type) &&
        json_object_get(rope, "original_max_position_embeddings") == NULL)
        json_object_set(rope, "original_max_position_embeddings", longest);
    if (original == NULL)
        original = json_object_get(rope, "original_max_position_embeddings");
    if (dt_huggingface_has_word("yarn longrope su", type) &&
        !json_is_number(json_object_get(rope, "factor")) && json_number_value(original) > 0) {
        double ratio = json_number_value(longest) / json_number_value(original);

        json_object_set_new(rope, "factor", json_real(ratio > 1 ? ratio : 1));
    }
}

/* Merges the two spellings of rotary positions as transformers does (modeling_rope_utils.py,
 * convert_rope_params_to_dict): a non-empty rope_scaling replaces all of rope_parameters, and a rope_theta inside the
 * object overrides the one next to it, as the share of a head that is rotated does. Changes `config`. */
static void unify_rope(json_t *config)
{
    static const char *const moved[] = {"rope_theta", "partial_rotary_factor"};
    json_t *rope = json_object_get(config, DT_HUGGINGFACE_ROPE);

    if (!json_is_object(rope) || json_object_size(rope) == 0) {
        if (rope != NULL && !json_is_null(rope) && !json_is_object(rope))
            return; /* check_map refuses it */
        rope = json_object_get(config, DT_HUGGINGFACE_ROPE_NEW);
        if (rope == NULL)
            return;
        json_object_set(config, DT_HUGGINGFACE_ROPE, rope);
    }
    (void)json_object_del(config, DT_HUGGINGFACE_ROPE_NEW);
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
        json_t *inside = json_object_get(rope, moved[i]);

        if (inside == NULL)
            continue;
        json_object_set(config, moved[i], inside);
        (void)json_object_del(rope, moved[i]);
    }
    settle_scaling(config);
}

dt_status dt_huggingface_read(dt_huggingface_model *out, const json_t *config, const char *where,
                              dt_arena *arena, dt_error *err)
{
    json_t *unified = json_deep_copy(config);
    reading in = {.out = out, .config = unified, .where = where, .arena = arena};
    dt_architecture_kind kind;
    dt_status st = DT_OK;

    *out = (dt_huggingface_model){0};
    DT_TRY(find_family(&out->family, &kind, config, where, err));
    if (out->family->settle != NULL)
        out->family->settle(unified);
    if (is_map(out->family, DT_HUGGINGFACE_ROPE))
        unify_rope(unified);
    out->kind = dt_architecture_find(kind)->name;
    for (const dt_published_key *key = out->family->keys; !dt_huggingface_ends(key); key++) {
        if (key->path != NULL && !key->least && applies(&in, key))
            DT_TRY(take_field(&in, key, err));
        if (key->needed && json_object_get(config, key->key) == NULL)
            DT_THROW(
                err, DT_ERR_RECIPE,
                "'%s' has no '%s', which is then not %s: dtrun computes such a model only with %s",
                where, key->key, key->must, key->must);
    }
    DT_TRY(check_others(&in, err));
    take_switches(&in, dt_architecture_find(kind));
out:
    json_decref(unified);
    return st;
}

dt_status dt_huggingface_set(dt_recipe *recipe, const dt_field *field, const char *text,
                             dt_arena *arena, dt_error *err)
{
    const char **items;
    int64_t count = 0;

    if (field->type != DT_FIELD_STRINGS)
        return dt_field_set_text(recipe, field, text, err);
    items = dt_arena_alloc_array(arena, strlen(text) / 2 + 1, sizeof(items[0]));
    for (size_t length; *text != '\0'; text += length + strspn(text + length, " ")) {
        length = strcspn(text, " ");
        items[count++] = dt_arena_printf(arena, "%.*s", (int)length, text);
    }
    return dt_field_set_list(recipe, field, items, count, err);
}
