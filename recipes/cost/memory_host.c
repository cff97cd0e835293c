#include "recipes/cost/memory_int.h"

#include "recipes/architecture/tokens.h"

/* Resident memory of a rank with a tiny model: 12.7 MB of program and libraries, 3 MB of heap. */
#define PROGRAM_BYTES ((int64_t)15 << 20)
/* Packed operands of products that a thread keeps, for large enough operands. */
#define PACKED_BYTES ((int64_t)7 << 20)

#define WIDE_ROWS_MIN 256 /* engine/ops/cpu/matmul_wide.c */

typedef struct products {
    int64_t rows;                      /* rows that pass through a hidden matrix at once */
    int64_t operand_elems, wide_elems; /* maxima over all products */
} products;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the elements used by c(m,n) = a(m,k) b(k,n) of 16-bit numbers computed in fp32: all of
 * b, and rows of a and c of the same size (engine/ops/cpu/matmul_int.h). */
static int64_t wide_elems(int64_t m, int64_t n, int64_t k)
{
    int64_t b = dt_size_times(k, n), both = dt_size_plus(k, n);
    int64_t rows = smaller(m, larger(WIDE_ROWS_MIN, b / both));

    return dt_size_plus(dt_size_plus(b, n), dt_size_times(rows, both));
}

/* Adds the forward product, and the backward products of input and weight. */
static void add_matrix(products *of, int64_t rows, int64_t out, int64_t in)
{
    int64_t operands =
        dt_size_plus(dt_size_times(out, in), dt_size_times(rows, dt_size_plus(out, in)));
    int64_t wide = larger(wide_elems(rows, out, in), wide_elems(rows, in, out));

    wide = larger(wide, wide_elems(out, in, rows));
    of->operand_elems = larger(of->operand_elems, operands);
    of->wide_elems = larger(of->wide_elems, wide);
}

static void add_hidden(void *self, const dt_param *matrix)
{
    products *of = self;

    add_matrix(of, of->rows, matrix->held.dim[0], matrix->held.dim[1]);
}

/* Adds the head; logits are computed in chunks of rows. */
static void add_head(products *of, const dt_model_config *config)
{
    int64_t vocab = config->decoder.vocab_padded / dt_tensor_ranks(&config->tensor);

    if (dt_architecture_find(config->kind)->reads_rows || vocab <= 0)
        return;
    add_matrix(of,
               smaller(of->rows,
                       larger(1, DT_LOGITS_BYTES / vocab / (int64_t)dt_dtype_bytes(config->dtype))),
               vocab, config->decoder.embed);
}

static int64_t threads_of(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    return ranks->threads > 0 ? ranks->threads : larger(1, recipe->threads);
}

static int64_t product_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks)
{
    products of = {.rows = dt_size_times(config->batch, larger(1, config->tokens))};
    int64_t packed;

    dt_model_each_matrix(config, add_hidden, &of);
    add_head(&of, config);
    packed = dt_size_times(threads_of(recipe, ranks),
                           smaller(PACKED_BYTES, dt_size_times(4, of.operand_elems)));
    if (config->dtype == DT_F32)
        return packed;
    return dt_size_plus(packed, dt_size_times(4, of.wide_elems));
}

/* Returns the bytes of a shared segment: two slots for each rank, and two more (engine/comm/shm/segment.h). */
static int64_t segment_bytes(int64_t members)
{
    return members > 1 ? dt_size_times(2 * DT_MEMORY_SLOT_BYTES, members + 1) : 0;
}

/* Returns the bytes of the segments that carry gradients and parameters, and the sums within layers. */
static int64_t segments_bytes(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    int64_t members = ranks->node_ranks > 0 ? ranks->node_ranks : ranks->world_size;

    return dt_size_plus(segment_bytes(dt_recipe_data_ranks(recipe, members)),
                        segment_bytes(recipe->tensor.size));
}

int64_t dt_memory_host_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks)
{
    int64_t working = dt_size_times(ranks->replicas, product_bytes(recipe, config, ranks));

    return dt_size_plus(dt_size_plus(PROGRAM_BYTES, working), segments_bytes(recipe, ranks));
}
