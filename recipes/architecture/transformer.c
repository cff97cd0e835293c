#include "recipes/architecture/kinds.h"

#include <math.h>

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/decoder.h"

extern const dt_architecture dt_architecture_transformer;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- config */

static void configure(dt_model_config *out, const dt_recipe *recipe, int64_t vocab)
{
    int64_t source = recipe->model.source_vocab, layers = recipe->model.decoder_layers;

    if (recipe->batch.max_tokens > 0) /* rows of each side, for passes of any shape */
        out->batch = (recipe->batch.max_tokens + out->tokens - 1) / out->tokens;
    out->decoder = dt_decoder_configure(recipe, vocab);
    out->decoder.own_lm_head = !recipe->model.tied && !recipe->model.shared_embeddings;
    if (source == 0)
        source = out->decoder.vocab;
    out->transformer = (dt_transformer_config){
        .decoder_layers = layers > 0 ? layers : recipe->model.layers,
        .ffn = recipe->model.ffn,
        .source_vocab = source,
        .source_vocab_padded = dt_vocab_pad(source),
        .pad = recipe->model.pad,
        .activation = recipe->model.activation,
        .positions = recipe->model.positions,
        .norm = recipe->model.norm,
        .scale_embedding = recipe->model.scale_embedding,
        .shared_embeddings = recipe->model.shared_embeddings,
        .label_smoothing = recipe->model.label_smoothing,
    };
}

static dt_status check_vocabularies(const dt_model_config *config, dt_error *err)
{
    const dt_transformer_config *own = &config->transformer;
    const dt_decoder_config *decoder = &config->decoder;
    dt_status st = DT_OK;

    DT_TRY(dt_model_check_size("source_vocab", own->source_vocab, 1 << 24, err));
    if (own->source_vocab_padded != dt_vocab_pad(own->source_vocab))
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: a vocabulary of %lld is padded to %lld; expected the next multiple of %d",
                 (long long)own->source_vocab, (long long)own->source_vocab_padded,
                 DT_VOCAB_MULTIPLE);
    if (own->pad < 0 || own->pad >= own->source_vocab || own->pad >= decoder->vocab)
        DT_THROW(err, DT_ERR_RECIPE, "model: 'pad' is %lld; expected an id of both vocabularies",
                 (long long)own->pad);
    if (own->shared_embeddings && own->source_vocab != decoder->vocab)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: with 'shared_embeddings' source and target have one vocabulary, but the "
                 "vocabularies are %lld and %lld",
                 (long long)own->source_vocab, (long long)decoder->vocab);
    if (own->shared_embeddings && decoder->own_lm_head)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: with 'shared_embeddings' the output head is the embedding and cannot be "
                 "untied");
out:
    return st;
}

static dt_status check(const dt_model_config *config, dt_error *err)
{
    const dt_transformer_config *own = &config->transformer;
    const dt_decoder_config *decoder = &config->decoder;
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_check(config, err));
    DT_TRY(dt_model_check_size("decoder_layers", own->decoder_layers, DT_BLOCKS_MAX, err));
    DT_TRY(dt_model_check_size("layers and decoder_layers", decoder->layers + own->decoder_layers,
                               DT_BLOCKS_MAX, err));
    DT_TRY(dt_model_check_size("ffn", own->ffn, 1 << 20, err));
    DT_TRY(check_vocabularies(config, err));
    DT_TRY(dt_model_check_dropout("label_smoothing", own->label_smoothing, err));
    if (decoder->embed % decoder->heads != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: 'heads' (%lld) does not divide 'embed' (%lld); choose a divisor",
                 (long long)decoder->heads, (long long)decoder->embed);
    if (own->positions == DT_POSITIONS_SINUSOIDAL && decoder->embed < 4)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: sinusoidal positions need an 'embed' of 4 or more, not %lld",
                 (long long)decoder->embed);
out:
    return st;
}

static int inputs(dt_input *out, const dt_model_config *config)
{
    out[DT_TRANSFORMER_SOURCE] = (dt_input){"source", DT_I32, config->tokens};
    out[DT_TRANSFORMER_PREVIOUS] = (dt_input){"previous", DT_I32, config->tokens};
    out[DT_TRANSFORMER_TARGETS] = (dt_input){"targets", DT_I32, config->tokens};
    return DT_TRANSFORMER_INPUTS;
}

