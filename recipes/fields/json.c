/* json: converts the resolved recipe to JSON and back, checks versions of documents, and computes the hash
 * of a recipe (recipes/fields/fields.h). */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/strbuf.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/text.h"
#include "recipes/fields/values.h"

/* --- versions of documents */

dt_status dt_version_check(const json_t *document, const char *key, int64_t version,
                           const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t found;

    DT_TRY(dt_json_get_int_or(&found, document, key, 1, where, err));
    if (found < 1)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is %lld (expected a version, from 1)", where, key,
                 (long long)found);
    if (found != version)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "%s: another dtrun wrote it (version %lld, this program reads version %lld): use "
                 "that dtrun",
                 where, (long long)found, (long long)version);
out:
    return st;
}

dt_status dt_version_unknown_key(const char *path, const char *where, dt_error *err)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show(&shown, path);
    DT_FAIL(err, DT_ERR_CORRUPT, "%s: unknown key %s", where, shown.data);
    dt_strbuf_release(&shown);
    return DT_ERR_CORRUPT;
}

/* --- the recipe */

#define PATH_SIZE 256 /* "map.map.key"; no field has a longer path */

/* Returns the object that contains the field, creating it if missing; *key: the field's key in it. */
static json_t *object_of(json_t *root, const dt_field *field, const char **key)
{
    json_t *object = root, *next;
    const char *from = field->path, *dot;

    for (; (dot = strchr(from, '.')) != NULL; from = dot + 1, object = next) {
        char name[PATH_SIZE];

        snprintf(name, sizeof(name), "%.*s", (int)(dot - from), from);
        next = json_object_get(object, name);
        if (next == NULL) {
            next = json_object();
            json_object_set_new(object, name, next);
        }
    }
    *key = from;
    return object;
}

/* Returns the field's value in a document; NULL: none. A value instead of a map is that of its shorthand: so earlier
 * builds wrote 'tensor'. */
static const json_t *value_of(const json_t *root, const dt_field *field)
{
    const json_t *value = root;
    const char *from = field->path;

    while (value != NULL && *from != '\0') {
        if (!json_is_object(value))
            return field->shorthand ? value : NULL;

        size_t length = strcspn(from, ".");
        char name[PATH_SIZE];

        snprintf(name, sizeof(name), "%.*s", (int)length, from);
        value = json_object_get(value, name);
        from += length + (from[length] == '.' ? 1 : 0);
    }
    return value;
}

static void add_field(json_t *out, const dt_field *field, json_t *value)
{
    const char *key;
    json_t *object = object_of(out, field, &key);

    json_object_set_new(object, key, value);
}

/* Other fields of a command have no value: a model has no default size. */
static json_t *to_json(const dt_recipe *recipe, bool all)
{
    json_t *out = json_object();

    all = all && recipe->task != DT_TASK_COMMAND;
    json_object_set_new(out, DT_RECIPE_VERSION_KEY, json_integer(DT_RECIPE_VERSION));
    for (size_t i = 0; i < dt_fields_count; i++)
        if (all || dt_field_is_of_task(&dt_fields[i], recipe->task))
            add_field(out, &dt_fields[i], dt_field_to_json(recipe, &dt_fields[i]));
    return out;
}

json_t *dt_recipe_to_json(const dt_recipe *recipe)
{
    return to_json(recipe, true);
}

json_t *dt_recipe_of_task_to_json(const dt_recipe *recipe)
{
    return to_json(recipe, false);
}

/* Hides a webhook's address, which is a secret unless it comes from the environment. */
static json_t *without_secret(const dt_field *field, json_t *value)
{
    const char *text = json_string_value(value);

    if (strcmp(field->path, "notify.webhook") != 0 || text == NULL || text[0] == '\0' ||
        strncmp(text, "${env:", strlen("${env:")) == 0)
        return value;
    json_decref(value);
    return json_string("(not shown)");
}

json_t *dt_recipe_changes(const dt_recipe *before, const dt_recipe *after)
{
    json_t *changes = json_array();

    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];
        json_t *old_value = dt_field_to_json(before, field);
        json_t *new_value = dt_field_to_json(after, field);

        if (dt_field_is_of_task(field, after->task) && !json_equal(old_value, new_value))
            json_array_append_new(changes,
                                  json_pack("{s:s, s:o, s:o}", "key", field->path, "old",
                                            without_secret(field, json_incref(old_value)), "new",
                                            without_secret(field, json_incref(new_value))));
        json_decref(old_value);
        json_decref(new_value);
    }
    return changes;
}

