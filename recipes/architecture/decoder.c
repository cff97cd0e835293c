#include "recipes/architecture/decoder.h"

#include <math.h>
#include <string.h>

/* --- config and batches */

dt_decoder_config dt_decoder_configure(const dt_recipe *recipe, int64_t vocab)
{
    int64_t wanted = recipe->model.vocab > 0 ? recipe->model.vocab : vocab;

    return (dt_decoder_config){
        .layers = recipe->model.layers,
        .heads = recipe->model.heads,
        .embed = recipe->model.embed,
        .vocab = wanted,
        .vocab_padded = dt_vocab_pad(wanted),
        .context = recipe->batch.tokens,
        .dropout = recipe->model.dropout,
        .attention_dropout = recipe->model.attention_dropout,
        .own_lm_head = !recipe->model.tied,
        .documents = dt_recipe_separates(recipe),
        .weights = recipe->data.format == DT_DATA_CHAT,
        .beta = recipe->dpo.beta,
    };
}

dt_status dt_decoder_check(const dt_model_config *config, dt_error *err)
{
    const dt_decoder_config *own = &config->decoder;
    dt_status st = DT_OK;

    DT_TRY(dt_model_check_size("layers", own->layers, DT_BLOCKS_MAX, err));
    DT_TRY(dt_model_check_size("embed", own->embed, 1 << 20, err));
    DT_TRY(dt_model_check_size("heads", own->heads, 1 << 16, err));
    DT_TRY(dt_model_check_size("vocab", own->vocab, 1 << 24, err));
    DT_TRY(dt_model_check_size("context", own->context, 1 << 24, err));
    DT_TRY(dt_model_check_size("tokens", config->tokens, own->context, err));
    if (own->vocab_padded < own->vocab || own->vocab_padded % DT_VOCAB_MULTIPLE != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "model: a vocabulary of %lld is padded to %lld; expected the next multiple of %d",
                 (long long)own->vocab, (long long)own->vocab_padded, DT_VOCAB_MULTIPLE);
    DT_TRY(dt_model_check_dropout("dropout", own->dropout, err));
    DT_TRY(dt_model_check_dropout("attention_dropout", own->attention_dropout, err));
out:
    return st;
}

int64_t dt_decoder_share(const dt_model_config *config, int64_t size)
{
    return size / dt_tensor_ranks(&config->tensor);
}

int64_t dt_decoder_heads(const dt_model_config *config)
{
    return dt_decoder_share(config, config->decoder.heads);
}

int64_t dt_decoder_vocab_rows(const dt_model_config *config)
{
    return dt_decoder_share(config, config->decoder.vocab_padded);
}

int64_t dt_decoder_whole_heads(const dt_model_config *config)
{
    return config->decoder.heads;
}

int64_t dt_decoder_whole_vocab(const dt_model_config *config)
{
    return config->decoder.vocab_padded;
}

/* Recompute full leaves out the last product of a block. */
dt_unit_sums dt_decoder_sums(const dt_model_config *config, int unit)
{
    (void)config;
    return unit == 0 ? (dt_unit_sums){.forward = 1, .backward = 1}
                     : (dt_unit_sums){.forward = 2, .backward = 2, .again = 1};
}

int dt_decoder_inputs(dt_input *out, const dt_model_config *config)
{
    out[DT_DECODER_TOKENS] = (dt_input){"tokens", DT_I32, config->tokens};
    out[DT_DECODER_TARGETS] = (dt_input){"targets", DT_I32, config->tokens};
    if (!config->decoder.documents)
        return DT_DECODER_STARTS;
    out[DT_DECODER_STARTS] = (dt_input){"starts", DT_I32, config->tokens};
    out[DT_DECODER_POSITIONS] = (dt_input){"positions", DT_I32, config->tokens};
    if (!config->decoder.weights)
        return DT_DECODER_WEIGHTS;
    out[DT_DECODER_WEIGHTS] = (dt_input){"weights", DT_F32, config->tokens};
    if (config->decoder.beta == 0)
        return DT_DECODER_REFERENCE;
    out[DT_DECODER_REFERENCE] = (dt_input){"reference", DT_F32, 1};
    return DT_DECODER_REFERENCE + 1;
}

