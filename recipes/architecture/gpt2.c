#include "recipes/architecture/gpt2.h"

#include <math.h>

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/published.h"

#include "base/banned.h"

#define INIT_STD 0.02

extern const dt_architecture dt_architecture_gpt2;
extern const dt_published dt_published_gpt2[];

/* --- config */

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    int64_t wanted = recipe->model.vocab > 0 ? recipe->model.vocab : vocab;

    out->gpt2 = (dt_gpt2_config){
        .layers = recipe->model.layers,
        .heads = recipe->model.heads,
        .embed = recipe->model.embed,
        .vocab = wanted,
        .vocab_padded = dt_vocab_pad(wanted),
        .context = recipe->batch.tokens,
        .dropout = recipe->model.dropout,
        .attention_dropout = recipe->model.attention_dropout,
        .activation = recipe->model.activation,
        .positions = recipe->model.positions,
        .scale_embedding = recipe->model.scale_embedding,
        .own_lm_head = !recipe->model.tied,
    };
}

static dt_status check(const dt_model_config *config, dt_error *err)
{
    const dt_gpt2_config *own = &config->gpt2;
    dt_status st = DT_OK;

    DT_TRY(dt_model_check_size("layers", own->layers, DT_BLOCKS_MAX, err));
    DT_TRY(dt_model_check_size("embed", own->embed, 1 << 20, err));
    DT_TRY(dt_model_check_size("heads", own->heads, own->embed, err));
    DT_TRY(dt_model_check_size("vocab", own->vocab, 1 << 24, err));
    DT_TRY(dt_model_check_size("context", own->context, 1 << 24, err));
    DT_TRY(dt_model_check_size("tokens", config->tokens, own->context, err));
    if (own->embed % own->heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'heads' (%lld) does not divide 'embed' (%lld); choose a divisor",
                 (long long)own->heads, (long long)own->embed);
    if (own->vocab_padded < own->vocab || own->vocab_padded % DT_VOCAB_MULTIPLE != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: a vocabulary of %lld is padded to %lld; expected the next multiple of %d",
                 (long long)own->vocab, (long long)own->vocab_padded, DT_VOCAB_MULTIPLE);
    DT_TRY(dt_model_check_dropout("dropout", own->dropout, err));
    DT_TRY(dt_model_check_dropout("attention_dropout", own->attention_dropout, err));
    if (own->positions == DT_POSITIONS_SINUSOIDAL && own->embed < 4)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: sinusoidal positions need an 'embed' of 4 or more, not %lld",
                 (long long)own->embed);
out:
    return st;
}

static int inputs(dt_input *out, const dt_model_config *config)
{
    out[DT_GPT2_TOKENS] = (dt_input){"tokens", DT_I32, config->tokens};
    out[DT_GPT2_TARGETS] = (dt_input){"targets", DT_I32, config->tokens};
    return DT_GPT2_INPUTS;
}

static int units(const dt_model_config *config)
{
    return (int)config->gpt2.layers + 1;
}

/* --- parameters */

/* A row of the table: sizes are in these units, so that one list serves every model. */
typedef enum size_of { NONE, C1, C3, C4, VOCAB, CONTEXT } size_of;

typedef struct param_row {
    const char *name;
    size_of rows, cols; /* cols NONE: one dimension */
    dt_init_kind init;
    bool residual; /* projects onto the residual stream: init scaled by 1/sqrt(2 layers) */
} param_row;

static const param_row root_shapes[DT_GPT2_ROOT_PARAMS] = {
    [DT_GPT2_WTE] = {"wte.weight", VOCAB, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_WPE] = {"wpe.weight", CONTEXT, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_LN_F_W] = {"ln_f.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_F_B] = {"ln_f.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_HEAD] = {"lm_head.weight", VOCAB, C1, DT_INIT_NORMAL, false},
};

