/* architecture: sums over the units of a model, and the part of each parameter that a rank of a tensor
 * group holds. */
#include "recipes/architecture/architecture.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "recipes/architecture/published.h"

/* --- division among the ranks of a tensor group */

static int64_t times(int64_t a, int64_t b)
{
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

bool dt_tensor_divides(int64_t size, int64_t ranks, bool shared)
{
    return size % ranks == 0 || (shared && size > 0 && ranks % size == 0);
}

int64_t dt_tensor_key_heads(const dt_tensor_place *place, int64_t heads)
{
    int64_t ranks = dt_tensor_ranks(place);

    return heads > ranks ? heads / ranks : 1;
}

static dt_param_held whole(const int64_t *dim)
{
    dt_param_held out = {.cut_dim = -1, .parts = 1, .sharers = 1, .counted = true};

    for (int i = 0; i < DT_PARAM_DIMS; i++)
        out.dim[i] = dim[i];
    return out;
}

/* Gives the rank slice `slice` of `slices` along a dimension. */
static void cut_along(dt_param_held *held, int d, int parts, int64_t slice, int64_t slices)
{
    int64_t each = held->dim[d] / parts / slices;

    held->cut_dim = d;
    held->parts = parts;
    held->start = slice * each;
    held->dim[d] = parts * each;
}

dt_param_held dt_param_hold(const int64_t *dim, dt_param_cut cut, int64_t key_heads,
                            const dt_tensor_place *place)
{
    int64_t ranks = dt_tensor_ranks(place), slices;
    dt_param_held held = whole(dim);

    switch (ranks > 1 ? cut : DT_CUT_NONE) {
    case DT_CUT_ROWS:
        cut_along(&held, 0, 1, place->rank, ranks);
        break;
    case DT_CUT_COLUMNS:
        cut_along(&held, 1, 1, place->rank, ranks);
        break;
    case DT_CUT_THIRDS:
        cut_along(&held, 0, 3, place->rank, ranks);
        break;
    case DT_CUT_KEYS:
        slices = key_heads < 1 ? 1 : key_heads < ranks ? key_heads : ranks;
        held.sharers = ranks / slices;
        held.summed = held.sharers > 1;
        cut_along(&held, 0, 1, place->rank / held.sharers, slices);
        break;
    case DT_CUT_NONE:
    case DT_CUT_SUMMED:
        held.sharers = ranks;
        held.summed = ranks > 1 && cut == DT_CUT_SUMMED;
        break;
    }
    held.counted = place->rank % held.sharers == 0;
    held.elems = 1;
    for (int i = 0; i < DT_PARAM_DIMS; i++)
        held.elems = times(held.elems, held.dim[i]);
    return held;
}

/* --- units, parameters, FLOPs, activations */

#define DECLARE(KIND, name) extern const dt_architecture dt_architecture_##name;
#define ROW(KIND, name)     &dt_architecture_##name,
DT_MODELS(DECLARE)

/* By dt_architecture_kind. */
static const dt_architecture *const architectures[DT_MODEL_KINDS] = {DT_MODELS(ROW)};

const dt_architecture *dt_architecture_find(dt_architecture_kind kind)
{
    DT_ASSERT((size_t)kind < DT_MODEL_KINDS);
    return architectures[kind];
}

const dt_architecture *dt_architecture_named(const char *name)
{
    for (size_t i = 0; i < DT_MODEL_KINDS; i++)
        if (strcmp(architectures[i]->name, name) == 0)
            return architectures[i];
    return NULL;
}

static bool reads(const dt_architecture *architecture, const char *path)
{
    for (const char *const *field = architecture->reads; *field != NULL; field++)
        if (strcmp(*field, path) == 0)
            return true;
    return false;
}

bool dt_architecture_ignores(dt_architecture_kind kind, const char *path)
{
    bool known = false;

    for (size_t i = 0; i < DT_MODEL_KINDS; i++)
        known = known || reads(architectures[i], path);
    return known && !reads(dt_architecture_find(kind), path);
}

bool dt_architecture_published(const dt_published **out, dt_architecture_kind *kind, size_t index)
{
    for (size_t i = 0; i < DT_MODEL_KINDS; i++)
        for (const dt_published *family = architectures[i]->published;
             family != NULL && family->model_type != NULL; family++)
            if (index-- == 0) {
                *out = family;
                *kind = (dt_architecture_kind)i;
                return true;
            }
    return false;
}

uint32_t dt_lora_target_bits(const dt_architecture *kind, const char *name)
{
    uint32_t bits = 0;

    for (int i = 0; kind->targets != NULL && kind->targets[i].name != NULL; i++)
        if (strcmp(name, "all") == 0 || strcmp(name, kind->targets[i].name) == 0)
            bits |= UINT32_C(1) << i;
    return bits;
}

/* --- configs */

/* Rank-stabilised: Kalajdzievski 2023, https://arxiv.org/abs/2312.03732. */
static dt_lora_config lora_of(const dt_recipe *recipe)
{
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);
    double rank = (double)recipe->lora.rank;
    double alpha = recipe->lora.alpha > 0 ? recipe->lora.alpha : 2 * rank;
    dt_lora_config out = {.rank = recipe->lora.rank, .dropout = recipe->lora.dropout};

    for (int64_t i = 0; i < recipe->lora.targets.count; i++)
        out.targets |= dt_lora_target_bits(kind, recipe->lora.targets.items[i]);
    if (out.rank == 0 || out.targets == 0)
        return (dt_lora_config){0};
    out.scale = alpha / (recipe->lora.rslora ? sqrt(rank) : rank);
    return out;
}