static int units(const dt_model_config *config)
{
    return (int)(config->decoder.layers + config->transformer.decoder_layers) + 1;
}

static bool is_decoder(const dt_model_config *config, int unit)
{
    return unit > config->decoder.layers;
}

/* --- parameters */

typedef enum extent { NONE, EMBED, FFN, VOCAB, SOURCE_VOCAB, CONTEXT } extent;

typedef struct param_row {
    const char *name; /* in a block's unit after "encoder.layers.3." */
    extent rows, cols;
    dt_init_kind init;
    bool joined; /* as in dt_param_shape: joined to the previous row */
    double
        variance; /* of a matrix: divided by the mean of its rows and columns; of an embedding: divided by C */
    dt_param_cut cut; /* how tensor ranks divide it */
} param_row;

static const param_row root_rows[DT_TRANSFORMER_ROOT_PARAMS] = {
    [DT_TRANSFORMER_SOURCE_EMBED] = {"encoder.embed_tokens.weight", SOURCE_VOCAB, EMBED,
                                     DT_INIT_NORMAL, false, 1, DT_CUT_ROWS},
    [DT_TRANSFORMER_SOURCE_POSITIONS] = {"encoder.embed_positions.weight", CONTEXT, EMBED,
                                         DT_INIT_NORMAL, false, 1, DT_CUT_NONE},
    [DT_TRANSFORMER_EMBED] = {"decoder.embed_tokens.weight", VOCAB, EMBED, DT_INIT_NORMAL, false, 1,
                              DT_CUT_ROWS},
    [DT_TRANSFORMER_POSITIONS] = {"decoder.embed_positions.weight", CONTEXT, EMBED, DT_INIT_NORMAL,
                                  false, 1, DT_CUT_NONE},
    [DT_TRANSFORMER_ENCODER_NORM_W] = {"encoder.layer_norm.weight", EMBED, NONE, DT_INIT_ONE, false,
                                       0, DT_CUT_NONE},
    [DT_TRANSFORMER_ENCODER_NORM_B] = {"encoder.layer_norm.bias", EMBED, NONE, DT_INIT_ZERO, false,
                                       0, DT_CUT_NONE},
    [DT_TRANSFORMER_DECODER_NORM_W] = {"decoder.layer_norm.weight", EMBED, NONE, DT_INIT_ONE, false,
                                       0, DT_CUT_NONE},
    [DT_TRANSFORMER_DECODER_NORM_B] = {"decoder.layer_norm.bias", EMBED, NONE, DT_INIT_ZERO, false,
                                       0, DT_CUT_NONE},
    [DT_TRANSFORMER_HEAD] = {"decoder.output_projection.weight", VOCAB, EMBED, DT_INIT_NORMAL,
                             false, 1, DT_CUT_ROWS},
};

