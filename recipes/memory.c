#include "recipes/memory.h"

#include <stdio.h>

#include "base/banned.h"

#define LOGITS_MAX_BYTES ((int64_t)64 << 20) /* the head works on chunks of rows of this size */
#define RUNTIME_BYTES    ((int64_t)64 << 20) /* program, libraries, stacks, packed products */

/* Sums and products that stop at INT64_MAX: a recipe may ask for more than there are bytes. */
static int64_t times(int64_t a, int64_t b)
{
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static int64_t plus(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int64_t padded_vocab(const dt_recipe *recipe, int64_t vocab)
{
    if (recipe->model.vocab > 0)
        vocab = recipe->model.vocab;
    if (vocab <= 0)
        vocab = DT_MEMORY_VOCAB_UNKNOWN;
    return (vocab + 127) / 128 * 128;
}

static int64_t act_bytes(const dt_recipe *recipe)
{
    return recipe->precision.kind == DT_PRECISION_FP32 ? 4 : 2;
}

/* A block 12 C^2 + 13 C: products 3+1+4+4 C^2, their biases 9 C, two norms of 2 C. */
static int64_t block_count(const dt_recipe *recipe)
{
    int64_t C = recipe->model.embed;

    return plus(times(12, times(C, C)), times(13, C));
}

/* Token embedding Vp C, as much again for a head of its own, learned positions T C, final norm 2 C.
 */
static int64_t root_count(const dt_recipe *recipe, int64_t vocab_padded)
{
    int64_t positions = recipe->model.positions == DT_POSITIONS_LEARNED ? recipe->batch.tokens : 0;
    int64_t rows = times(recipe->model.tied ? 1 : 2, vocab_padded);

    return times(plus(rows, plus(positions, 2)), recipe->model.embed);
}

void dt_memory_units(int64_t *root, int64_t *block, const dt_recipe *recipe, int64_t vocab)
{
    *root = root_count(recipe, padded_vocab(recipe, vocab));
    *block = block_count(recipe);
}

/* What a pass keeps per row: C in the compute type, and fp32 statistics. */
typedef struct row_cost {
    int64_t widths, stats;
} row_cost;

/* The table of engine/model/model.h, where each line has its reason. Beside the blocks stand the
 * embedding, the final norm, a gradient, and the final norm's and the loss's statistics; under
 * full, one block as well. */
static row_cost row_cost_of(const dt_recipe *recipe)
{
    int64_t L = recipe->model.layers, H = recipe->model.heads;

    switch (recipe->activation_checkpointing) {
    case DT_RECOMPUTE_SELECTIVE:
        return (row_cost){plus(times(10, L), 3), plus(times(L, H), 7)};
    case DT_RECOMPUTE_FULL:
        return (row_cost){plus(L, 12), plus(H, 7)};
    case DT_RECOMPUTE_NONE:
        break;
    }
    return (row_cost){plus(times(12, L), 3), plus(times(L, plus(4, H)), 3)};
}

/* N = B T rows; the larger of the blocks' scratch of 5 C, and a chunk of logits, at least one row,
 * at most all; sinusoidal positions T C. */
static int64_t activations_bytes(const dt_recipe *recipe, int64_t vocab_padded)
{
    int64_t rows = times(recipe->batch.sequences, recipe->batch.tokens);
    int64_t width = times(recipe->model.embed, act_bytes(recipe));
    row_cost cost = row_cost_of(recipe);
    int64_t row = times(4, vocab_padded), logits = times(rows, row);
    int64_t scratch = times(rows, times(5, width));
    int64_t positions =
        recipe->model.positions == DT_POSITIONS_SINUSOIDAL ? times(recipe->batch.tokens, width) : 0;

    if (logits > LOGITS_MAX_BYTES)
        logits = row > LOGITS_MAX_BYTES ? row : LOGITS_MAX_BYTES;
    return plus(times(rows, plus(times(cost.widths, width), times(4, cost.stats))),
                plus(logits > scratch ? logits : scratch, positions));
}

/* --- what a strategy divides --- */

/* How many ranks a rank's share is one of; 1: it holds everything. */
typedef struct shares {
    int64_t masters, gradients, states;
} shares;

static bool is_full_shard(const dt_recipe *recipe)
{
    return recipe->strategy.kind == DT_STRATEGY_FSDP && recipe->strategy.shard == DT_SHARD_FULL;
}

/* fp32 weights that are also the compute type's are whole where the compute type's are. */
static shares shares_of(const dt_recipe *recipe, int64_t world_size)
{
    bool copy = recipe->precision.kind != DT_PRECISION_FP32;
    shares out = {1, 1, 1};

    if (recipe->strategy.kind != DT_STRATEGY_FSDP)
        return out;
    out.states = world_size;
    if (copy || is_full_shard(recipe))
        out.masters = world_size;
    if (recipe->strategy.shard != DT_SHARD_OPTIMIZER && recipe->strategy.reduce_each_micro_step)
        out.gradients = world_size;
    return out;
}

static int64_t share(int64_t count, int64_t ways)
{
    return count / ways + (count % ways != 0);
}

/* The products of all blocks: those that an optimizer may step whole. */
static int64_t matrix_count(const dt_recipe *recipe)
{
    return times(recipe->model.layers, times(12, times(recipe->model.embed, recipe->model.embed)));
}

static int states_of(const dt_recipe *recipe, bool matrix)
{
    return dt_optimizer_states(&recipe->optimizer, matrix);
}

double dt_memory_states(const dt_recipe *recipe, int64_t parameter_count)
{
    double matrices = (double)matrix_count(recipe) / (double)parameter_count;

    return states_of(recipe, false) * (1 - matrices) + states_of(recipe, true) * matrices;
}

static int64_t optimizer_bytes(const dt_recipe *recipe, int64_t count, int64_t ways)
{
    int usual = states_of(recipe, false), of_matrix = states_of(recipe, true);
    int64_t matrices = of_matrix != usual ? matrix_count(recipe) : 0;

    return plus(times(share(count - matrices, ways), 4 * usual),
                times(share(matrices, ways), 4 * of_matrix));
}

/* A step over whole matrices works in two of them and two squares, in bf16 or fp32, and where it adds
 * up in fp32 in a third square: of (4C, C). */
static int64_t work_bytes(const dt_recipe *recipe)
{
    int64_t square = times(recipe->model.embed, recipe->model.embed);

    if (!dt_optimizers[recipe->optimizer.kind].whole_matrices)
        return 0;
    return times(square, recipe->precision.kind == DT_PRECISION_BF16 ? 2 * 10 + 4 : 4 * 10);
}

/* What full sharding gathers, in the compute type: the root, which stays, and two blocks, or all
 * where they are kept until backward. */
static int64_t gathered_bytes(const dt_recipe *recipe, int64_t vocab_padded)
{
    int64_t layers = recipe->model.layers;
    int64_t blocks = recipe->strategy.reshard_after_forward && layers > 2 ? 2 : layers;

    return times(plus(root_count(recipe, vocab_padded), times(blocks, block_count(recipe))),
                 act_bytes(recipe));
}

/* Gradients on their way: a bucket where there is somebody to send it to; under fsdp the fp32
 * gradients of the root and of two blocks, before they are divided. */
static int64_t sending_bytes(const dt_recipe *recipe, int64_t vocab_padded, int64_t world_size)
{
    if (world_size == 1)
        return 0;
    if (shares_of(recipe, world_size).gradients == 1)
        return (int64_t)(recipe->strategy.bucket_mb * 1e6);
    return times(plus(root_count(recipe, vocab_padded), times(2, block_count(recipe))), 4);
}

/* Two batches of int32 tokens and targets; gathered weights; gradients on their way; what the
 * program itself takes. */
static int64_t buffers_bytes(const dt_recipe *recipe, int64_t vocab_padded,
                             const dt_memory_ranks *ranks)
{
    int64_t rows = times(recipe->batch.sequences, recipe->batch.tokens);
    int64_t gathered = is_full_shard(recipe) ? gathered_bytes(recipe, vocab_padded) : 0;

    return plus(
        plus(plus(RUNTIME_BYTES, work_bytes(recipe)), times(ranks->replicas, times(16, rows))),
        plus(gathered, sending_bytes(recipe, vocab_padded, ranks->world_size)));
}

void dt_memory_estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab,
                        const dt_memory_ranks *ranks)
{
    int64_t vocab_padded = padded_vocab(recipe, vocab), others = ranks->replicas - 1;
    int64_t count =
        plus(root_count(recipe, vocab_padded), times(recipe->model.layers, block_count(recipe)));
    shares part = shares_of(recipe, ranks->world_size);
    int64_t copy = recipe->precision.kind == DT_PRECISION_FP32 || is_full_shard(recipe) ? 0 : 2;

    out->ranks = *ranks;
    out->parameter_count = count;
    /* fp32, and a copy in the compute type; other replicas have the compute type's alone */
    out->parameters_bytes = plus(plus(times(share(count, part.masters), 4), times(count, copy)),
                                 times(others, times(count, act_bytes(recipe))));
    out->gradients_bytes =
        times(ranks->replicas, times(share(count, part.gradients), 4)); /* fp32 */
    out->optimizer_bytes = optimizer_bytes(recipe, count, part.states);
    out->activations_bytes = times(ranks->replicas, activations_bytes(recipe, vocab_padded));
    out->buffers_bytes = buffers_bytes(recipe, vocab_padded, ranks);
    out->total_bytes =
        plus(plus(out->parameters_bytes, plus(out->gradients_bytes, out->optimizer_bytes)),
             plus(out->activations_bytes, out->buffers_bytes));
}

/* --- for people --- */

#define SIZE_TEXT 32

/* "1.2 GB", decimal; returns out. */
static const char *size_text(char *out, int64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000;
        unit++;
    }
    snprintf(out, SIZE_TEXT, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
    return out;
}

static void add_line(dt_strbuf *out, const char *part, int64_t bytes)
{
    char size[SIZE_TEXT];

    dt_strbuf_add_fmt(out, "  %-12s %10s  ", part, size_text(size, bytes));
}

/* "124475904 x 4 bytes, divided among 8\n" */
static void add_elements(dt_strbuf *out, int64_t count, const char *each, int64_t ways)
{
    dt_strbuf_add_fmt(out, "%lld x %s", (long long)count, each);
    if (ways > 1)
        dt_strbuf_add_fmt(out, ", divided among %lld", (long long)ways);
    dt_strbuf_add_str(out, "\n");
}

static void add_states(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe,
                       int64_t ways)
{
    static const char *const moments[] = {"0 bytes", "4 bytes, one moment", "8 bytes, two moments"};
    const char *usual = moments[states_of(recipe, false)];
    int64_t matrices = matrix_count(recipe);

    if (states_of(recipe, true) == states_of(recipe, false)) {
        add_elements(out, memory->parameter_count, usual, ways);
        return;
    }
    dt_strbuf_add_fmt(out, "%lld x %s, and ", (long long)matrices,
                      moments[states_of(recipe, true)]);
    add_elements(out, memory->parameter_count - matrices, usual, ways);
}

static const char *parameter_text(const dt_recipe *recipe, int64_t masters)
{
    if (recipe->precision.kind == DT_PRECISION_FP32 || is_full_shard(recipe))
        return "4 bytes";
    if (masters > 1)
        return "2 bytes, and 4 for fp32";
    return recipe->precision.kind == DT_PRECISION_BF16 ? "(4 fp32 + 2 bf16) bytes"
                                                       : "(4 fp32 + 2 fp16) bytes";
}

void dt_memory_table(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe)
{
    static const char *const recomputes[] = {
        [DT_RECOMPUTE_NONE] = "",
        [DT_RECOMPUTE_SELECTIVE] = ", some computed again",
        [DT_RECOMPUTE_FULL] = ", computed again",
    };
    shares part = shares_of(recipe, memory->ranks.world_size);

    add_line(out, "parameters", memory->parameters_bytes);
    add_elements(out, memory->parameter_count, parameter_text(recipe, part.masters), part.masters);
    add_line(out, "gradients", memory->gradients_bytes);
    add_elements(out, memory->parameter_count, "4 bytes", part.gradients);
    add_line(out, "optimizer", memory->optimizer_bytes);
    add_states(out, memory, recipe, part.states);
    add_line(out, "activations", memory->activations_bytes);
    dt_strbuf_add_fmt(out, "batch %lld x %lld tokens x %lld layers%s\n",
                      (long long)recipe->batch.sequences, (long long)recipe->batch.tokens,
                      (long long)recipe->model.layers,
                      recomputes[recipe->activation_checkpointing]);
    add_line(out, "buffers", memory->buffers_bytes);
    dt_strbuf_add_str(out, is_full_shard(recipe)
                               ? "tokens, gathered weights, gradients on their way, the program\n"
                               : "tokens, gradients on their way, the program\n");
    add_line(out, "a rank", memory->total_bytes);
    dt_strbuf_add_str(out, "in all");
    if (memory->ranks.replicas > 1)
        dt_strbuf_add_fmt(out, ", of %lld replicas", (long long)memory->ranks.replicas);
    dt_strbuf_add_str(out, "\n");
}

dt_status dt_memory_check(const dt_recipe *recipe, int64_t vocab, const dt_memory_ranks *ranks,
                          int64_t ranks_on_node, int64_t available_bytes, const char *node,
                          dt_error *err)
{
    char need[SIZE_TEXT], have[SIZE_TEXT];
    dt_memory memory;
    dt_strbuf table;

    dt_memory_estimate(&memory, recipe, vocab, ranks);
    if (times(memory.total_bytes, ranks_on_node) <= available_bytes)
        return DT_OK;
    dt_strbuf_init(&table);
    dt_memory_table(&table, &memory, recipe);
    DT_FAIL(err, DT_ERR_RECIPE,
            "the run does not fit into the memory of '%s': %lld rank%s need%s %s, %s available\n%s"
            "lower 'batch.sequences' or 'batch.tokens'%s%s",
            node, (long long)ranks_on_node, ranks_on_node == 1 ? "" : "s",
            ranks_on_node == 1 ? "s" : "",
            size_text(need, times(memory.total_bytes, ranks_on_node)),
            size_text(have, available_bytes), table.data,
            recipe->activation_checkpointing == DT_RECOMPUTE_FULL
                ? ""
                : ", take 'activation_checkpointing: full'",
            ranks_on_node == 1 ? ", or the model's size" : ", the model's size, or 'ranks'");
    dt_strbuf_release(&table);
    return DT_ERR_RECIPE;
}