static dt_dtype compute_type(dt_precision_kind kind)
{
    static const dt_dtype types[] = {
        [DT_PRECISION_FP32] = DT_F32,
        [DT_PRECISION_BF16] = DT_BF16,
        [DT_PRECISION_FP16] = DT_F16,
    };

    return types[kind];
}

void dt_model_config_make(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    memset(out, 0, sizeof(*out));
    out->kind = recipe->model.kind;
    out->batch = recipe->batch.sequences;
    out->tokens = recipe->batch.tokens;
    out->recompute = recipe->activation_checkpointing;
    out->dtype = compute_type(recipe->precision.kind);
    out->tensor.size = recipe->tensor.size;
    out->lora = lora_of(recipe);
    dt_architecture_find(out->kind)->configure(out, recipe, vocab > 0 ? vocab : DT_VOCAB_UNKNOWN);
}

dt_status dt_model_check_size(const char *what, int64_t value, int64_t most, dt_error *err)
{
    if (value >= 1 && value <= most)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE, "model: '%s' is %lld; expected 1 to %lld", what,
                   (long long)value, (long long)most);
}

dt_status dt_model_check_dropout(const char *what, double value, dt_error *err)
{
    if (value >= 0 && value < 1)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE, "model: '%s' is %g; expected 0 up to, not including, 1",
                   what, value);
}

const dt_divided_size *dt_model_undivided(const dt_model_config *config)
{
    const dt_divided_size *size = dt_architecture_find(config->kind)->divided;

    for (; size != NULL && size->path != NULL; size++)
        if (!dt_tensor_divides(size->of(config), dt_tensor_ranks(&config->tensor), size->shared))
            return size;
    return NULL;
}

static dt_status check_tensor(const dt_model_config *config, dt_error *err)
{
    const dt_architecture *kind = dt_architecture_find(config->kind);
    long long ranks = dt_tensor_ranks(&config->tensor);
    const dt_divided_size *size;

    if (ranks == 1)
        return DT_OK;
    if (kind->divided == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "a model of kind '%s' and 'tensor' %lld cannot be combined: its layers are "
                       "not divided",
                       kind->name, ranks);
    size = dt_model_undivided(config);
    if (size != NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "model: 'tensor' %lld does not divide '%s' %lld", ranks,
                       size->path, (long long)size->of(config));
    return DT_OK;
}

/* A rank divides no mask (dt_ops.dropout_forward), and a part of the columns would need a part of one. */
static dt_status check_lora(const dt_model_config *config, dt_error *err)
{
    const dt_architecture *kind = dt_architecture_find(config->kind);
    dt_status st = DT_OK;

    if (config->lora.rank == 0)
        return DT_OK;
    if (kind->targets == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "a model of kind '%s' cannot have an adapter ('lora')",
                 kind->name);
    DT_TRY(dt_model_check_size("lora.rank", config->lora.rank, DT_LORA_RANK_MAX, err));
    DT_TRY(dt_model_check_dropout("lora.dropout", config->lora.dropout, err));
    if (config->lora.dropout > 0 && dt_tensor_ranks(&config->tensor) > 1)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'lora.dropout' and 'tensor' cannot be combined: set one of them only");
out:
    return st;
}

