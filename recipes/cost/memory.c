/* memory: predicts the memory of a rank: tensors by part, and what a rank on CPUs holds in addition. */
#include "recipes/cost/memory.h"

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/decoder.h"
#include "recipes/cost/memory_int.h"

/* --- the program, its workspace, the segment shared by the ranks of a node */

/* Resident memory of a rank with a tiny model: 12.7 MB of program and libraries, 3 MB of heap. */
#define PROGRAM_BYTES ((int64_t)15 << 20)
/* Packed operands of products that a thread keeps, for large enough operands. */
#define PACKED_BYTES ((int64_t)7 << 20)

#define WIDE_ROWS_MIN 256 /* engine/ops/cpu/matmul.c */

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
 * b, and rows of a and c of the same size (engine/ops/cpu/ops_int.h). */
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
               smaller(of->rows, larger(1, dt_decoder_logits_bytes(config) / vocab /
                                               (int64_t)dt_dtype_bytes(config->dtype))),
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

    dt_model_each_product(config, add_hidden, &of);
    add_head(&of, config);
    packed = dt_size_times(threads_of(recipe, ranks),
                           smaller(PACKED_BYTES, dt_size_times(4, of.operand_elems)));
    if (config->dtype == DT_F32)
        return packed;
    return dt_size_plus(packed, dt_size_times(4, of.wide_elems));
}

/* Returns the bytes of a shared segment: two slots for each rank, and two more (engine/comm/comm_int.h). */
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

/* Returns the bytes of one rank; ranks->host must be true. */
static int64_t memory_host_bytes(const dt_recipe *recipe, const dt_model_config *config,
                                 const dt_memory_ranks *ranks)
{
    int64_t working = dt_size_times(ranks->replicas, product_bytes(recipe, config, ranks));

    return dt_size_plus(dt_size_plus(PROGRAM_BYTES, working), segments_bytes(recipe, ranks));
}

/* --- tensors */

#define GPU_BYTES          ((int64_t)64 << 20) /* memory of libraries on the GPU, for each rank */
#define NCCL_CHANNELS      32
#define NCCL_CHANNEL_BYTES ((int64_t)12 << 20)

static int unit_count(const dt_model_config *config)
{
    return dt_architecture_find(config->kind)->units(config);
}

/* --- parts that a strategy divides --- */

bool dt_memory_is_full_shard(const dt_recipe *recipe)
{
    return recipe->strategy.kind == DT_STRATEGY_FSDP && recipe->strategy.shard == DT_SHARD_FULL;
}

/* Returns whether fsdp keeps undivided gradients until the last micro-step. */
static bool holds_gradients(const dt_recipe *recipe)
{
    return recipe->strategy.shard == DT_SHARD_OPTIMIZER || !recipe->strategy.reduce_each_micro_step;
}

/* Returns among how many ranks fsdp divides what a tensor rank holds. */
static int64_t shard_ranks(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    return dt_recipe_shard_ranks(recipe, ranks->world_size, ranks->node_ranks);
}

/* Returns whether other ranks hold the same parts under fsdp. */
static bool has_replicas(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    return recipe->strategy.kind == DT_STRATEGY_FSDP &&
           shard_ranks(recipe, ranks) < dt_recipe_data_ranks(recipe, ranks->world_size);
}

/* fp32 weights that are also the compute weights are undivided if the compute weights are. */
dt_memory_shares dt_memory_shares_of(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    bool copy = recipe->precision.kind != DT_PRECISION_FP32;
    int64_t ways = shard_ranks(recipe, ranks);
    dt_memory_shares out = {1, 1, 1, 1};

    if (recipe->strategy.kind != DT_STRATEGY_FSDP)
        return out;
    out.states = ways;
    if (dt_memory_is_full_shard(recipe))
        out.frozen = ways;
    if (copy || dt_memory_is_full_shard(recipe))
        out.masters = ways;
    if (!holds_gradients(recipe))
        out.gradients = ways;
    return out;
}

static int64_t share(int64_t count, int64_t ways)
{
    return count / ways + (count % ways != 0);
}

dt_matrices dt_memory_matrices(const dt_recipe *recipe)
{
    dt_matrices out;

    dt_matrices_count(&out, recipe);
    return out;
}

