#include <string.h>

#include "engine/tokens/bpe_int.h"

#include "base/banned.h"

dt_status dt_bpe_check_keys(const json_t *object, const char *where, const char *const *keys,
                            dt_error *err)
{
    const char *key;
    json_t *value;
    int i;

    if (!json_is_object(object))
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': expected an object", where);
    json_object_foreach((json_t *)object, key, value)
    {
        for (i = 0; keys[i] != NULL && strcmp(keys[i], key) != 0;)
            i++;
        if (keys[i] == NULL)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s': the key '%.80s' is not known here",
                           where, key);
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