/* Queries, keys and values are initialised as one matrix of three, with half the variance. */
static const param_row block_rows[DT_TRANSFORMER_BLOCK_PARAMS] = {
    [DT_TRANSFORMER_Q_W] = {"self_attn.q_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, false, 0.5,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_K_W] = {"self_attn.k_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, true, 0.5,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_V_W] = {"self_attn.v_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, true, 0.5,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_Q_B] = {"self_attn.q_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, 0,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_K_B] = {"self_attn.k_proj.bias", EMBED, NONE, DT_INIT_ZERO, true, 0,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_V_B] = {"self_attn.v_proj.bias", EMBED, NONE, DT_INIT_ZERO, true, 0,
                            DT_CUT_ROWS},
    [DT_TRANSFORMER_OUT_W] = {"self_attn.out_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, false, 1,
                              DT_CUT_COLUMNS},
    [DT_TRANSFORMER_OUT_B] = {"self_attn.out_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, 0,
                              DT_CUT_NONE},
    [DT_TRANSFORMER_SELF_NORM_W] = {"self_attn_layer_norm.weight", EMBED, NONE, DT_INIT_ONE, false,
                                    0, DT_CUT_NONE},
    [DT_TRANSFORMER_SELF_NORM_B] = {"self_attn_layer_norm.bias", EMBED, NONE, DT_INIT_ZERO, false,
                                    0, DT_CUT_NONE},
    [DT_TRANSFORMER_CROSS_Q_W] = {"encoder_attn.q_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, false,
                                  0.5, DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_Q_B] = {"encoder_attn.q_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, 0,
                                  DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_K_W] = {"encoder_attn.k_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, false,
                                  0.5, DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_V_W] = {"encoder_attn.v_proj.weight", EMBED, EMBED, DT_INIT_NORMAL, true,
                                  0.5, DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_K_B] = {"encoder_attn.k_proj.bias", EMBED, NONE, DT_INIT_ZERO, false, 0,
                                  DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_V_B] = {"encoder_attn.v_proj.bias", EMBED, NONE, DT_INIT_ZERO, true, 0,
                                  DT_CUT_ROWS},
    [DT_TRANSFORMER_CROSS_OUT_W] = {"encoder_attn.out_proj.weight", EMBED, EMBED, DT_INIT_NORMAL,
                                    false, 1, DT_CUT_COLUMNS},
    [DT_TRANSFORMER_CROSS_OUT_B] = {"encoder_attn.out_proj.bias", EMBED, NONE, DT_INIT_ZERO, false,
                                    0, DT_CUT_NONE},
    [DT_TRANSFORMER_CROSS_NORM_W] = {"encoder_attn_layer_norm.weight", EMBED, NONE, DT_INIT_ONE,
                                     false, 0, DT_CUT_NONE},
    [DT_TRANSFORMER_CROSS_NORM_B] = {"encoder_attn_layer_norm.bias", EMBED, NONE, DT_INIT_ZERO,
                                     false, 0, DT_CUT_NONE},
    [DT_TRANSFORMER_FC_W] = {"fc1.weight", FFN, EMBED, DT_INIT_NORMAL, false, 1, DT_CUT_ROWS},
    [DT_TRANSFORMER_FC_B] = {"fc1.bias", FFN, NONE, DT_INIT_ZERO, false, 0, DT_CUT_ROWS},
    [DT_TRANSFORMER_PROJ_W] = {"fc2.weight", EMBED, FFN, DT_INIT_NORMAL, false, 1, DT_CUT_COLUMNS},
    [DT_TRANSFORMER_PROJ_B] = {"fc2.bias", EMBED, NONE, DT_INIT_ZERO, false, 0, DT_CUT_NONE},
    [DT_TRANSFORMER_FFN_NORM_W] = {"final_layer_norm.weight", EMBED, NONE, DT_INIT_ONE, false, 0,
                                   DT_CUT_NONE},
    [DT_TRANSFORMER_FFN_NORM_B] = {"final_layer_norm.bias", EMBED, NONE, DT_INIT_ZERO, false, 0,
                                   DT_CUT_NONE},
};

static bool root_lacks(const dt_model_config *config, int param)
{
    const dt_transformer_config *own = &config->transformer;

    switch (param) {
    case DT_TRANSFORMER_SOURCE_EMBED:
        return own->shared_embeddings;
    case DT_TRANSFORMER_SOURCE_POSITIONS:
    case DT_TRANSFORMER_POSITIONS:
        return own->positions == DT_POSITIONS_SINUSOIDAL;
    case DT_TRANSFORMER_ENCODER_NORM_W:
    case DT_TRANSFORMER_ENCODER_NORM_B:
    case DT_TRANSFORMER_DECODER_NORM_W:
    case DT_TRANSFORMER_DECODER_NORM_B:
        return own->norm == DT_NORM_POST;
    case DT_TRANSFORMER_HEAD:
        return !config->decoder.own_lm_head;
    default:
        return false;
    }
}

bool dt_transformer_lacks(const dt_model_config *config, int unit, int param)
{
    if (unit == 0)
        return root_lacks(config, param);
    return !is_decoder(config, unit) && param >= DT_TRANSFORMER_CROSS_Q_W &&
           param <= DT_TRANSFORMER_CROSS_NORM_B;
}

int64_t dt_transformer_ffn(const dt_model_config *config)
{
    return dt_decoder_share(config, config->transformer.ffn);
}

int64_t dt_transformer_attended(const dt_model_config *config)
{
    return dt_decoder_share(config, config->decoder.embed);
}

static int64_t elems_of(const dt_model_config *config, extent size)
{
    switch (size) {
    case NONE:
        return 1;
    case EMBED:
        return config->decoder.embed;
    case FFN:
        return config->transformer.ffn;
    case VOCAB:
        return config->decoder.vocab_padded;
    case SOURCE_VOCAB:
        return config->transformer.source_vocab_padded;
    case CONTEXT:
        return config->decoder.context;
    }
    return 1;
}

