/* rope: rotary positions in a GGUF file: keys of their scaling, and tensors of the factors by which frequencies are divided.
 *
 * yarn       llama.cpp multiplies the amplitude by 1 + 0.1 ln(factor): attn_factor is what it lacks then
 * longrope   llama.cpp takes the long factors for contexts above the original length, of texts of any length
 */
#include <math.h>
#include <string.h>

#include "engine/gguf/gguf_int.h"

/* A field of the scaling, of blocks without a window if they have their own. */
static const json_t *value_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(json_object_get(config, "rope_scaling"), key);
    const json_t *all = json_object_get(config, "rope_parameters");
    const json_t *full = json_object_get(all, "full_attention");

    return value != NULL ? value : json_object_get(full != NULL ? full : all, key);
}

static double number_of(const json_t *config, const char *key, double absent)
{
    const json_t *value = value_of(config, key);

    return json_is_number(value) ? json_number_value(value) : absent;
}

const char *dt_gguf_rope_type(const json_t *config)
{
    const char *type = json_string_value(value_of(config, "rope_type"));

    if (type == NULL)
        type = json_string_value(value_of(config, "type"));
    return type != NULL ? type : "default";
}

static bool is_type(const json_t *config, const char *type)
{
    return strcmp(dt_gguf_rope_type(config), type) == 0;
}

/* A field outside of the object, or in it. */
static const json_t *outer(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);

    return value != NULL ? value : value_of(config, key);
}

/* The base of blocks with a window; 0: none. */
static double local_base(const json_t *config)
{
    const json_t *local =
        json_object_get(json_object_get(config, "rope_parameters"), "sliding_attention");

    return json_number_value(json_object_get(local, "rope_theta"));
}

/* The length for which the model was made before its scaling. */
static double original_of(const json_t *config)
{
    return json_number_value(outer(config, "original_max_position_embeddings"));
}

/* Elements of a head that are rotated. */
static int64_t turned(const json_t *config)
{
    const json_t *share = outer(config, "partial_rotary_factor");
    int64_t width = dt_gguf_head_width(config);

    return json_is_number(share) ? (int64_t)(json_number_value(share) * (double)width) : width;
}

/* --- what llama.cpp computes */

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

dt_status dt_gguf_check_rope(const dt_gguf_kind *kind, const json_t *config, dt_error *err)
{
    static const struct {
        const char *key;
        double only; /* what llama.cpp computes */
    } yarn[] = {{"beta_fast", 32}, {"beta_slow", 1}};
    const char *type = dt_gguf_rope_type(config);

    if (!has_word(kind->ropes, type))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the rope type is '%s', and llama.cpp computes '%s' only with one of '%s'",
                       type, kind->architecture, kind->ropes);
    if (kind->same_base && dt_gguf_window(config) > 0 && local_base(config) > 0 &&
        local_base(config) != json_number_value(outer(config, "rope_theta")))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the 'rope_theta' of 'sliding_attention' is %g, and llama.cpp computes '%s' "
                       "only with that of 'full_attention', %g",
                       local_base(config), kind->architecture,
                       json_number_value(outer(config, "rope_theta")));
    if (strcmp(type, "yarn") != 0)
        return DT_OK;
    for (size_t i = 0; i < sizeof(yarn) / sizeof(yarn[0]); i++)
        if (number_of(config, yarn[i].key, yarn[i].only) != yarn[i].only)
            return DT_FAIL(
                err, DT_ERR_RECIPE, "'%s' of yarn is %g, and llama.cpp computes '%s' only with %g",
                yarn[i].key, number_of(config, yarn[i].key, 0), kind->architecture, yarn[i].only);
    if (json_is_false(value_of(config, "truncate")))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'truncate' of yarn is false, and llama.cpp computes '%s' only with true",
                       kind->architecture);
    return DT_OK;
}

/* --- keys */

static double mscale_of(double scale, double weight)
{
    return scale <= 1 ? 1 : 0.1 * weight * log(scale) + 1;
}

