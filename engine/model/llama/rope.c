/* rope: the tables of rotary angles, with every scaling of frequencies (transformers' modeling_rope_utils.py). */
#include <math.h>
#include <stdlib.h>

#include "engine/model/llama/model_int.h"
#include "recipes/architecture/decoder.h"

#define TWO_PI 6.283185307179586

/* What the frequencies of a table depend on. */
typedef struct rope {
    const dt_llama_config *config;
    double theta;   /* base of the frequencies */
    int64_t turned; /* R: rotated elements */
    dt_rope_scaling_kind scaling;
    bool beyond; /* the longest sequence is longer than the original ones */
} rope;

/* Frequency scaling of Llama 3.1, by how many wavelengths fit into the original context: many:
 * unchanged; few: divided by rope_factor; in between: linear interpolation. */
static double stretch_long_waves(double frequency, const dt_llama_config *config)
{
    double fits = (double)config->rope_original_tokens * frequency / TWO_PI;
    double low = config->rope_low_freq_factor, high = config->rope_high_freq_factor;
    double share = (fits - low) / (high - low); /* share of the frequency that stays unchanged */

    if (share <= 0)
        return frequency / config->rope_factor;
    if (share >= 1)
        return frequency;
    return (1 - share) * frequency / config->rope_factor + share * frequency;
}

/* The pair of elements of whose wavelength `fits` fit into the original context. */
static double pair_of(const rope *r, double fits)
{
    return (double)r->turned * log((double)r->config->rope_original_tokens / (fits * TWO_PI)) /
           (2 * log(r->theta));
}

/* YaRN: like Llama 3.1, but interpolated between two pairs of elements (Peng et al. 2023, https://arxiv.org/abs/2309.00071). */
static double stretch_by_parts(double frequency, int64_t pair, const rope *r)
{
    const dt_llama_config *config = r->config;
    double low = pair_of(r, config->rope_beta_fast), high = pair_of(r, config->rope_beta_slow),
           ramp;

    if (config->rope_truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, (double)(r->turned - 1));
    if (low == high)
        high += 0.001;
    ramp = fmin(fmax(((double)pair - low) / (high - low), 0), 1);
    return frequency / config->rope_factor * ramp + frequency * (1 - ramp);
}

static float frequency_of(int64_t pair, const rope *r)
{
    const dt_llama_config *config = r->config;
    double frequency = pow(r->theta, -2.0 * (double)pair / (double)r->turned);
    const dt_string_list *factors =
        r->beyond ? &config->rope_long_factors : &config->rope_short_factors;

    switch (r->scaling) {
    case DT_ROPE_LINEAR:
        return (float)(frequency / config->rope_factor);
    case DT_ROPE_LLAMA3:
        return (float)stretch_long_waves(frequency, config);
    case DT_ROPE_YARN:
        return (float)stretch_by_parts(frequency, pair, r);
    case DT_ROPE_LONGROPE:
        return (float)(frequency / strtod(factors->items[pair], NULL));
    case DT_ROPE_DYNAMIC: /* by its base */
    case DT_ROPE_NONE:
        break;
    }
    return (float)frequency;
}

/* Of YaRN: how much larger scores are to be with a context that is `scale` times as long. */
static double mscale_of(double scale, double weight)
{
    return scale <= 1 ? 1 : 0.1 * weight * log(scale) + 1;
}

/* Factor of cosines and sines. */
static double amplitude_of(const rope *r)
{
    const dt_llama_config *config = r->config;
    double factor = config->rope_factor;

    if (r->scaling != DT_ROPE_YARN && r->scaling != DT_ROPE_LONGROPE)
        return 1;
    if (config->rope_attention_factor > 0)
        return config->rope_attention_factor;
    if (r->scaling == DT_ROPE_LONGROPE)
        return factor <= 1 ? 1 : sqrt(1 + log(factor) / log((double)config->rope_original_tokens));
    if (config->rope_mscale > 0 && config->rope_mscale_all > 0)
        return mscale_of(factor, config->rope_mscale) / mscale_of(factor, config->rope_mscale_all);
    return mscale_of(factor, 1);
}

/* Tables with the same number are the same for the longest sequences of two passes. */
static int64_t tables_of(const dt_llama_config *config, int64_t tokens)
{
    switch (config->rope_scaling) {
    case DT_ROPE_LONGROPE:
        return tokens > config->rope_original_tokens;
    case DT_ROPE_DYNAMIC:
        return tokens > config->rope_original_tokens ? tokens : config->rope_original_tokens;
    default:
        return 0;
    }
}

/* The base for sequences of `tokens`. */
static double stretched_theta(const dt_llama_config *config, int64_t turned, int64_t tokens)
{
    double longer = (double)tables_of(config, tokens) / (double)config->rope_original_tokens;

    return config->rope_theta * pow(config->rope_factor * longer - (config->rope_factor - 1),
                                    (double)turned / (double)(turned - 2));
}