static dt_param_sink count_params(const dt_model_config *config);

dt_status dt_model_config_check(const dt_model_config *config, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_architecture_find(config->kind)->check(config, err));
    DT_TRY(check_tensor(config, err));
    DT_TRY(check_lora(config, err));
    DT_TRY(dt_model_check_size("batch", config->batch, 1 << 24, err));
    if (config->dtype != DT_F32 && config->dtype != DT_BF16 && config->dtype != DT_F16)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "unsupported precision '%s'; expected fp32, bf16 or fp16",
                 dt_dtype_name(config->dtype));
    if (config->frozen != NULL && count_params(config).splits)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: frozen '%s' names only some of the weights that form one matrix (as q, k "
                 "and v do): name all of them",
                 config->frozen);
    if (config->incremental && !config->inference)
        DT_THROW(err, DT_ERR_USAGE, "model: a KV cache can only be used without a backward pass");
    /* keeps every size of a pass in 64 bits */
    if (dt_architecture_find(config->kind)->activation_bytes(config) > (int64_t)1 << 58)
        DT_THROW(err, DT_ERR_NOMEM,
                 "activations of %d blocks over %lld x %lld tokens do not fit in memory; use a "
                 "smaller batch",
                 dt_architecture_find(config->kind)->units(config) - 1, (long long)config->batch,
                 (long long)config->tokens);
out:
    return st;
}

/* --- parameters */

#define NAME_ROOM 256

/* Returns whether one of the patterns, which are separated by blanks, matches the name. */
static bool matches(const char *patterns, const char *name)
{
    char pattern[NAME_ROOM];

    while (*(patterns += strspn(patterns, " ")) != '\0') {
        size_t length = strcspn(patterns, " ");

        if (length < sizeof(pattern)) {
            memcpy(pattern, patterns, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, name, 0) == 0)
                return true;
        }
        patterns += length;
    }
    return false;
}

static bool is_frozen(const dt_param_sink *sink, const char *name_format, va_list args)
{
    char name[NAME_ROOM];

    if (sink->frozen == NULL)
        return false;
    (void)vsnprintf(name, sizeof(name), name_format, args);
    return matches(sink->frozen, name);
}

void dt_param_add(dt_param_sink *sink, const dt_param_shape *shape, const char *name_format, ...)
{
    dt_param param = {.unit = sink->unit,
                      .ndim = shape->ndim,
                      .stored_rows = shape->stored_rows > 0 ? shape->stored_rows : shape->dim[0],
                      .elems = 1,
                      .init = shape->init,
                      .init_std = shape->init_std,
                      .decay = shape->ndim >= 2};
    int64_t *buffer_elems;
    va_list args;

    va_start(args, name_format);
    param.in_base = sink->adapted && !shape->of_adapter;
    param.trainable = !param.in_base && !is_frozen(sink, name_format, args);
    va_end(args);
    if (shape->joined && param.trainable != sink->trainable) {
        sink->splits = true;
        param.trainable = sink->trainable;
    }
    buffer_elems = param.trainable ? &sink->unit_elems : &sink->frozen_elems;
    param.offset_elems = shape->joined ? sink->unit_end : *buffer_elems;
    for (int i = 0; i < DT_PARAM_DIMS; i++) {
        param.dim[i] = i < shape->ndim ? shape->dim[i] : 1;
        param.elems = dt_size_times(param.elems, param.dim[i]);
    }
    param.held = dt_param_hold(param.dim, shape->cut, shape->key_heads, &sink->tensor);
    sink->elems = dt_size_plus(sink->elems, param.elems);
    sink->held_elems = dt_size_plus(sink->held_elems, param.held.elems);
    if (param.trainable) {
        sink->trained_elems = dt_size_plus(sink->trained_elems, param.elems);
        sink->trained_held_elems = dt_size_plus(sink->trained_held_elems, param.held.elems);
    }
    if (sink->each_matrix != NULL && dt_param_is_matrix(&param) &&
        (param.trainable || sink->each_frozen))
        sink->each_matrix(sink->self, &param);
    sink->unit_end = dt_size_plus(param.offset_elems, param.held.elems);
    *buffer_elems = dt_size_plus(sink->unit_end, 15) / 16 * 16;
    sink->trainable = param.trainable;
    if (sink->params != NULL) {
        va_start(args, name_format);
        param.name = dt_arena_vprintf(sink->arena, name_format, args);
        va_end(args);
        sink->params[sink->count] = param;
    }
    sink->count++;
}

