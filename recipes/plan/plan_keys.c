/* plan_keys: reads and checks single keys of a plan. */
#include <string.h>

#include "recipes/fields/version.h"
#include "recipes/plan/plan_int.h"

dt_status dt_plan_check_keys(const json_t *object, const char *const *known, const char *map,
                             dt_error *err)
{
    dt_status st = DT_OK;
    json_t *borrowed = (json_t *)object; /* json_object_foreach reads only */
    const char *key;
    json_t *value;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (!json_is_object(object))
        DT_THROW(err, DT_ERR_CORRUPT, "plan%s%s: expected an object", map[0] != '\0' ? ": " : "",
                 map);
    json_object_foreach(borrowed, key, value) {
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] != NULL)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s%s%s", map, map[0] != '\0' ? "." : "", key);
        DT_TRY(dt_version_unknown_key(path.data, "plan", err));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_plan_get_int(int64_t *out, const json_t *object, const char *key, int64_t low,
                          int64_t high, const char *where, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_int(out, object, key, where, err));
    if (*out < low || *out > high)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is %lld: expected %lld to %lld", where, key,
                 (long long)*out, (long long)low, (long long)high);
out:
    return st;
}

dt_status dt_plan_get_string(const char **out, const json_t *object, const char *key, bool empty,
                             const char *where, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;

    DT_TRY(dt_json_get_string(&text, object, key, where, err));
    if (text[0] == '\0' && !empty)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is empty", where, key);
    *out = dt_arena_strdup(arena, text);
out:
    return st;
}

dt_status dt_plan_get_path(const char **out, const json_t *object, const char *key, bool empty,
                           dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_plan_get_string(out, object, key, empty, "plan", arena, err));
    if ((*out)[0] != '\0' && (*out)[0] != '/')
        DT_THROW(err, DT_ERR_CORRUPT, "plan: '%s' is not an absolute path", key);
out:
    return st;
}