/* The factor of cosines and sines, as in transformers. */
static double amplitude_of(const json_t *config)
{
    double factor = number_of(config, "factor", 1),
           given = number_of(config, "attention_factor", 0);
    double one = number_of(config, "mscale", 0), all = number_of(config, "mscale_all_dim", 0);

    if (given > 0)
        return given;
    if (is_type(config, "longrope"))
        return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(original_of(config)));
    return one > 0 && all > 0 ? mscale_of(factor, one) / mscale_of(factor, all)
                              : mscale_of(factor, 1);
}

static void add_number(dt_gguf_header *out, const dt_gguf_kind *kind, const char *key, double value,
                       bool whole)
{
    const char *name = dt_arena_printf(out->arena, "%s.rope.%s", kind->architecture, key);

    if (whole)
        dt_gguf_add_u32(out, name, (uint32_t)value);
    else
        dt_gguf_add_float(out, name, (float)value);
}

void dt_gguf_add_rope(dt_gguf_header *out, const dt_gguf_kind *kind, const json_t *config)
{
    const json_t *theta = outer(config, "rope_theta");
    const char *type = dt_gguf_rope_type(config);
    double factor = number_of(config, "factor", 1);
    bool yarn = is_type(config, "yarn"), longer = is_type(config, "longrope");

    if (kind->ropes == NULL)
        return;
    add_number(out, kind, "dimension_count", (double)turned(config), true);
    if (json_is_number(theta))
        add_number(out, kind, "freq_base", json_number_value(theta), false);
    if (yarn || longer || is_type(config, "linear"))
        dt_gguf_add_text(out,
                         dt_arena_printf(out->arena, "%s.rope.scaling.type", kind->architecture),
                         type, strlen(type));
    if (yarn || is_type(config, "linear"))
        add_number(out, kind, "scaling.factor", factor, false);
    if (yarn || longer) {
        add_number(out, kind, "scaling.original_context_length", original_of(config), true);
        add_number(out, kind, "scaling.attn_factor",
                   amplitude_of(config) / (yarn ? mscale_of(factor, 1) : 1), false);
    }
    if (longer)
        dt_gguf_note(out, "llama.cpp takes the long factors of longrope whenever its context is "
                          "longer than the original one, transformers only for such texts");
}

/* --- tensors */

static void set_tensor(dt_gguf_tensor *out, const char *name, const float *values, int64_t count)
{
    static const dt_gguf_tensor_row row = {"", "", DT_GGUF_AS_IS, true};

    *out = (dt_gguf_tensor){.name = name,
                            .row = &row,
                            .dim = {count},
                            .ndim = 1,
                            .values = values,
                            .elems = count,
                            .bytes = count * (int64_t)sizeof(float)};
}

/* By how much llama3's scaling divides each frequency of a head. */
static void divide_waves(float *out, const json_t *config)
{
    int64_t width = turned(config);
    double base = json_number_value(outer(config, "rope_theta"));
    double factor = number_of(config, "factor", 1), context = original_of(config);
    double low = number_of(config, "low_freq_factor", 1);
    double high = number_of(config, "high_freq_factor", 4);

    for (int64_t i = 0; i < width / 2; i++) {
        double wave = 2 * M_PI * pow(base, (double)(2 * i) / (double)width);
        double smooth = (context / wave - low) / (high - low);

        out[i] = (float)(wave < context / high  ? 1
                         : wave > context / low ? factor
                                                : 1 / ((1 - smooth) / factor + smooth));
    }
}

static void read_factors(float *out, const json_t *config, const char *key)
{
    const json_t *list = value_of(config, key);

    for (int64_t i = 0; i < turned(config) / 2; i++)
        out[i] = (float)json_number_value(json_array_get(list, (size_t)i));
}

size_t dt_gguf_rope_tensors(dt_gguf_tensor *out, const json_t *config, dt_arena *arena)
{
    int64_t count;
    float *values, *more;

    if (!is_type(config, "llama3") && !is_type(config, "longrope"))
        return 0;
    count = turned(config) / 2;
    values = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(values[0]));
    more = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(more[0]));
    if (is_type(config, "llama3")) {
        divide_waves(values, config);
        set_tensor(&out[0], "rope_freqs.weight", values, count);
        return 1;
    }
    read_factors(values, config, "long_factor");
    read_factors(more, config, "short_factor");
    set_tensor(&out[0], "rope_factors_long.weight", values, count);
    set_tensor(&out[1], "rope_factors_short.weight", more, count);
    return 2;
}
