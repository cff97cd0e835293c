#include <string.h>

#include "engine/tokens/bpe_int.h"

dt_status dt_bpe_check_keys(const json_t *object, const char *where, const char *const *keys,
                            dt_error *err)
{
    const char *key;
    json_t *value;
    int i;

    if (!json_is_object(object))
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': expected an object", where);
    json_object_foreach((json_t *)object, key, value) {
        for (i = 0; keys[i] != NULL && strcmp(keys[i], key) != 0;)
            i++;
        if (keys[i] == NULL)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s': unsupported key '%.80s'", where, key);
    }
    return DT_OK;
}

dt_status dt_bpe_get_type(const char **out, const json_t *object, const char *where, dt_error *err)
{
    *out = json_string_value(json_object_get(object, "type"));
    return *out != NULL
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': expected an object with 'type'", where);
}

dt_status dt_bpe_get_bool(bool *out, const json_t *object, const char *key, bool fallback,
                          const char *where, dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = value == NULL || json_is_null(value) ? fallback : json_is_true(value);
    return value == NULL || json_is_null(value) || json_is_boolean(value)
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s': expected true or false", where, key);
}

dt_status dt_bpe_get_text(const char **out, const json_t *object, const char *key,
                          const char *where, dt_error *err)
{
    *out = json_string_value(json_object_get(object, key));
    return *out != NULL ? DT_OK
                        : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s': expected a text", where, key);
}

dt_status dt_bpe_read_each(dt_bpe *bpe, const json_t *json, const char *where, const char *list,
                           dt_bpe_read_fn *read, dt_error *err)
{
    const char *const keys[] = {"type", list, NULL};
    dt_status st = DT_OK;
    const json_t *part, *parts;
    const char *type;
    size_t i;

    if (json == NULL || json_is_null(json))
        return DT_OK;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    if (strcmp(type, "Sequence") != 0)
        return read(bpe, json, true, err);
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    parts = json_object_get(json, list);
    if (!json_is_array(parts))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': '%s': expected a list", where, list);
    json_array_foreach((json_t *)parts, i, part)
        DT_TRY(read(bpe, part, json_array_size(parts) == 1, err));
out:
    return st;
}