int dt_memory_states_of(const dt_recipe *recipe, bool matrix)
{
    return dt_optimizer_states(&recipe->optimizer, matrix);
}

double dt_memory_states(const dt_recipe *recipe, int64_t parameter_count)
{
    double matrices = (double)dt_memory_matrices(recipe).elems / (double)parameter_count;

    return dt_memory_states_of(recipe, false) * (1 - matrices) +
           dt_memory_states_of(recipe, true) * matrices;
}

/* width: bytes of a state of an element */
static int64_t states_bytes(const dt_recipe *recipe, int64_t count, int64_t ways, int64_t width)
{
    int usual = dt_memory_states_of(recipe, false), of_matrix = dt_memory_states_of(recipe, true);
    int64_t matrices = dt_memory_matrices(recipe).elems;

    return dt_size_plus(dt_size_times(share(count - matrices, ways), width * usual),
                        dt_size_times(share(matrices, ways), width * of_matrix));
}

static int64_t optimizer_bytes(const dt_recipe *recipe, int64_t count, int64_t ways)
{
    dt_dtype dtype = dt_optimizer_state_dtype(&recipe->optimizer);

    return states_bytes(recipe, count, ways, (int64_t)dt_dtype_bytes(dtype));
}

/* Returns the elements of the largest unit, which is the largest message. */
static int64_t largest_unit(const dt_model_config *config)
{
    int64_t most = 0;

    for (int unit = 0; unit < unit_count(config); unit++) {
        int64_t elems = dt_model_unit_elems(config, unit);

        most = elems > most ? elems : most;
    }
    return most;
}

/* Returns the elements of the root and the two largest blocks, or of all blocks if they are kept; elems_of: those of a
 * unit. */
static int64_t root_and_blocks(const dt_model_config *config, bool all,
                               int64_t (*elems_of)(const dt_model_config *config, int unit))
{
    int64_t root = elems_of(config, 0), sum = 0, largest = 0, second = 0;

    for (int unit = 1; unit < unit_count(config); unit++) {
        int64_t elems = elems_of(config, unit);

        sum = dt_size_plus(sum, elems);
        if (elems > largest) {
            second = largest;
            largest = elems;
        } else if (elems > second) {
            second = elems;
        }
    }
    return dt_size_plus(root, all ? sum : dt_size_plus(largest, second));
}

/* Bytes that full sharding gathers, in the compute type: the root, which is kept, and two blocks, or all
 * blocks if they are kept until the backward pass. */
static int64_t gathered_bytes(const dt_recipe *recipe, const dt_model_config *config)
{
    bool all = !recipe->strategy.reshard_after_forward;

    return dt_size_times(dt_size_plus(root_and_blocks(config, all, dt_model_unit_elems),
                                      root_and_blocks(config, all, dt_model_unit_frozen_elems)),
                         (int64_t)dt_dtype_bytes(config->dtype));
}

/* Gradients being sent: under fsdp those of the root and of two blocks in fp32, before they are divided; and
 * their bf16 copies if they are sent in bf16, which ddp keeps for all units, and fsdp for all parts if they are also
 * summed over replicas. */
static int64_t sending_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks)
{
    bool fsdp = recipe->strategy.kind == DT_STRATEGY_FSDP;
    bool rounded = recipe->strategy.reduce_dtype == DT_REDUCE_BF16;
    int64_t each = rounded ? 2 : 0, parts = 0;

    if (recipe->strategy.kind == DT_STRATEGY_DP ||
        (!fsdp && dt_recipe_data_ranks(recipe, ranks->world_size) == 1))
        return 0;
    if (fsdp && !holds_gradients(recipe))
        each += 4;
    if (rounded && has_replicas(recipe, ranks))
        parts = dt_size_times(
            2, share(dt_model_config_trained_held_elems(config), shard_ranks(recipe, ranks)));
    return dt_size_plus(parts,
                        dt_size_times(root_and_blocks(config, !fsdp, dt_model_unit_elems), each));
}

/* NCCL's memory on a GPU does not depend on the size of messages: in a ring each channel has 10 MiB that its
 * neighbour writes to (three protocols) and 2 MiB of counters for the next rank, with at most 32 channels in
 * a node (its developers, NVIDIA/nccl issues 864 and 1685). All-reduces also use trees, which have two neighbours.
 * Cards without NCCL use pinned host memory (engine/comm/open.c). */
