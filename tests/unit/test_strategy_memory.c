/* strategy_memory: compares the memory forecast for a recipe (recipes/cost/memory.h) with what its ranks allocate: kinds
 * of models x strategies x precisions x optimizers, on one rank and on three, and on four that divide layers or shard
 * within two nodes.
 *
 *     test_strategy_memory        each strategy in each precision with AdamW and one other optimizer in turn
 *     test_strategy_memory all    with every optimizer
 *
 * Counted at the device: every allocation of a rank goes through a function here. The batch as it is
 * read is the session's, and is added.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/checkpoint/checkpoint_int.h"
#include "engine/comm/comm_int.h"
#include "engine/config.h"
#include "recipes/cost/memory.h"
#include "recipes/cost/memory_int.h"
#include "recipes/fields/fields.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"
#include "tests/unit/strategy_support.h"

#define REPLICAS 3

_Static_assert((size_t)DT_MEMORY_SLOT_BYTES == DT_SEGMENT_SLOT_BYTES, "a slot is a slot");

typedef struct strategy_row {
    const char *name;
    dt_strategy_kind strategy;
    dt_shard_kind shard;
    bool reshard, each;
    dt_reduce_kind reduce;
} strategy_row;

static const strategy_row rows[] = {
    {"dp", DT_STRATEGY_DP, 0, true, true, DT_REDUCE_FP32},
    {"ddp", DT_STRATEGY_DDP, 0, true, true, DT_REDUCE_FP32},
    {"ddp, sent in bf16", DT_STRATEGY_DDP, 0, true, true, DT_REDUCE_BF16},
    {"full", DT_STRATEGY_FSDP, DT_SHARD_FULL, true, true, DT_REDUCE_FP32},
    {"full, sent in bf16", DT_STRATEGY_FSDP, DT_SHARD_FULL, true, true, DT_REDUCE_BF16},
    {"full, kept", DT_STRATEGY_FSDP, DT_SHARD_FULL, false, true, DT_REDUCE_FP32},
    {"full, whole gradients", DT_STRATEGY_FSDP, DT_SHARD_FULL, true, false, DT_REDUCE_FP32},
    {"gradients", DT_STRATEGY_FSDP, DT_SHARD_GRADIENTS, true, true, DT_REDUCE_FP32},
    {"optimizer", DT_STRATEGY_FSDP, DT_SHARD_OPTIMIZER, true, true, DT_REDUCE_FP32},
    {"optimizer, sent in bf16", DT_STRATEGY_FSDP, DT_SHARD_OPTIMIZER, true, true, DT_REDUCE_BF16},
};
#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

static const struct {
    dt_optimizer_kind kind;
    double momentum;
} optimizers[] = {
    {DT_OPTIMIZER_ADAMW, 0}, {DT_OPTIMIZER_SGD, 0.9},   {DT_OPTIMIZER_SGD, 0},
    {DT_OPTIMIZER_LION, 0},  {DT_OPTIMIZER_MUON, 0.95},
};
#define OPTIMIZERS (int)(sizeof(optimizers) / sizeof(optimizers[0]))

static const dt_precision_kind precisions[] = {DT_PRECISION_FP32, DT_PRECISION_BF16};

/* --- a device that counts */

static int64_t taken_bytes;
static dt_device counted; /* as it was opened */

static dt_status count_alloc(dt_device *device, void **out, size_t bytes, dt_error *err)
{
    taken_bytes += (int64_t)bytes;
    return counted.alloc(device, out, bytes, err);
}

static void count(dt_device *device);

static dt_status count_replica(dt_device *device, dt_device *out, int64_t n, dt_error *err)
{
    dt_status st = counted.open_replica(device, out, n, err);

    count(out);
    return st;
}

static void count(dt_device *device)
{
    device->alloc = device->host_alloc = count_alloc;
    device->open_replica = count_replica;
}

/* --- recipes */