int dt_decoder_units(const dt_model_config *config)
{
    return (int)config->decoder.layers + 1;
}

/* --- parameters */

static int64_t size_of(const dt_model_config *config, const dt_param_rows *rows, int size)
{
    switch (size) {
    case DT_SIZE_NONE:
        return 1;
    case DT_SIZE_EMBED:
        return config->decoder.embed;
    case DT_SIZE_VOCAB:
        return config->decoder.vocab_padded;
    case DT_SIZE_CONTEXT:
        return config->decoder.context;
    default:
        return rows->size(config, size);
    }
}

static double std_of(const dt_model_config *config, const dt_param_rows *rows,
                     const dt_param_row *row)
{
    if (row->init != DT_INIT_NORMAL)
        return 0;
    return row->residual ? rows->init_std / sqrt(2.0 * (double)config->decoder.layers)
                         : rows->init_std;
}

static void add(dt_param_sink *sink, const dt_model_config *config, int unit,
                const dt_param_rows *rows, const dt_param_row *row)
{
    dt_param_shape shape = {
        .ndim = row->cols == DT_SIZE_NONE ? 1 : 2,
        .dim = {size_of(config, rows, row->rows), size_of(config, rows, row->cols)},
        .stored_rows = row->rows == DT_SIZE_VOCAB ? config->decoder.vocab : 0,
        .joined = row->joined,
        .init = rows->init != NULL ? rows->init(config, row) : row->init,
        .init_std = std_of(config, rows, row),
        .cut = row->cut,
        .key_heads = row->cut == DT_CUT_KEYS ? rows->key_heads(config) : 0,
    };

    if (unit == 0)
        dt_param_add(sink, &shape, "%s", row->name);
    else
        dt_param_add(sink, &shape, "%s%d.%s", rows->block_prefix, unit - 1, row->name);
}

static void add_adapters(dt_param_sink *sink, const dt_model_config *config, int unit,
                         const dt_param_rows *rows);

void dt_decoder_params(dt_param_sink *sink, const dt_model_config *config, int unit,
                       const dt_param_rows *rows)
{
    const dt_param_row *all = unit == 0 ? rows->root : rows->block;
    int count = unit == 0 ? rows->root_count : rows->block_count;

    for (int i = 0; i < count; i++)
        if (!rows->lacks(config, unit, i))
            add(sink, config, unit, rows, &all[i]);
    if (unit > 0 && config->lora.rank > 0)
        add_adapters(sink, config, unit, rows);
}

/* --- adapters */

static bool is_target(const dt_model_config *config, const dt_param_row *row)
{
    const dt_lora_target *targets = dt_architecture_find(config->kind)->targets;

    for (int i = 0; targets != NULL && targets[i].name != NULL; i++)
        if (strcmp(targets[i].weight, row->name) == 0)
            return (config->lora.targets >> i & 1) != 0;
    return false;
}

static dt_param_held held_of(const dt_model_config *config, const dt_param_rows *rows,
                             const dt_param_row *row)
{
    int64_t dim[DT_PARAM_DIMS] = {size_of(config, rows, row->rows),
                                  size_of(config, rows, row->cols), 1, 1};

    return dt_param_hold(dim, row->cut, row->cut == DT_CUT_KEYS ? rows->key_heads(config) : 0,
                         &config->tensor);
}

bool dt_lora_join_of(dt_lora_join *out, const dt_model_config *config, int row, int last)
{
    const dt_param_rows *rows = dt_architecture_find(config->kind)->rows;

    *out = (dt_lora_join){.first = row, .last = last};
    if (config->lora.rank == 0)
        return false;
    for (; row <= last; row++) {
        dt_param_held held = held_of(config, rows, &rows->block[row]);

        if (is_target(config, &rows->block[row])) {
            DT_ASSERT(out->count < DT_LORA_JOINED_MOST);
            out->row[out->count] = row;
            out->start[out->count] = out->all_out;
            out->out[out->count++] = held.dim[0];
        }
        out->all_out += held.dim[0];
        out->in = held.dim[1];
    }
    return out->count > 0;
}