static rope rope_of(const dt_model_config *config, dt_llama_angles table, int64_t tokens)
{
    const dt_llama_config *own = &config->llama;
    rope r = {own, own->rope_theta, dt_llama_turned(config), own->rope_scaling,
              tokens > own->rope_original_tokens};

    if (table == DT_LLAMA_ANGLES_LOCAL) {
        r.theta = own->rope_local_theta;
        r.scaling = DT_ROPE_NONE;
    } else if (own->rope_scaling == DT_ROPE_DYNAMIC) {
        r.theta = stretched_theta(own, r.turned, tokens);
    }
    return r;
}

/* Compute a table: a row has R/2 cosines, then R/2 sines. Frequency and angle are rounded to fp32
 * exactly where Hugging Face transformers does: at position 1000 the rounding changes the angle, so it is
 * part of the definition. Blocks without rotary positions have angles of 0. */
static void fill_table(float *out, const dt_model_config *config, dt_llama_angles table,
                       int64_t tokens)
{
    rope r = rope_of(config, table, tokens);
    int64_t half = r.turned / 2;
    float amplitude = (float)amplitude_of(&r);

    for (int64_t i = 0; i < half; i++) {
        float frequency = table == DT_LLAMA_ANGLES_NONE ? 0 : frequency_of(i, &r);

        for (int64_t t = 0; t < config->decoder.context; t++) {
            float angle = (float)t * frequency, *row = out + t * r.turned;

            row[i] = (float)cos((double)angle);
            row[half + i] = (float)sin((double)angle);
            if (table != DT_LLAMA_ANGLES_NONE && amplitude != 1) {
                row[i] *= amplitude;
                row[half + i] *= amplitude;
            }
        }
    }
}

static dt_status fill(dt_model *model, int64_t tokens, dt_error *err)
{
    const dt_model_config *config = &model->config;
    dt_decoder *state = model->state;
    int64_t each = config->decoder.context * dt_llama_turned(config);
    int64_t tables = dt_llama_angle_tables(config);
    size_t bytes = (size_t)(tables * each) * sizeof(float);
    float *host = malloc(bytes);
    dt_status st = DT_OK;

    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the angles of %lld positions",
                 (long long)config->decoder.context);
    for (int64_t i = 0; i < tables; i++)
        fill_table(host + i * each, config, (dt_llama_angles)i, tokens);
    DT_TRY(model->device->copy_in(model->device, state->lasting[DT_LLAMA_ANGLES].data, host, bytes,
                                  err));
    DT_TRY(model->device->synchronize(model->device, err));
    state->tables_of = tables_of(&config->llama, tokens);
out:
    free(host);
    return st;
}

dt_status dt_llama_angles_fill(dt_model *model, dt_error *err)
{
    return fill(model, model->config.tokens, err);
}

/* Table `which` as a whole. */
static dt_tensor table_at(const dt_model *model, int64_t which)
{
    const dt_decoder *state = model->state;
    const dt_tensor *all = &state->lasting[DT_LLAMA_ANGLES];
    int64_t context = model->config.decoder.context, turned = all->dim[1];

    return dt_tensor_2d((float *)all->data + which * context * turned, DT_F32, context, turned);
}

/* The rows of the sequences that a pass extends. */
static dt_tensor rows_of_each(const dt_model *model, int64_t which)
{
    const dt_decoder *state = model->state;
    const dt_tensor *all = &state->lasting[DT_LLAMA_ROW_ANGLES];
    int64_t turned = all->dim[1], first = which * model->config.sequences;

    return dt_tensor_2d((float *)all->data + first * turned, DT_F32, state->B, turned);
}

dt_status dt_llama_angles_ready(dt_model *model, dt_error *err)
{
    const dt_decoder *state = model->state;
    bool each = state->growth.each;
    int64_t longest = each ? state->growth.longest : state->first_position + state->T;
    dt_tensor none = {0};
    dt_status st = DT_OK;

    if (tables_of(&model->config.llama, longest) != state->tables_of)
        DT_TRY(fill(model, longest, err));
    for (int64_t i = 0; each && i < dt_llama_angle_tables(&model->config); i++) {
        dt_tensor rows = rows_of_each(model, i), table = table_at(model, i);

        DT_TRY(model->device->ops->embedding_forward(model->device, &rows, &state->growth.places,
                                                     &table, &none, 1, NULL, err));
    }
out:
    return st;
}

dt_tensor dt_llama_angles_rows(const dt_model *model, int64_t layer)
{
    const dt_decoder *state = model->state;
    int64_t which = (int64_t)dt_llama_angles_of(&model->config, layer), first;
    dt_tensor table;

    if (state->growth.each)
        return rows_of_each(model, which);
    table = table_at(model, which);
    first = state->first_position;
    return dt_tensor_2d((float *)table.data + first * table.dim[1], DT_F32, table.dim[0] - first,
                        table.dim[1]);
}