static dt_recipe recipe_of(dt_architecture_kind kind, int row, int precision, int optimizer)
{
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.model.kind = kind;
    recipe.model.layers = 4;
    recipe.model.embed = 128;
    recipe.model.heads = 4;
    recipe.batch.sequences = 6;
    recipe.batch.tokens = 32;
    if (kind == DT_MODEL_MLP) {
        recipe.model.inputs = 500;
        recipe.model.outputs = 40;
        recipe.batch.sequences = 100;
        recipe.batch.tokens = 1;
    }
    if (kind == DT_MODEL_TRANSFORMER) {
        recipe.model.ffn = 300;
        recipe.model.source_vocab = 500;
    }
    if (kind == DT_MODEL_LLAMA) {
        recipe.model.kv_heads = 2;
        recipe.model.head_width = 40;
        recipe.model.ffn = 300;
        recipe.model.qkv_bias = recipe.model.qk_norm = true;
    }
    recipe.precision.kind = precisions[precision];
    recipe.optimizer.kind = optimizers[optimizer].kind;
    recipe.optimizer.momentum = optimizers[optimizer].momentum;
    recipe.strategy.kind = rows[row].strategy;
    recipe.strategy.shard = rows[row].shard;
    recipe.strategy.reshard_after_forward = rows[row].reshard;
    recipe.strategy.reduce_each_micro_step = rows[row].each;
    recipe.strategy.reduce_dtype = rows[row].reduce;
    return recipe;
}

/* Allows 2 %, since parameters and fsdp's parts begin at multiples of 16 elements. */
static bool near(const char *what, int64_t said, int64_t taken)
{
    if (fabs((double)(said - taken)) <= 0.02 * (double)taken + 4096)
        return true;
    fprintf(stderr, "%s: the recipe says %lld bytes, %lld are taken\n", what, (long long)said,
            (long long)taken);
    return false;
}

/* The mesh that the engine makes of the ranks. */
static dt_mesh mesh_of(const dt_recipe *recipe, int rank, const dt_memory_ranks *all)
{
    int64_t data = dt_recipe_data_ranks(recipe, all->world_size);
    int64_t shards = dt_recipe_shard_ranks(recipe, all->world_size, all->node_ranks);

    return dt_mesh_of(rank, data / shards, shards, recipe->tensor.size);
}

static int check_recipe(const dt_recipe *recipe, dt_events *events, int rank, int world_size,
                        int node_ranks)
{
    bool dp = recipe->strategy.kind == DT_STRATEGY_DP;
    dt_memory_ranks shared = {.world_size = world_size,
                              .replicas = dp ? REPLICAS : 1,
                              .host = true,
                              .node_ranks = node_ranks};
    dt_mesh mesh = mesh_of(recipe, rank, &shared);
    bool writes = mesh.axis[DT_AXIS_REPLICA].rank == 0;
    dt_snapshot copy;
    dt_model_config config;
    dt_memory said;
    trainee t = {0};

    dt_memory_estimate(&said, recipe, 0, &shared);
    dt_model_config_make(&config, recipe, 0);
    config.tensor.rank = mesh.axis[DT_AXIS_TENSOR].rank;
    taken_bytes = shared.replicas * dt_model_batch_bytes(&config);
    CHECK(!dt_device_open_cpu(&t.device, 1, NULL));
    counted = t.device;
    count(&t.device);
    CHECK(!dt_model_open(&t.model, &config, &t.device, NULL));
    CHECK(!dt_comm_open(&t.comm, events, "main", dt_group_all(rank, world_size), 100, NULL));
    t.state = (dt_strategy_state){.strategy = dt_strategy_find((int)recipe->strategy.kind),
                                  .model = t.model,
                                  .mesh = mesh,
                                  .comm = &t.comm,
                                  .events = events,
                                  .options = dt_config_strategy(recipe, shared.replicas)};
    CHECK(!t.state.strategy->setup(&t.state, 7, NULL));
    CHECK(near("parameters", said.parameters_bytes, t.state.parameters_bytes));
    CHECK(near("gradients", said.gradients_bytes, t.state.gradients_bytes));
    CHECK(near("optimizer", said.optimizer_bytes, t.state.optimizer_bytes));
    CHECK(near("in all", said.total_bytes - said.runtime_bytes - said.copy_bytes, taken_bytes));
    CHECK(!dt_snapshot_open(&copy, &t.state, 1, NULL));
    /* other tensor ranks do not write what all of them hold, such as norms */
    if (config.tensor.rank == 0)
        CHECK(near("a copy", writes ? said.copy_bytes : 0, dt_snapshot_bytes(&copy)));
    dt_snapshot_close(&copy);
    close_trainee(&t);
    return 0;
}