static int64_t stored_rows(const dt_model_config *config, extent size)
{
    return size == VOCAB          ? config->decoder.vocab
           : size == SOURCE_VOCAB ? config->transformer.source_vocab
                                  : 0;
}

/* Embeddings and head: 1/sqrt(C), as in fairseq; matrices as in Glorot and Bengio 2010. */
static double std_of(const dt_param_shape *shape, const param_row *row, int unit)
{
    double mean = unit == 0 ? (double)shape->dim[1] : (double)(shape->dim[0] + shape->dim[1]) / 2;

    return row->init == DT_INIT_NORMAL ? sqrt(row->variance / mean) : 0;
}

static void params(dt_param_sink *sink, const dt_model_config *config, int unit)
{
    const param_row *rows = unit == 0 ? root_rows : block_rows;
    int count = unit == 0 ? DT_TRANSFORMER_ROOT_PARAMS : DT_TRANSFORMER_BLOCK_PARAMS;
    int first = is_decoder(config, unit) ? (int)config->decoder.layers + 1 : 1;

    for (int i = 0; i < count; i++) {
        const param_row *row = &rows[i];
        dt_param_shape shape = {.ndim = row->cols == NONE ? 1 : 2,
                                .dim = {elems_of(config, row->rows), elems_of(config, row->cols)},
                                .stored_rows = stored_rows(config, row->rows),
                                .joined = row->joined,
                                .init = row->init,
                                .cut = row->cut};

        if (dt_transformer_lacks(config, unit, i))
            continue;
        shape.init_std = std_of(&shape, row, unit);
        if (unit == 0)
            dt_param_add(sink, &shape, "%s", row->name);
        else
            dt_param_add(sink, &shape, "%s.layers.%d.%s",
                         is_decoder(config, unit) ? "decoder" : "encoder", unit - first, row->name);
    }
}

/* --- FLOPs of a token */

/* 6 N + 12 (Le + 2 Ld) C T, for a target and its source token. N counts the
 * matrices that one of the two is multiplied with (per block q, k, v and out 4 C^2, the same again of
 * cross attention, fc1 and fc2 2 C F; the head once, without its padding), the second term attention's
 * products, all T keys counted. Backward is twice forward. */
static dt_unit_flops flops(const dt_model_config *config, int unit)
{
    double C = (double)config->decoder.embed, T = (double)config->tokens;
    double attention = 8 * C * C + 4 * T * C, ffn = 4 * C * (double)config->transformer.ffn;

    if (unit == 0)
        return dt_decoder_flops(config, 2 * (double)config->decoder.vocab * C, 0);
    ffn += is_decoder(config, unit) ? 2 * attention : attention;
    return dt_decoder_flops(config, ffn, ffn);
}

/* --- activations: the table of engine/model/transformer/model_int.h */

/* The gradient of the encoder's output in fp32, which tensor ranks sum after the last block of the decoder. */
static int64_t encoded_terms(const dt_model_config *config)
{
    return dt_tensor_ranks(&config->tensor) > 1 && config->dtype != DT_F32 ? config->decoder.embed
                                                                           : 0;
}

/* Returns the cost of a row of each side. */
static dt_row_cost row_cost(const dt_model_config *config, bool backward)
{
    int64_t Le = config->decoder.layers, Ld = config->transformer.decoder_layers;
    int64_t C = config->decoder.embed, H = dt_decoder_heads(config);
    int64_t A = dt_transformer_attended(config), F = dt_transformer_ffn(config);
    int64_t pre = config->transformer.norm == DT_NORM_PRE, post = !pre;
    int64_t ends = (2 + 2 * pre) * C, end_stats = 2 + 4 * pre, one_stats = 6 + 2 * H;
    int64_t scratch = larger(F, 3 * A) + (2 + post) * C, gradients = 3 * C;
    int64_t stats = Le * (4 + H) + Ld * one_stats;

    if (!backward)
        return (dt_row_cost){ends + pre * C + 8 * A + F, end_stats + one_stats, F + C, false};
    end_stats += encoded_terms(config);
    switch (config->recompute) {
    case DT_RECOMPUTE_SELECTIVE:
        return (dt_row_cost){ends + gradients + C + Le * ((3 - pre) * C + 4 * A + F) +
                                 Ld * ((4 - pre) * C + 8 * A + F),
                             end_stats + stats, scratch, false};
    case DT_RECOMPUTE_FULL:
        return (dt_row_cost){ends + gradients + C + (Le + Ld) * C + (2 + post) * C + 8 * A + F,
                             end_stats + one_stats, scratch, false};
    case DT_RECOMPUTE_NONE:
    case DT_RECOMPUTE_NOTHING:
        break;
    }
    F *= dt_model_keeps_all(config) ? 2 : 1;
    return (dt_row_cost){ends + gradients + Le * (4 * C + 4 * A + F) + Ld * (6 * C + 8 * A + F),
                         end_stats + stats, scratch, false};
}