bool dt_lora_join_next(dt_lora_join *out, const dt_model_config *config, int *next)
{
    const dt_param_rows *rows = dt_architecture_find(config->kind)->rows;

    while (config->lora.rank > 0 && *next < rows->block_count) {
        int first = *next, last = first;

        if (rows->block[first].cols == DT_SIZE_NONE) {
            ++*next;
            continue;
        }
        while (last + 1 < rows->block_count && rows->block[last + 1].joined)
            last++;
        *next = last + 1;
        if (dt_lora_join_of(out, config, first, last))
            return true;
    }
    return false;
}

/* Adds A (or B) of a row. */
static void add_adapter(dt_param_sink *sink, const dt_model_config *config, int unit,
                        const dt_param_rows *rows, const dt_param_row *row, bool is_a, bool joined)
{
    int64_t out = size_of(config, rows, row->rows), in = size_of(config, rows, row->cols);
    bool by_columns = row->cut == DT_CUT_COLUMNS;
    dt_param_shape shape = {
        .ndim = 2,
        .dim = {is_a ? config->lora.rank : out, is_a ? in : config->lora.rank},
        .joined = joined,
        /* as PEFT: Kaiming's uniform numbers with a = sqrt(5) for A */
        .init = is_a ? DT_INIT_UNIFORM : DT_INIT_ZERO,
        .init_std = is_a ? 1 / sqrt((double)in) : 0,
        .cut = is_a == by_columns ? row->cut : DT_CUT_SUMMED,
        .key_heads = row->cut == DT_CUT_KEYS ? rows->key_heads(config) : 0,
        .of_adapter = true,
    };

    dt_param_add(sink, &shape, "%s%d.%.*s.lora_%c.weight", rows->block_prefix, unit - 1,
                 (int)(strlen(row->name) - strlen(".weight")), row->name, is_a ? 'A' : 'B');
}

static void add_adapters(dt_param_sink *sink, const dt_model_config *config, int unit,
                         const dt_param_rows *rows)
{
    dt_lora_join join;

    for (int next = 0; dt_lora_join_next(&join, config, &next);)
        for (int i = 0; i < 2 * join.count; i++)
            add_adapter(sink, config, unit, rows, &rows->block[join.row[i % join.count]],
                        i<join.count, i % join.count> 0);
}

static int64_t larger(int64_t a, int64_t b);

dt_lora_sizes dt_lora_sizes_of(const dt_model_config *config)
{
    dt_lora_sizes sizes = {0};
    dt_lora_join join;

    for (int next = 0; dt_lora_join_next(&join, config, &next);) {
        int64_t ranks = join.count * config->lora.rank;

        sizes.ranks = larger(sizes.ranks, ranks);
        sizes.out = larger(sizes.out, join.all_out);
        sizes.in = larger(sizes.in, join.in);
        sizes.product = larger(sizes.product, dt_size_times(join.all_out, ranks));
        sizes.table = dt_size_plus(
            sizes.table, join.last > join.first ? dt_size_times(join.all_out, join.count) : 0);
    }
    sizes.table = dt_size_plus(sizes.table, sizes.out);
    return sizes;
}

int64_t dt_lora_term_rows(const dt_model_config *config, int64_t rows)
{
    dt_lora_sizes sizes = dt_lora_sizes_of(config);
    int64_t row_bytes = dt_size_times(4, larger(sizes.out, sizes.in));
    int64_t most = larger(1, row_bytes > 0 ? DT_LORA_TERM_BYTES / row_bytes : 1);

    return rows < most ? rows : most;
}

/* What dt_decoder_activation_bytes adds for adapters (engine/model/adapter.h). */
static int64_t adapter_bytes(const dt_model_config *config, int64_t rows, bool backward)
{
    dt_lora_sizes sizes = dt_lora_sizes_of(config);
    int64_t type_bytes = (int64_t)dt_dtype_bytes(config->dtype);
    int64_t wider = larger(sizes.out, sizes.in);
    int64_t term_bytes = dt_tensor_ranks(&config->tensor) > 1 ? 4 : type_bytes;
    int64_t bytes = 0;

    if (config->lora.rank == 0)
        return 0;
    bytes = dt_size_plus(dt_size_times(4, sizes.table), dt_size_times(type_bytes, sizes.product));
    bytes = dt_size_plus(bytes, dt_size_times(dt_size_times(type_bytes, sizes.ranks), rows));
    bytes = dt_size_plus(
        bytes, dt_size_times(dt_size_times(term_bytes, wider), dt_lora_term_rows(config, rows)));
    if (!backward)
        return bytes;
    bytes = dt_size_plus(bytes, dt_size_times(4, sizes.product));
    bytes = dt_size_plus(bytes, dt_size_times(dt_size_times(type_bytes, sizes.ranks), rows));
    if (config->lora.dropout > 0)
        bytes = dt_size_plus(bytes, dt_size_times(dt_size_times(type_bytes, sizes.in), rows));
    return bytes;
}