typedef struct combination {
    dt_architecture_kind kind;
    int world_size, tensor;
    int node_ranks; /* fsdp divides within nodes of so many ranks; 0: all are on one */
} combination;

static bool every_optimizer;

static bool is_wanted(int row, int precision, int optimizer)
{
    return every_optimizer || optimizer == 0 ||
           optimizer == 1 + (row + precision) % (OPTIMIZERS - 1);
}

/* All combinations in one process, since starting ranks takes most of the time. */
static int check_row(const combination *c, int row, dt_events *events, int rank)
{
    for (int precision = 0; precision < 2; precision++)
        for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++) {
            dt_recipe recipe = recipe_of(c->kind, row, precision, optimizer);

            recipe.tensor.size = c->tensor;
            recipe.strategy.within = c->node_ranks > 0 ? DT_WITHIN_NODE : DT_WITHIN_RUN;
            if (!is_wanted(row, precision, optimizer) ||
                (c->tensor > 1 && recipe.optimizer.kind == DT_OPTIMIZER_MUON) ||
                check_recipe(&recipe, events, rank, c->world_size, c->node_ranks) == 0)
                continue;
            fprintf(stderr, "%s, %s, %s, %s, %d ranks, tensor %d, %d on a node\n",
                    dt_architecture_find(c->kind)->name, rows[row].name,
                    precision == 0 ? "fp32" : "bf16", dt_optimizers[recipe.optimizer.kind].name,
                    c->world_size, c->tensor, c->node_ranks);
            return 1;
        }
    return 0;
}

static int body(int rank, void *self)
{
    const combination *c = self;
    dt_events *events;

    CHECK(!dt_events_open(&events, rank, c->world_size, NULL));
    for (int row = 0; row < ROWS; row++)
        if (c->node_ranks > 0 ? rows[row].strategy == DT_STRATEGY_FSDP
                              : c->world_size == 1 || rows[row].strategy != DT_STRATEGY_DP)
            CHECK(!check_row(c, row, events, rank));
    dt_events_close(events);
    return 0;
}

static void check_ranks(dt_architecture_kind kind, int world_size, int tensor, int node_ranks)
{
    combination c = {kind, world_size, tensor, node_ranks};
    ranks all = {.world_size = world_size, .timeout_seconds = 250, .body = body, .self = &c};

    assert_int_equal(ranks_run(&all), 0);
}

static void check_kind(dt_architecture_kind kind)
{
    check_ranks(kind, 1, 1, 0);
    check_ranks(kind, 3, 1, 0);
}

static void test_the_estimate_is_what_ranks_of_gpt2_allocate(void **state)
{
    check_kind(DT_MODEL_GPT2);
}

static void test_the_estimate_is_what_ranks_of_an_mlp_allocate(void **state)
{
    check_kind(DT_MODEL_MLP);
}

static void test_the_estimate_is_what_ranks_of_a_llama_allocate(void **state)
{
    check_kind(DT_MODEL_LLAMA);
}

static void test_the_estimate_is_what_ranks_that_divide_layers_allocate(void **state)
{
    check_ranks(DT_MODEL_TRANSFORMER, 4, 2, 0);
    check_ranks(DT_MODEL_LLAMA, 4, 4, 0);
}

static void test_the_estimate_is_what_ranks_that_shard_within_nodes_allocate(void **state)
{
    check_ranks(DT_MODEL_GPT2, 4, 1, 2);
    check_ranks(DT_MODEL_LLAMA, 4, 2, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_estimate_is_what_ranks_of_gpt2_allocate),
        cmocka_unit_test(test_the_estimate_is_what_ranks_of_an_mlp_allocate),
        cmocka_unit_test(test_the_estimate_is_what_ranks_of_a_llama_allocate),
        cmocka_unit_test(test_the_estimate_is_what_ranks_that_divide_layers_allocate),
        cmocka_unit_test(test_the_estimate_is_what_ranks_that_shard_within_nodes_allocate),
    };

    every_optimizer = argc > 1 && strcmp(argv[1], "all") == 0;
    return cmocka_run_group_tests_name("strategy: memory", tests, NULL, NULL);
}