/* Bytes that translations keep: keys and values of every hypothesis and of the sources; indices and lengths; and the
 * logits that tensor ranks gather. */
static int64_t growth(const dt_model_config *config)
{
    int64_t rows = dt_size_times(config->transformer.decoder_layers, config->decoder.context);
    int64_t sentences = dt_translations_sentences(config);
    int64_t versions = dt_size_times(sentences, dt_translations_versions(config));
    int64_t elems = dt_size_times(dt_size_times(rows, dt_size_plus(versions, sentences)),
                                  2 * dt_transformer_attended(config));
    int64_t gathered = dt_tensor_ranks(&config->tensor) > 1
                           ? dt_size_times(versions, config->decoder.vocab_padded)
                           : 0;

    return dt_size_plus(dt_size_times(elems, (int64_t)dt_dtype_bytes(config->dtype)),
                        4 * (2 * versions + sentences + gathered));
}

/* Returns a decoder's activations, plus sinusoidal positions, T C, plus the KV cache of generation. */
static int64_t activation_bytes(const dt_model_config *config)
{
    int64_t kept = config->incremental ? growth(config) : 0;
    int64_t width = config->decoder.embed * (int64_t)dt_dtype_bytes(config->dtype);
    int64_t positions = config->transformer.positions == DT_POSITIONS_SINUSOIDAL
                            ? dt_size_times(config->decoder.context, width)
                            : 0;

    return dt_size_plus(dt_size_plus(dt_decoder_activation_bytes(config, row_cost), positions),
                        kept);
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
    "model.scale_embedding",
    "model.ffn",
    "model.decoder_layers",
    "model.norm",
    "model.source_vocab",
    "model.pad",
    "model.shared_embeddings",
    "model.label_smoothing",
    "batch.tokens",
    "batch.max_tokens",
    "data.source",
    "data.target",
    "data.codes",
    "data.too_long",
    "data.empty",
    "evaluate.bleu",
    "evaluate.beam",
    NULL,
};

static int64_t ffn_of(const dt_model_config *config)
{
    return config->transformer.ffn;
}

static int64_t source_vocab_of(const dt_model_config *config)
{
    return config->transformer.source_vocab_padded;
}

/* Recompute full repeats the last sum of a block only if a norm follows it. The first block of the decoder also sums
 * the gradient of the encoder's output. */
static dt_unit_sums sums(const dt_model_config *config, int unit)
{
    int branches = is_decoder(config, unit) ? 3 : 2,
        post = config->transformer.norm == DT_NORM_POST;
    bool encoded = unit == config->decoder.layers + 1;

    return unit == 0 ? (dt_unit_sums){.forward = 2, .backward = 1}
                     : (dt_unit_sums){branches, branches + (encoded ? 1 : 0), branches - 1 + post};
}

static const dt_divided_size divided[] = {
    {"model.heads", dt_decoder_whole_heads, false, 1},
    {"model.ffn", ffn_of, false, 1},
    {"model.vocab", dt_decoder_whole_vocab, false, DT_VOCAB_MULTIPLE},
    {"model.source_vocab", source_vocab_of, false, DT_VOCAB_MULTIPLE},
    {0},
};

const dt_architecture dt_architecture_transformer = {
    .name = "transformer",
    .item = "token",
    .reads = reads,
    .reads_pairs = true,
    .configure = configure,
    .check = check,
    .inputs = inputs,
    .units = units,
    .params = params,
    .flops = flops,
    .flops_formula = "6 N + 12 (Le + 2 Ld) C T",
    .activation_bytes = activation_bytes,
    .divided = divided,
    .sums = sums,
};
