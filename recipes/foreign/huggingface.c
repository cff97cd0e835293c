/* huggingface: reads a model from config.json, and writes a recipe's model as config.json. */
#include "recipes/foreign/huggingface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"

/* --- keys of a family's table; a key "map.key" is in a nested object */

#define DT_HUGGINGFACE_NAME_SIZE 64

/* Names of the object with the fields of rotary positions. */
#define DT_HUGGINGFACE_ROPE     "rope_scaling"    /* as in the families' tables */
#define DT_HUGGINGFACE_ROPE_NEW "rope_parameters" /* since version 5 of transformers */

/* --- reading */

typedef struct reading {
    dt_huggingface_model *out;
    const json_t *config;
    const char *where;
    dt_arena *arena;
} reading;

/* Returns whether the row ends a table. */
static bool huggingface_ends(const dt_published_key *key)
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
    for (; !huggingface_ends(keys); keys++)
        if (is_called(keys, name))
            return keys;
    return NULL;
}

/* Returns "map" for "map.key", and "key" for "key". room: DT_HUGGINGFACE_NAME_SIZE. */
static const char *huggingface_map_of(char *room, const char *key)
{
    snprintf(room, DT_HUGGINGFACE_NAME_SIZE, "%.*s", (int)strcspn(key, "."), key);
    return room;
}

static const json_t *huggingface_json_at(const json_t *object, const char *key)
{
    const char *dot = strchr(key, '.');
    char map[DT_HUGGINGFACE_NAME_SIZE];

    object = json_object_get(object, huggingface_map_of(map, key));
    return dot != NULL ? json_object_get(object, dot + 1) : object;
}

/* Returns the file's value of a key, under any of its names; NULL if missing or null. */
static const json_t *value_of(const json_t *config, const dt_published_key *key)
{
    const json_t *value = key->key != NULL ? huggingface_json_at(config, key->key) : NULL;

    for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
        if (value == NULL || json_is_null(value))
            value = huggingface_json_at(config, key->also[i]);
    return json_is_null(value) ? NULL : value;
}

/* Returns the key with the kind of the object that contains this key: the object's first key. */
static const dt_published_key *huggingface_kind_key(const dt_published_key *keys,
                                                    const dt_published_key *key)
{
    size_t length = strcspn(key->key, ".") + 1;

    while (keys->key == NULL || strncmp(keys->key, key->key, length) != 0)
        keys++;
    return keys;
}

/* Returns whether the word is in a list of words separated by spaces. */
static bool huggingface_has_word(const char *words, const char *word)
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
    bool same = !key->each && same_json(value, must);

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

/* Returns the value as text of a recipe; NULL: not possible. */
static const char *huggingface_text_of(const json_t *value, const dt_published_key *key,
                                       dt_arena *arena)
{
    const char *word = json_string_value(value);

    if (key->words != NULL) {
        for (const dt_published_word *pair = key->words; pair->theirs != NULL; pair++)
            if (word != NULL && strcmp(pair->theirs, word) == 0)
                return pair->ours;
        return NULL;
    }
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
    st = dt_field_set_text(&scratch, field, text, err);
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
    kind = huggingface_kind_key(in->out->family->keys, key);
    for (size_t i = 0; i < in->out->count; i++)
        if (strcmp(in->out->values[i].path, kind->path) == 0)
            return huggingface_has_word(key->when, in->out->values[i].text);
    return false;
}

static dt_status take_field(reading *in, const dt_published_key *key, dt_error *err)
{
    const json_t *value = value_of(in->config, key);
    const char *text = key->absent;
    char room[100];
    dt_status st = DT_OK;

    if (value != NULL) {
        text = huggingface_text_of(value, key, in->arena);
        if (text == NULL)
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s': '%s' is %s, which dtrun does not support",
                           in->where, key->key, shown(room, sizeof(room), value));
    }
    if (text == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' has no '%s'", in->where, key->key);
    DT_ASSERT(in->out->count < DT_HUGGINGFACE_VALUES);
    DT_TRY(check_text(in, key, text, err));
    in->out->values[in->out->count++] =
        (dt_huggingface_value){key->path, text, key->key, key->at_most};
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

    for (const dt_published_key *key = family->keys; !huggingface_ends(key); key++) {
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

/* Merges the two spellings of rotary positions as transformers does (modeling_rope_utils.py,
 * convert_rope_params_to_dict): a non-empty rope_scaling replaces all of rope_parameters, and a rope_theta inside the
 * object overrides the one next to it. Changes `config`. */
static void unify_rope(json_t *config)
{
    json_t *rope = json_object_get(config, DT_HUGGINGFACE_ROPE), *theta;

    if (!json_is_object(rope) || json_object_size(rope) == 0) {
        if (rope != NULL && !json_is_null(rope) && !json_is_object(rope))
            return; /* check_map refuses it */
        rope = json_object_get(config, DT_HUGGINGFACE_ROPE_NEW);
        if (rope == NULL)
            return;
        json_object_set(config, DT_HUGGINGFACE_ROPE, rope);
    }
    (void)json_object_del(config, DT_HUGGINGFACE_ROPE_NEW);
    theta = json_object_get(rope, "rope_theta");
    if (theta != NULL) {
        json_object_set(config, "rope_theta", theta);
        (void)json_object_del(rope, "rope_theta");
    }
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
    if (is_map(out->family, DT_HUGGINGFACE_ROPE))
        unify_rope(unified);
    out->kind = dt_architecture_find(kind)->name;
    for (const dt_published_key *key = out->family->keys; !huggingface_ends(key); key++) {
        if (key->path != NULL && !key->least && applies(&in, key))
            DT_TRY(take_field(&in, key, err));
        if (key->needed && json_object_get(config, key->key) == NULL)
            DT_THROW(
                err, DT_ERR_RECIPE,
                "'%s' has no '%s', which is then not %s: dtrun computes such a model only with %s",
                where, key->key, key->must, key->must);
    }
    DT_TRY(check_others(&in, err));
out:
    json_decref(unified);
    return st;
}

/* --- writing */

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

        while (!huggingface_ends(key) && (key->key != NULL || is_so(recipe, key)))
            key++;
        *out = family;
        if (huggingface_ends(key))
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
    const char *a = before != NULL ? huggingface_text_of(before, key, arena) : NULL;
    const char *b = huggingface_text_of(now, key, arena);

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
    map = json_object_get(out, huggingface_map_of(room, name));
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

    for (const dt_published_key *key = family->keys; !huggingface_ends(key); key++) {
        if (key->key != NULL && strchr(key->key, '.') != NULL)
            (void)json_object_del(out, huggingface_map_of(room, key->key));
        for (int i = 0; i < DT_PUBLISHED_ALSO && key->also[i] != NULL; i++)
            (void)json_object_del(out, huggingface_map_of(room, key->also[i]));
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
    kind = huggingface_kind_key(family->keys, key);
    if (key == kind)
        return is_so(recipe, key);
    dt_strbuf_init(&text);
    value = field_json(recipe, kind->path);
    add_text(&text, value);
    out = key->when != NULL && !huggingface_has_word(key->when, text.data);
    dt_strbuf_release(&text);
    json_decref(value);
    return out;
}

static dt_status put_field(json_t *out, const dt_published *family, const dt_published_key *key,
                           const dt_recipe *recipe, int64_t vocab, dt_arena *arena, dt_error *err)
{
    const json_t *before = huggingface_json_at(out, key->key);
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
    for (const dt_published_key *key = family->keys; !huggingface_ends(key); key++) {
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