static int64_t card_communicator_bytes(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    int64_t neighbours = recipe->strategy.kind == DT_STRATEGY_FSDP ? 1 : 3;

    if (has_replicas(recipe, ranks))
        neighbours += 3;
    if (recipe->tensor.size >
        1) /* the all-reduces within layers have a communicator of their own */
        neighbours += 3;
    return neighbours * NCCL_CHANNELS * NCCL_CHANNEL_BYTES;
}

/* On CPUs, the buffer of a communicator between nodes, for its largest message: ddp sends buckets, and fsdp parts if
 * it divides within nodes. */
static int64_t communicator_bytes(const dt_recipe *recipe, const dt_model_config *config,
                                  const dt_memory_ranks *ranks)
{
    bool one_node = ranks->node_ranks == 0 || ranks->node_ranks == ranks->world_size;
    int64_t message = dt_size_times(largest_unit(config), 4);
    double bucket = recipe->strategy.bucket_mb * 1e6;

    if (ranks->world_size == 1)
        return 0;
    if (!ranks->host)
        return card_communicator_bytes(recipe, ranks);
    if (one_node) /* these ranks share a segment */
        return 0;
    if (recipe->strategy.kind == DT_STRATEGY_DDP && (double)message > bucket)
        return (int64_t)bucket;
    return has_replicas(recipe, ranks) ? share(message, shard_ranks(recipe, ranks)) : message;
}

/* Buffers: a batch as read, as handed over, and on the device; gathered weights; gradients being sent;
 * workspace of the optimizer. */
static int64_t buffers_bytes(const dt_recipe *recipe, const dt_model_config *config,
                             const dt_memory_ranks *ranks)
{
    int64_t batches = dt_size_times(3, dt_model_batch_bytes(config));
    int64_t gathered = dt_memory_is_full_shard(recipe) ? gathered_bytes(recipe, config) : 0;

    return dt_size_plus(dt_size_plus(dt_memory_matrices(recipe).work_bytes,
                                     dt_size_times(ranks->replicas, batches)),
                        dt_size_plus(gathered, sending_bytes(recipe, config, ranks)));
}

/* Memory of engine/train/train_int.h: activations, logits, and weights if they are divided. */
static int64_t translator_bytes(const dt_recipe *recipe, const dt_model_config *config)
{
    const dt_architecture *kind = dt_architecture_find(config->kind);
    dt_model_config one = *config;
    int64_t weights = dt_size_times(root_and_blocks(config, true, dt_model_unit_elems),
                                    (int64_t)dt_dtype_bytes(config->dtype));
    int64_t logits;

    if (!recipe->evaluate.bleu || !kind->reads_pairs)
        return 0;
    one.inference = true;
    dt_translations_configure(
        &one, dt_translations_within(DT_TRANSLATIONS_IN_TRAINING, recipe->evaluate.beam),
        recipe->evaluate.beam);
    if (!dt_memory_is_full_shard(recipe) || !recipe->strategy.reshard_after_forward)
        weights = 0;
    logits = dt_size_times(dt_translations_rows(&one), 4 * config->decoder.vocab);
    return dt_size_plus(kind->activation_bytes(&one), dt_size_plus(weights, logits));
}

/* Memory of the model of 'evaluate.tasks' and 'evaluate.samples', at most: that of the longest row is known only with the
 * files. */
static int64_t side_model_bytes(const dt_recipe *recipe, const dt_model_config *config)
{
    const dt_architecture *kind = dt_architecture_find(config->kind);
    dt_model_config one = *config;
    int64_t weights = dt_size_times(root_and_blocks(config, true, dt_model_unit_elems),
                                    (int64_t)dt_dtype_bytes(config->dtype));

    if ((recipe->evaluate.tasks.count == 0 && recipe->evaluate.samples.count == 0) ||
        kind->reads_pairs || kind->reads_rows)
        return 0;
    one.inference = one.incremental = true;
    one.batch = one.sequences = 1;
    if (!dt_memory_is_full_shard(recipe) || !recipe->strategy.reshard_after_forward)
        weights = 0;
    return dt_size_plus(kind->activation_bytes(&one), weights);
}