/* Refuses unknown keys of items, as "data.mixture.colour" for any item. */
static dt_status check_items(const json_t *list, const dt_field_table *items, const char *at,
                             dt_error *err)
{
    dt_status st = DT_OK;
    json_t *item, *value;
    const char *key;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
        json_object_foreach(item, key, value) {
            const dt_field *field = dt_field_find_item(items, key);
            char path[PATH_SIZE];

            snprintf(path, sizeof(path), "%s.%s", at, key);
            if (field == NULL)
                DT_TRY(dt_version_unknown_key(path, "recipe", err));
            else if (field->items != NULL)
                DT_TRY(check_items(value, field->items, path, err));
        }
out:
    return st;
}

static bool has_shorthand(const char *map)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].shorthand && dt_field_in_group(&dt_fields[i], map))
            return true;
    return false;
}

/* Checks that every key of the object at `map` ("": the document) is a field or a map of fields. */
static dt_status check_keys(const json_t *object, const char *map, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *borrowed = (json_t *)object; /* json_object_foreach reads only */
    const char *key;
    json_t *value;

    json_object_foreach(borrowed, key, value) {
        const dt_field *field;
        char path[PATH_SIZE];

        if (map[0] == '\0' && strcmp(key, DT_RECIPE_VERSION_KEY) == 0)
            continue;
        snprintf(path, sizeof(path), "%s%s%s", map, map[0] != '\0' ? "." : "", key);
        field = dt_field_find(path);
        if (field != NULL && field->items != NULL)
            DT_TRY(check_items(value, field->items, path, err));
        if (field != NULL)
            continue;
        if (strchr(key, '.') != NULL || !dt_field_is_map(path))
            DT_TRY(dt_version_unknown_key(path, "recipe", err));
        else if (!json_is_object(value) && !has_shorthand(path))
            DT_THROW(err, DT_ERR_CORRUPT, "recipe: '%s': expected an object", path);
        else if (json_is_object(value))
            DT_TRY(check_keys(value, path, err));
    }
out:
    return st;
}

static dt_status read_field(dt_recipe *out, const dt_field *field, const json_t *json,
                            dt_arena *arena, dt_error *err)
{
    const json_t *value = value_of(json, field);
    dt_status st = DT_OK;

    if (value != NULL)
        st = dt_field_set_json(out, field, value, arena, err);
    else if (field->fallback == NULL && dt_field_is_of_task(field, out->task))
        st = DT_FAIL(err, DT_ERR_CORRUPT, "'%s' is missing", field->path);
    if (st != DT_OK)
        dt_error_prefix(err, "recipe");
    return st;
}

dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    if (!json_is_object(json))
        DT_THROW(err, DT_ERR_CORRUPT, "recipe: expected an object");
    DT_TRY(dt_version_check(json, DT_RECIPE_VERSION_KEY, DT_RECIPE_VERSION, "recipe", err));
    DT_TRY(check_keys(json, "", err));
    dt_recipe_init(out);
    for (size_t i = 0; i < dt_fields_count; i++)
        DT_TRY(read_field(out, &dt_fields[i], json, arena, err));
    if (out->task == DT_TASK_COMMAND &&
        value_of(json, dt_field_find("failure.hang_seconds")) == NULL)
        out->failure.hang_seconds = 0; /* of a dtrun that did not detect hangs of commands */
out:
    return st;
}

void dt_recipe_hash(char *out, const dt_recipe *recipe)
{
    json_t *json = json_object();
    dt_recipe defaults;
    XXH128_hash_t hash;
    dt_strbuf text;

    dt_recipe_init(&defaults);
    for (size_t i = 0; i < dt_fields_count; i++) {
        json_t *value = dt_field_to_json(recipe, &dt_fields[i]);
        json_t *usual = dt_field_to_json(&defaults, &dt_fields[i]);

        if (json_equal(value, usual))
            json_decref(value);
        else
            add_field(json, &dt_fields[i], value);
        json_decref(usual);
    }
    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    hash = XXH3_128bits(text.data, text.length);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    dt_strbuf_release(&text);
    json_decref(json);
}