static const param_row block_shapes[DT_GPT2_BLOCK_PARAMS] = {
    [DT_GPT2_LN_1_W] = {"ln_1.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_1_B] = {"ln_1.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_ATTN_W] = {"attn.c_attn.weight", C3, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_ATTN_B] = {"attn.c_attn.bias", C3, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_ATTN_PROJ_W] = {"attn.c_proj.weight", C1, C1, DT_INIT_NORMAL, true},
    [DT_GPT2_ATTN_PROJ_B] = {"attn.c_proj.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_LN_2_W] = {"ln_2.weight", C1, NONE, DT_INIT_ONE, false},
    [DT_GPT2_LN_2_B] = {"ln_2.bias", C1, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_FC_W] = {"mlp.c_fc.weight", C4, C1, DT_INIT_NORMAL, false},
    [DT_GPT2_FC_B] = {"mlp.c_fc.bias", C4, NONE, DT_INIT_ZERO, false},
    [DT_GPT2_MLP_PROJ_W] = {"mlp.c_proj.weight", C1, C4, DT_INIT_NORMAL, true},
    [DT_GPT2_MLP_PROJ_B] = {"mlp.c_proj.bias", C1, NONE, DT_INIT_ZERO, false},
};

static int64_t size_elems(const dt_gpt2_config *config, size_of size)
{
    switch (size) {
    case C1:
        return config->embed;
    case C3:
        return 3 * config->embed;
    case C4:
        return 4 * config->embed;
    case VOCAB:
        return config->vocab_padded;
    case CONTEXT:
        return config->context;
    case NONE:
        break;
    }
    return 1;
}

bool dt_gpt2_lacks(const dt_gpt2_config *config, int root_param)
{
    return (root_param == DT_GPT2_WPE && config->positions == DT_POSITIONS_SINUSOIDAL) ||
           (root_param == DT_GPT2_HEAD && !config->own_lm_head);
}

static void add(dt_param_sink *sink, const dt_gpt2_config *config, int unit, const param_row *row)
{
    double std = row->residual ? INIT_STD / sqrt(2.0 * (double)config->layers) : INIT_STD;
    dt_param_shape shape = {.ndim = row->cols == NONE ? 1 : 2,
                            .dim = {size_elems(config, row->rows), size_elems(config, row->cols)},
                            .stored_rows = row->rows == VOCAB ? config->vocab : 0,
                            .init = row->init,
                            .init_std = row->init == DT_INIT_NORMAL ? std : 0};

    if (unit == 0)
        dt_param_add(sink, &shape, "%s", row->name);
    else
        dt_param_add(sink, &shape, "h.%d.%s", unit - 1, row->name);
}

static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    const param_row *rows = unit == 0 ? root_shapes : block_shapes;
    int count = unit == 0 ? DT_GPT2_ROOT_PARAMS : DT_GPT2_BLOCK_PARAMS;

    for (int i = 0; i < count; i++)
        if (unit > 0 || !dt_gpt2_lacks(&config->gpt2, i))
            add(sink, &config->gpt2, unit, &rows[i]);
}

/* --- FLOPs of a token */

/* In all 6 N + 12 L C T (Chowdhery et al. 2022, appendix B). N counts the matrices that a token is
 * multiplied with: per block c_attn 3 C^2, c_proj C^2, c_fc 4 C^2, c_proj 4 C^2; the head once,
 * without its padding, whether it is the token embedding or a matrix of its own; not what is only
 * looked up: positions, and the token embedding beside an untied head. The second term is
 * attention's two products, the causal half counted whole as is usual. Backward is twice forward.
 * Computed again under full: all of a block but its last product, 8 of 24 C^2 FLOPs. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    double C = (double)config->gpt2.embed, T = (double)config->tokens;
    bool full = config->recompute == DT_RECOMPUTE_FULL;
    double forward = unit == 0 ? 2 * (double)config->gpt2.vocab * C : 24 * C * C + 4 * T * C;

    return (dt_unit_flops){.forward = forward,
                           .backward = 2 * forward,
                           .again = full && unit > 0 ? 16 * C * C + 4 * T * C : 0};
}

/* --- activations */

/* What a pass keeps per row: C in the compute type, and fp32 statistics. */
typedef struct row_cost {
    int64_t widths, stats;
} row_cost;

/* The table of engine/model/gpt2/model_int.h, where each line has its reason. Beside the blocks
 * stand the embedding, the final norm, a gradient, and the final norm's and the loss's statistics;
 * under full, one block as well. */
static row_cost row_cost_of(const dt_model_config *config)
{
    int64_t L = config->gpt2.layers, H = config->gpt2.heads;

    switch (config->recompute) {
    case DT_RECOMPUTE_SELECTIVE:
        return (row_cost){10 * L + 3, L * H + 7};
    case DT_RECOMPUTE_FULL:
        return (row_cost){L + 12, H + 7};
    case DT_RECOMPUTE_NONE:
        break;
    }
    return (row_cost){12 * L + 3, L * (4 + H) + 3};
}

/* N = B T rows; the larger of the blocks' scratch of 5 C, and a chunk of logits, at least one row,
 * at most all; sinusoidal positions T C. */
static int64_t activation_bytes(const dt_model_config *config)
{
    int64_t rows = dt_size_times(config->batch, config->tokens);
    int64_t width = config->gpt2.embed * (int64_t)dt_dtype_bytes(config->dtype);
    row_cost cost = row_cost_of(config);
    int64_t row = 4 * config->gpt2.vocab_padded, logits = dt_size_times(rows, row);
    int64_t scratch = dt_size_times(rows, 5 * width);
    int64_t kept = dt_size_times(rows, cost.widths * width + 4 * cost.stats);
    int64_t positions = config->gpt2.positions == DT_POSITIONS_SINUSOIDAL
                            ? dt_size_times(config->gpt2.context, width)
                            : 0;

    if (logits > DT_LOGITS_BYTES)
        logits = row > DT_LOGITS_BYTES ? row : DT_LOGITS_BYTES;
    return dt_size_plus(kept, dt_size_plus(logits > scratch ? logits : scratch, positions));
}

static const char *const reads[] = {
    "model.preset",
    "model.heads",
    "model.vocab",
    "model.dropout",
    "model.activation",
    "model.positions",
    "model.tied",
    "model.attention_dropout",
    "batch.tokens",
    "data.tokens",
    "model.scale_embedding",
    NULL,
};

const dt_architecture dt_architecture_gpt2 = {
    .name = "gpt2",
    .item = "token",
    .reads = reads,
    .configure = configure,
    .check = check,
    .inputs = inputs,
    .units = units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N + 12 L C T",
    .activation_bytes = activation_bytes,
    .published = dt_published_gpt2,
};
