#include "recipes/memory.h"

#include <stdio.h>

#include "base/banned.h"

#define VOCAB_UNKNOWN    256                 /* taken where only a full read of the data can tell */
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
        vocab = VOCAB_UNKNOWN;
    return (vocab + 127) / 128 * 128;
}

static int64_t act_bytes(const dt_recipe *recipe)
{
    return recipe->precision.kind == DT_PRECISION_BF16 ? 2 : 4;
}

/* Embeddings Vp C + T C; a block 12 C^2 + 13 C (products 3+1+4+4 C^2, their biases 9 C, two norms
 * of 2 C); final norm 2 C. The output head is the token embedding. */
static int64_t parameter_count(const dt_recipe *recipe, int64_t vocab_padded)
{
    int64_t C = recipe->model.embed;
    int64_t block = plus(times(12, times(C, C)), times(13, C));
    int64_t root = times(plus(vocab_padded, plus(recipe->batch.tokens, 2)), C);

    return plus(root, times(recipe->model.layers, block));
}

/* What one pass keeps, N = B T rows. Per row and block 16 C activations (two norms, q k v,
 * attention, two residuals, 4 C before and 4 C after GELU) and 4 + H fp32 statistics; per row
 * beside the blocks 9 C (embedding, final norm, two scratch rows and the gradients: stream, narrow,
 * 4 C wide) and 3 statistics; a chunk of logits, at least one row, at most all. */
static int64_t activations_bytes(const dt_recipe *recipe, int64_t vocab_padded)
{
    int64_t rows = times(recipe->batch.sequences, recipe->batch.tokens);
    int64_t layers = recipe->model.layers;
    int64_t act = times(plus(times(16, layers), 9), times(recipe->model.embed, act_bytes(recipe)));
    int64_t stats = times(4, plus(times(layers, 4 + recipe->model.heads), 3));
    int64_t row = times(4, vocab_padded), logits = times(rows, row);

    if (logits > LOGITS_MAX_BYTES)
        logits = row > LOGITS_MAX_BYTES ? row : LOGITS_MAX_BYTES;
    return plus(times(rows, plus(act, stats)), logits);
}

/* Two batches of int32 tokens and targets; a bucket on its way where there is somebody to send it
 * to; what the program itself takes. */
static int64_t buffers_bytes(const dt_recipe *recipe)
{
    int64_t rows = times(recipe->batch.sequences, recipe->batch.tokens);
    bool alone = recipe->ranks * recipe->nodes.count == 1;
    int64_t bucket = alone ? 0 : (int64_t)(recipe->strategy.bucket_mb * 1e6);

    return plus(RUNTIME_BYTES, plus(times(16, rows), bucket));
}

void dt_memory_estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab)
{
    int64_t vocab_padded = padded_vocab(recipe, vocab);
    int64_t count = parameter_count(recipe, vocab_padded);
    bool copy = recipe->precision.kind != DT_PRECISION_FP32;

    out->parameter_count = count;
    out->parameters_bytes = times(count, copy ? 6 : 4); /* fp32, and a copy in the compute type */
    out->gradients_bytes = times(count, 4);             /* fp32 */
    out->optimizer_bytes = times(count, 8);             /* two fp32 moments */
    out->activations_bytes = activations_bytes(recipe, vocab_padded);
    out->buffers_bytes = buffers_bytes(recipe);
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

void dt_memory_table(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe)
{
    bool copy = recipe->precision.kind != DT_PRECISION_FP32;
    long long count = (long long)memory->parameter_count;

    add_line(out, "parameters", memory->parameters_bytes);
    dt_strbuf_add_fmt(out, "%lld x %s\n", count, copy ? "(4 fp32 + 2 bf16) bytes" : "4 bytes");
    add_line(out, "gradients", memory->gradients_bytes);
    dt_strbuf_add_fmt(out, "%lld x 4 bytes\n", count);
    add_line(out, "optimizer", memory->optimizer_bytes);
    dt_strbuf_add_fmt(out, "%lld x 8 bytes, two moments\n", count);
    add_line(out, "activations", memory->activations_bytes);
    dt_strbuf_add_fmt(out, "batch %lld x %lld tokens x %lld layers\n",
                      (long long)recipe->batch.sequences, (long long)recipe->batch.tokens,
                      (long long)recipe->model.layers);
    add_line(out, "buffers", memory->buffers_bytes);
    dt_strbuf_add_str(out, "tokens, gradients on their way, the program\n");
    add_line(out, "a rank", memory->total_bytes);
    dt_strbuf_add_str(out, "in all\n");
}

dt_status dt_memory_check(const dt_recipe *recipe, int64_t vocab, int64_t ranks_on_node,
                          int64_t available_bytes, const char *node, dt_error *err)
{
    char need[SIZE_TEXT], have[SIZE_TEXT];
    dt_memory memory;
    dt_strbuf table;

    dt_memory_estimate(&memory, recipe, vocab);
    if (times(memory.total_bytes, ranks_on_node) <= available_bytes)
        return DT_OK;
    dt_strbuf_init(&table);
    dt_memory_table(&table, &memory, recipe);
    DT_FAIL(err, DT_ERR_RECIPE,
            "the run does not fit into the memory of '%s': %lld rank%s need%s %s, %s available\n%s"
            "lower 'batch.sequences' or 'batch.tokens'%s",
            node, (long long)ranks_on_node, ranks_on_node == 1 ? "" : "s",
            ranks_on_node == 1 ? "s" : "",
            size_text(need, times(memory.total_bytes, ranks_on_node)),
            size_text(have, available_bytes), table.data,
            ranks_on_node == 1 ? ", or the model's size" : ", the model's size, or 'ranks'");
    dt_strbuf_release(&table);
    return DT_ERR_RECIPE;
}