/* --- activations */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Statistics of a row for sums over tensor ranks (engine/model/decoder/memory.c): the cross entropy's numbers of this
 * rank and of each rank, and unless the compute type is fp32 the fp32 terms of a sum. */
static int64_t sum_stats(const dt_model_config *config)
{
    int64_t ranks = dt_tensor_ranks(&config->tensor);

    if (ranks == 1)
        return 0;
    return DT_VOCAB_NUMBERS * (1 + ranks) + (config->dtype == DT_F32 ? 0 : config->decoder.embed);
}

int64_t dt_decoder_logits_bytes(const dt_model_config *config)
{
    int64_t rows = dt_size_times(config->batch, config->tokens);
    int64_t row = dt_decoder_vocab_rows(config) * (int64_t)dt_dtype_bytes(config->dtype);

    if (config->inference || !dt_model_keeps_all(config))
        return DT_LOGITS_BYTES;
    return larger(DT_LOGITS_BYTES, dt_size_times(rows / 4 + (rows % 4 != 0), row));
}

/* N = B T rows. Without backward logits are fp32. */
static int64_t pass_bytes(const dt_model_config *config, bool backward, dt_row_cost cost)
{
    int64_t rows = dt_size_times(config->batch, config->tokens);
    int64_t type_bytes = (int64_t)dt_dtype_bytes(config->dtype);
    int64_t row = dt_decoder_vocab_rows(config) * (backward ? type_bytes : 4);
    int64_t logits = dt_size_times(rows, row), most = dt_decoder_logits_bytes(config);
    int64_t scratch = dt_size_times(rows, cost.scratch * type_bytes);

    if (logits > most)
        logits = larger(row, most / row * row);
    if (cost.two_logits)
        logits = dt_size_times(logits, 2);
    cost.stats += sum_stats(config) + (backward && config->decoder.beta > 0 ? 1 : 0);
    return dt_size_plus(
        dt_size_times(rows, cost.widths * type_bytes + 4 * cost.stats),
        dt_size_plus(larger(logits, scratch), adapter_bytes(config, rows, backward)));
}

int64_t dt_decoder_activation_bytes(const dt_model_config *config,
                                    dt_row_cost (*cost)(const dt_model_config *config,
                                                        bool backward))
{
    int64_t with = config->inference ? 0 : pass_bytes(config, true, cost(config, true));

    return larger(with, pass_bytes(config, false, cost(config, false)));
}

/* --- FLOPs */

dt_unit_flops dt_decoder_flops(const dt_model_config *config, double forward, double again)
{
    bool full = config->recompute == DT_RECOMPUTE_FULL;

    return (dt_unit_flops){.forward = forward, .backward = 2 * forward, .again = full ? again : 0};
}

/* Backward computes dropout(x) A^T again, and three more products with A and two with B. */
dt_unit_flops dt_decoder_lora_flops(const dt_model_config *config, int unit, dt_unit_flops whole,
                                    double attention)
{
    dt_model_config all = *config;
    dt_lora_join join;

    if (config->lora.rank == 0)
        return whole;
    all.tensor = (dt_tensor_place){0};
    whole.backward = whole.forward + attention;
    for (int next = 0; unit > 0 && dt_lora_join_next(&join, &all, &next);) {
        double rank = (double)(join.count * config->lora.rank);
        double a = 2 * rank * (double)join.in, b = 2 * rank * (double)join.all_out;

        whole.forward += a + b;
        whole.backward += 3 * a + 2 * b;
        whole.again += whole.again > 0 ? a + b : 0;
    }
    return whole;
}
