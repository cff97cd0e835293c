/* settings: what config.json says, and which of it llama.cpp cannot compute. */
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_int.h"

int64_t dt_gguf_number(const json_t *config, const char *key)
{
    return json_integer_value(json_object_get(config, key));
}

int64_t dt_gguf_head_width(const json_t *config)
{
    int64_t width = dt_gguf_number(config, "head_dim");

    return width > 0 ? width
                     : dt_gguf_number(config, "hidden_size") /
                           dt_gguf_number(config, "num_attention_heads");
}

/* --- windows */

static bool is_sliding(const json_t *layer)
{
    return json_is_string(layer) && strcmp(json_string_value(layer), "sliding_attention") == 0;
}

int64_t dt_gguf_window(const json_t *config)
{
    const json_t *list = json_object_get(config, "layer_types"), *layer;
    bool any = json_array_size(list) == 0;
    size_t i;

    json_array_foreach((json_t *)list, i, layer)
        any = any || is_sliding(layer);
    if (!any || json_is_false(json_object_get(config, "use_sliding_window")))
        return 0;
    return dt_gguf_number(config, "sliding_window");
}

bool dt_gguf_has_window(const dt_gguf_kind *kind, const json_t *config, int64_t block)
{
    const json_t *list = json_object_get(config, "layer_types");

    if (dt_gguf_window(config) == 0)
        return false;
    return json_array_size(list) > 0
               ? is_sliding(json_array_get(list, (size_t)block))
               : kind->window_pattern == 0 || (block + 1) % kind->window_pattern != 0;
}

static dt_status check_window(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    int64_t window = dt_gguf_window(config);
    int64_t context = dt_gguf_number(config, "max_position_embeddings");

    if (kind->windows == DT_GGUF_WINDOWS_NONE && window > 0 && window < context)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'sliding_window' is %lld of %lld tokens, and llama.cpp computes '%s' "
                       "without windows",
                       (long long)window, (long long)context, kind->architecture);
    return DT_OK;
}

/* --- values */

/* Whether the value is one of the words. */
static bool is_one_of(const json_t *value, const char *words)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *plain = json_is_string(value) ? json_string_value(value) : text;
    size_t length = plain != NULL ? strlen(plain) : 0;
    bool found = json_is_number(value) && strcmp(words, "a number") == 0;

    for (const char *at = words; !found && plain != NULL && at != NULL;
         at = strchr(at, '|'), at = at != NULL ? at + 1 : NULL)
        found = strncmp(at, plain, length) == 0 && (at[length] == '|' || at[length] == '\0');
    free(text);
    return found;
}

static dt_status check_values(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    for (const dt_gguf_need_row *row = kind->needs; row->key != NULL; row++) {
        const json_t *value = json_object_get(config, row->key);
        char *text;

        if (value == NULL || is_one_of(value, row->values))
            continue;
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        DT_FAIL(err, DT_ERR_RECIPE, "'%s' is %s, and llama.cpp computes '%s' only with %.*s",
                row->key, text != NULL ? text : "", kind->architecture,
                (int)strcspn(row->values, "|"), row->values);
        free(text);
        return DT_ERR_RECIPE;
    }
    return DT_OK;
}

static dt_status check_heads(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    int64_t width = dt_gguf_number(config, "head_dim"),
            embed = dt_gguf_number(config, "hidden_size");
    int64_t heads = dt_gguf_number(config, "num_attention_heads");
    int64_t layers = dt_gguf_number(config, "num_hidden_layers"), scale;
    const json_t *scalar = json_object_get(config, "query_pre_attn_scalar");

    if (kind->head_width_derived && width > 0 && width * heads != embed)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'head_dim' is %lld, and llama.cpp computes '%s' only with 'hidden_size' / "
                       "'num_attention_heads', %lld",
                       (long long)width, kind->architecture, (long long)(embed / heads));
    if (kind->derived_scale == 0 || !json_is_number(scalar))
        return DT_OK;
    scale = layers == kind->derived_scale ? embed / heads : width;
    if (json_number_value(scalar) != (double)scale)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'query_pre_attn_scalar' is %g, and llama.cpp computes '%s' of %lld blocks "
                       "only with %lld",
                       json_number_value(scalar), kind->architecture, (long long)layers,
                       (long long)scale);
    return DT_OK;
}

static dt_status check_rotated(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    const json_t *list = json_object_get(config, "no_rope_layers"), *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
        if (kind->unrotated_pattern > 0 &&
            (json_integer_value(item) == 0) != ((i + 1) % (size_t)kind->unrotated_pattern == 0))
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'no_rope_layers' is %lld for block %zu, and llama.cpp computes '%s' "
                           "without rotary positions in each %dth block only",
                           (long long)json_integer_value(item), i, kind->architecture,
                           kind->unrotated_pattern);
    return DT_OK;
}

dt_status dt_gguf_check_settings(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(check_values(kind, config, err));
    if (kind->ropes == NULL)
        return DT_OK;
    DT_TRY(check_heads(kind, config, err));
    DT_TRY(check_window(kind, config, err));
    DT_TRY(check_rotated(kind, config, err));
out:
    return st;
}
