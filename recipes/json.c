/* The resolved recipe as JSON and back, and its hash: recipes/fields.h. */
#include <xxhash.h>

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "recipes/fields.h"
#include "recipes/text.h"
#include "recipes/values.h"

#include "base/banned.h"

#define GROUP_SIZE 32 /* the longest name of a map, and its end */

/* The name of the field's map ("" at the top) into `group`; returns the key within it. */
static const char *split(char *group, const dt_field *field)
{
    size_t length = dt_field_group_length(field);

    DT_ASSERT(length < GROUP_SIZE);
    memcpy(group, field->path, length);
    group[length] = '\0';
    return length != 0 ? field->path + length + 1 : field->path;
}

json_t *dt_recipe_to_json(const dt_recipe *recipe)
{
    json_t *root = json_object();

    for (size_t i = 0; i < dt_fields_count; i++) {
        char group[GROUP_SIZE];
        const char *key = split(group, &dt_fields[i]);
        json_t *object = root;

        if (group[0] != '\0') {
            object = json_object_get(root, group);
            if (object == NULL) {
                object = json_object();
                json_object_set_new(root, group, object);
            }
        }
        json_object_set_new(object, key, dt_field_to_json(recipe, &dt_fields[i]));
    }
    return root;
}

/* A webhook's address is one, unless it comes from the environment. */
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

        if (!json_equal(old_value, new_value))
            json_array_append_new(changes,
                                  json_pack("{s:s, s:o, s:o}", "key", field->path, "old",
                                            without_secret(field, json_incref(old_value)), "new",
                                            without_secret(field, json_incref(new_value))));
        json_decref(old_value);
        json_decref(new_value);
    }
    return changes;
}

static dt_status refuse_key(const char *group, const char *key, dt_error *err)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show(&shown, key);
    DT_FAIL(err, DT_ERR_CORRUPT, "unknown key %s%s%s%s", shown.data,
            group[0] != '\0' ? " in '" : "", group, group[0] != '\0' ? "'" : "");
    dt_strbuf_release(&shown);
    return DT_ERR_CORRUPT;
}

/* Every key of the object is a field of `group`, or at the top the name of a map. */
static dt_status check_keys(const json_t *object, const char *group, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *borrowed = (json_t *)object; /* json_object_foreach reads only */
    const char *key;
    json_t *value;

    json_object_foreach(borrowed, key, value)
    {
        bool known = false;

        for (size_t i = 0; i < dt_fields_count && !known; i++) {
            char in[GROUP_SIZE];
            const char *name = split(in, &dt_fields[i]);

            known = strcmp(in, group) == 0 && strcmp(name, key) == 0;
            if (group[0] == '\0' && in[0] != '\0' && strcmp(in, key) == 0) {
                known = true;
                if (!json_is_object(value))
                    DT_THROW(err, DT_ERR_CORRUPT, "'%s': expected an object", key);
                DT_TRY(check_keys(value, in, err));
            }
        }
        if (!known)
            DT_TRY(refuse_key(group, key, err));
    }
out:
    return st;
}

dt_status dt_recipe_from_json(dt_recipe *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    dt_recipe_init(out);
    if (!json_is_object(json))
        DT_THROW(err, DT_ERR_CORRUPT, "expected an object");
    DT_TRY(check_keys(json, "", err));
    for (size_t i = 0; i < dt_fields_count; i++) {
        char group[GROUP_SIZE];
        const char *key = split(group, &dt_fields[i]);
        const json_t *object = group[0] != '\0' ? json_object_get(json, group) : json;
        const json_t *value = json_object_get(object, key);

        if (value == NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is missing", dt_fields[i].path);
        DT_TRY(dt_field_set_json(out, &dt_fields[i], value, arena, err));
    }
out:
    if (st != DT_OK)
        dt_error_prefix(err, "recipe");
    return st;
}

void dt_recipe_hash(char *out, const dt_recipe *recipe)
{
    json_t *json = dt_recipe_to_json(recipe);
    XXH128_hash_t hash;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    hash = XXH3_128bits(text.data, text.length);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    dt_strbuf_release(&text);
    json_decref(json);
}