static void add_unit(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    sink->unit = unit;
    sink->tensor = config->tensor;
    sink->frozen = config->frozen;
    sink->adapted = config->lora.rank > 0;
    sink->unit_elems = 0;
    sink->frozen_elems = 0;
    sink->unit_end = 0;
    dt_architecture_find(config->kind)->params(sink, config, unit);
}

int64_t dt_model_unit_elems(const dt_model_config *config, int unit)
{
    dt_param_sink sink = {0};

    add_unit(&sink, config, unit);
    return sink.unit_elems;
}

int64_t dt_model_unit_frozen_elems(const dt_model_config *config, int unit)
{
    dt_param_sink sink = {0};

    add_unit(&sink, config, unit);
    return sink.frozen_elems;
}

static void add_units(dt_param_sink *sink, const dt_model_config *config)
{
    int units = dt_architecture_find(config->kind)->units(config);

    for (int unit = 0; unit < units; unit++)
        add_unit(sink, config, unit);
}

/* Counts all units. */
static dt_param_sink count_params(const dt_model_config *config)
{
    dt_param_sink sink = {0};

    add_units(&sink, config);
    return sink;
}

int64_t dt_model_config_elems(const dt_model_config *config)
{
    return count_params(config).elems;
}

int64_t dt_model_config_held_elems(const dt_model_config *config)
{
    return count_params(config).held_elems;
}

int64_t dt_model_config_trained_elems(const dt_model_config *config)
{
    return count_params(config).trained_elems;
}

int64_t dt_model_config_trained_held_elems(const dt_model_config *config)
{
    return count_params(config).trained_held_elems;
}

void dt_model_each_product(const dt_model_config *config,
                           void (*each)(void *self, const dt_param *matrix), void *self)
{
    dt_param_sink sink = {.each_matrix = each, .each_frozen = true, .self = self};

    add_units(&sink, config);
}

void dt_model_each_matrix(const dt_model_config *config,
                          void (*each)(void *self, const dt_param *matrix), void *self)
{
    dt_param_sink sink = {.each_matrix = each, .self = self};

    add_units(&sink, config);
}

void dt_param_table_make(dt_param_table *out, const dt_model_config *config, dt_arena *arena)
{
    dt_param_sink sink = {.arena = arena};

    *out = (dt_param_table){.param_count = count_params(config).count,
                            .unit_count = dt_architecture_find(config->kind)->units(config)};
    out->params = dt_arena_alloc_array(arena, (size_t)out->param_count, sizeof(*out->params));
    out->units = dt_arena_alloc_array(arena, (size_t)out->unit_count, sizeof(*out->units));
    sink.params = out->params;
    for (int unit = 0; unit < out->unit_count; unit++) {
        dt_unit *row = &out->units[unit];

        row->first_param = sink.count;
        add_unit(&sink, config, unit);
        row->param_count = sink.count - row->first_param;
        row->elems = sink.unit_elems;
        row->frozen_elems = sink.frozen_elems;
    }
}

/* --- sums */

int64_t dt_size_times(int64_t a, int64_t b)
{
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

int64_t dt_size_plus(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t dt_model_batch_bytes(const dt_model_config *config)
{
    dt_input inputs[DT_INPUTS_MAX];
    int count = dt_architecture_find(config->kind)->inputs(inputs, config);
    int64_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes = dt_size_plus(bytes, dt_size_times(dt_size_times(config->batch, inputs[i].width),
                                                  (int64_t)dt_dtype_bytes(inputs[i].dtype)));
    return bytes;
}

const char *dt_model_flops_formula(const dt_model_config *config)
{
    return config->lora.rank > 0 ? "4 N, attention and the adapter"
                                 : dt_architecture_find(config->kind)->flops_formula;
}

double dt_model_flops_per_token(const dt_model_config *config)
{
    const dt_architecture *architecture = dt_architecture_find(config->kind);
    int units = architecture->units(config);
    double sum = 0;

    for (int unit = 0; unit < units; unit++) {
        dt_unit_flops flops = architecture->flops(config, unit);

        sum += flops.forward + flops.backward;
    }
    return sum;
}