bool dt_memory_saves_beside(const dt_recipe *recipe, bool validates)
{
    int64_t steps = recipe->schedule.steps > 0 ? recipe->schedule.steps : INT64_MAX;
    int64_t save = recipe->checkpoint.every, evaluate = recipe->evaluate.every;
    bool on_the_way = recipe->evaluate.every_epoch > 0 || (evaluate > 0 && evaluate < steps);

    return (save > 0 && save < steps) || recipe->checkpoint.every_epoch > 0 ||
           (recipe->checkpoint.keep_best > 0 && validates && on_the_way);
}

/* Snapshot of values and states in fp32 (engine/checkpoint/checkpoint_int.h): each rank's part under fsdp, else
 * everything on one rank. Of several replicas one has it. States in bf16 are widened for it (engine/strategy/shard.c),
 * on every rank. */
static int64_t copy_bytes(const dt_recipe *recipe, int64_t count, const dt_memory_ranks *ranks)
{
    bool validates = recipe->data.validation.count > 0 || recipe->data.split > 0;
    int64_t ways = shard_ranks(recipe, ranks);

    int64_t widened = dt_optimizer_state_dtype(&recipe->optimizer) == DT_F32
                          ? 0
                          : states_bytes(recipe, count, ways, 4);

    if (!dt_memory_saves_beside(recipe, validates))
        return 0;
    return dt_size_plus(dt_size_plus(dt_size_times(share(count, ways), 4), widened),
                        states_bytes(recipe, count, ways, 4));
}

void dt_memory_estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab,
                        const dt_memory_ranks *ranks)
{
    dt_memory_shares part = dt_memory_shares_of(recipe, ranks);
    int64_t count, frozen, copy, type_bytes,
        others = ranks->replicas - 1; /* counts: of a tensor rank */
    dt_model_config config;

    dt_model_config_make(&config, recipe, vocab);
    count = dt_model_config_trained_held_elems(&config);
    frozen = dt_model_config_held_elems(&config) - count;
    type_bytes = (int64_t)dt_dtype_bytes(config.dtype);
    copy = config.dtype == DT_F32 || dt_memory_is_full_shard(recipe) ? 0 : type_bytes;
    out->ranks = *ranks;
    out->parameter_count = dt_model_config_elems(&config);
    out->trained_count = dt_model_config_trained_elems(&config);
    out->held_count = count;
    out->frozen_count = frozen;
    /* fp32, and a copy in the compute type; other replicas have only the copy */
    out->parameters_bytes = dt_size_plus(
        dt_size_plus(dt_size_times(share(count, part.masters), 4), dt_size_times(count, copy)),
        dt_size_times(others, dt_size_times(count, type_bytes)));
    out->parameters_bytes = dt_size_plus(
        out->parameters_bytes,
        dt_size_times(ranks->replicas, dt_size_times(share(frozen, part.frozen), type_bytes)));
    out->gradients_bytes =
        dt_size_times(ranks->replicas, dt_size_times(share(count, part.gradients), 4)); /* fp32 */
    out->optimizer_bytes = optimizer_bytes(recipe, count, part.states);
    out->activations_bytes = dt_size_times(
        ranks->replicas, dt_architecture_find(config.kind)->activation_bytes(&config));
    out->runtime_bytes =
        dt_size_plus(ranks->host ? memory_host_bytes(recipe, &config, ranks) : GPU_BYTES,
                     communicator_bytes(recipe, &config, ranks));
    out->copy_bytes = ranks->host ? copy_bytes(recipe, count, ranks) : 0;
    out->translator_bytes =
        dt_size_plus(translator_bytes(recipe, &config), side_model_bytes(recipe, &config));
    out->buffers_bytes =
        dt_size_plus(dt_size_plus(out->runtime_bytes, out->copy_bytes),
                     dt_size_plus(out->translator_bytes, buffers_bytes(recipe, &config, ranks)));
    out->total_bytes =
        dt_size_plus(dt_size_plus(out->parameters_bytes,
                                  dt_size_plus(out->gradients_bytes, out->optimizer_bytes)),
                     dt_size_plus(out->activations_bytes, out->buffers_bytes));
}
