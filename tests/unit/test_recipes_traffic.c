/* The messages of a step, compared with lists written by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/architecture/architecture.h"
#include "recipes/cost/memory.h"
#include "recipes/cost/traffic.h"
#include "recipes/fields/fields.h"

/* Three blocks of 64: 12 * 64^2 + 13 * 64 = 49,984 elements; the root (128 + 32 + 2) * 64 = 10,368.
 * Stages of a micro-step: 0 embedding, 1 2 3 forward, 4 head, 5 6 7 backward, 8 embedding. */
#define BLOCK 49984
#define ROOT  10368

#define DATA     DT_TRAFFIC_DATA
#define REPLICAS DT_TRAFFIC_REPLICAS

static void fill(dt_recipe *recipe)
{
    dt_recipe_init(recipe);
    recipe->name = "three";
    recipe->model.layers = 3;
    recipe->model.heads = 2;
    recipe->model.embed = 64;
    recipe->model.vocab = 100;
    recipe->batch.tokens = 32;
    recipe->strategy.kind = DT_STRATEGY_FSDP;
    recipe->precision.kind = DT_PRECISION_BF16;
}

static void expect(const dt_recipe *recipe, int64_t world_size, int64_t node_ranks,
                   int64_t micro_steps, const dt_traffic_message *wanted, int64_t count)
{
    dt_traffic traffic;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(
        dt_traffic_make(&traffic, recipe, 0, world_size, node_ranks, micro_steps, &arena, NULL),
        DT_OK);
    assert_int_equal(traffic.stages, 9 * micro_steps);
    assert_int_equal(traffic.count, count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(traffic.messages[i].kind, wanted[i].kind);
        assert_int_equal(traffic.messages[i].bytes, wanted[i].bytes);
        assert_int_equal(traffic.messages[i].launched, wanted[i].launched);
        assert_int_equal(traffic.messages[i].needed, wanted[i].needed);
        assert_int_equal(traffic.messages[i].peers, wanted[i].peers);
    }
    dt_arena_release(&arena);
}
#define EXPECT(recipe, world_size, micro_steps, wanted) \
    expect(recipe, world_size, 0, micro_steps, wanted, sizeof(wanted) / sizeof((wanted)[0]))

static void test_the_units_are_those_of_the_parameter_count(void **state)
{
    const dt_memory_ranks one = {.world_size = 1, .replicas = 1};
    dt_model_config config;
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    dt_model_config_make(&config, &recipe, 0);
    dt_memory_estimate(&memory, &recipe, 0, &one);
    assert_int_equal(dt_model_unit_elems(&config, 0), ROOT);
    assert_int_equal(dt_model_unit_elems(&config, 1), BLOCK);
    assert_int_equal(memory.parameter_count, ROOT + 3 * BLOCK);
}

/* Buckets of 0.1 MB: 25,000 elements, the first of 10,000; only the last micro-step sends. */
static void test_ddp_sends_buckets_from_the_last_block_to_the_root(void **state)
{
    static const dt_traffic_message wanted[] = {
        {DT_TRAFFIC_ALL_REDUCE, 4 * 10000, 9 + 6, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 25000, 9 + 6, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 14984, 9 + 6, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 25000, 9 + 7, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 24984, 9 + 7, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 25000, 9 + 8, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * 24984, 9 + 8, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 4 * ROOT, 9 + 9, 18, DATA},
    };
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_DDP;
    recipe.strategy.bucket_mb = 0.1;
    recipe.strategy.first_bucket_mb = 0.04;
    EXPECT(&recipe, 4, 2, wanted);
}

/* Two slots for three blocks: block 1 has lost its slot when the backward pass comes to it. On
 * four ranks parts are multiples of 64: 10,368 and 49,984 already are. Gradients are sent in
 * fp32; the block two further down needs their memory. */
static void test_full_shards_are_gathered_ahead_and_reduced_behind(void **state)
{
    static const dt_traffic_message wanted[] = {
        {DT_TRAFFIC_ALL_GATHER, 2 * ROOT, 0, 0, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 0, 1, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 1, 2, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 2, 3, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 6, 7, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 6, 7, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 7, 9, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 8, 9, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * ROOT, 9, 9, DATA},
    };
    dt_recipe recipe;

    fill(&recipe);
    EXPECT(&recipe, 4, 1, wanted);
}

/* ZeRO-1: every unit once, gradients whole until the end. Seven ranks: parts of a multiple of
 * 7 * 16 = 112 elements, 93 * 112 = 10,416 and 447 * 112 = 50,064. */
static void test_zero_1_gathers_once_and_reduces_once(void **state)
{
    static const dt_traffic_message wanted[] = {
        {DT_TRAFFIC_ALL_GATHER, 2 * 10416, 0, 0, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * 50064, 0, 1, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * 50064, 1, 2, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * 50064, 2, 3, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * 50064, 9 + 6, 18, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * 50064, 9 + 7, 18, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * 50064, 9 + 8, 18, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * 10416, 9 + 9, 18, DATA},
    };
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.shard = DT_SHARD_OPTIMIZER;
    EXPECT(&recipe, 7, 2, wanted);
}

/* Compares the sums of each stage of a micro-step, and the bytes that a rank sends. */
static void expect_sums(const dt_recipe *recipe, const int64_t *wanted, int64_t stages,
                        double bytes)
{
    dt_traffic traffic;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_traffic_make(&traffic, recipe, 0, recipe->tensor.size, 0, 1, &arena, NULL),
                     DT_OK);
    assert_int_equal(traffic.count, 0);
    assert_int_equal(traffic.stages, stages);
    for (int64_t stage = 0; stage <= stages; stage++)
        assert_int_equal(dt_traffic_sums(&traffic, stage), stage < stages ? wanted[stage] : 0);
    assert_true(dt_traffic_sent_bytes(&traffic) == bytes);
    dt_arena_release(&arena);
}

/* Each sum is of B T C = 12 * 32 * 64 numbers in fp32, of which one of two ranks sends 2 * 1/2, one of four 2 * 3/4. */
static void test_tensor_ranks_sum_within_the_layers(void **state)
{
    static const int64_t decoder[] = {1, 2, 2, 2, 1, 2, 2, 2, 0};
    static const int64_t again[] = {1, 2, 2, 2, 1, 2, 3, 3, 0};
    /* two blocks of the encoder, one of the decoder, which also sums the gradient of the encoder's output */
    static const int64_t pairs[] = {2, 2, 2, 3, 1, 4, 2, 2, 0};
    static const int64_t pairs_again[] = {2, 2, 2, 3, 1, 4, 4, 4, 0};
    static const int64_t pairs_pre[] = {2, 2, 2, 3, 1, 4, 3, 3, 0};
    double each = 4.0 * 12 * 32 * 64;
    dt_recipe recipe;

    fill(&recipe);
    recipe.batch.sequences = 12;
    recipe.tensor.size = 2;
    expect_sums(&recipe, decoder, 9, 14 * each);
    recipe.activation_checkpointing = DT_RECOMPUTE_FULL;
    expect_sums(&recipe, again, 9, 16 * each);
    recipe.activation_checkpointing = DT_RECOMPUTE_NONE;
    recipe.model.kind = DT_MODEL_TRANSFORMER;
    recipe.model.heads = 4;
    recipe.model.ffn = 100;
    recipe.model.layers = 2;
    recipe.model.decoder_layers = 1;
    recipe.tensor.size = 4;
    expect_sums(&recipe, pairs, 9, 18 * 1.5 * each);
    recipe.activation_checkpointing = DT_RECOMPUTE_FULL;
    expect_sums(&recipe, pairs_again, 9, 22 * 1.5 * each);
    recipe.model.norm = DT_NORM_PRE;
    expect_sums(&recipe, pairs_pre, 9, 20 * 1.5 * each);
}

/* Four ranks on two nodes: parts of a half of a unit. Replicas sum them after the last micro-step, when the reduction of
 * the block two further down needs the buffer, and at the end. */
static void test_replicas_sum_parts_after_the_last_micro_step(void **state)
{
    static const dt_traffic_message wanted[] = {
        {DT_TRAFFIC_ALL_GATHER, 2 * ROOT, 0, 0, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 0, 1, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 1, 2, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 2, 3, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 6, 7, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 6, 7, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 7, 9 + 6, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 8, 9 + 5, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * ROOT, 9, 9 + 4, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 9 + 2, 9 + 3, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 9 + 6, 9 + 7, DATA},
        {DT_TRAFFIC_ALL_GATHER, 2 * BLOCK, 9 + 6, 9 + 7, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 9 + 7, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 2 * BLOCK, 9 + 7, 18, REPLICAS},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * BLOCK, 9 + 8, 18, DATA},
        {DT_TRAFFIC_REDUCE_SCATTER, 4 * ROOT, 9 + 9, 18, DATA},
        {DT_TRAFFIC_ALL_REDUCE, 2 * ROOT, 18, 18, REPLICAS},
        {DT_TRAFFIC_ALL_REDUCE, 2 * BLOCK, 18, 18, REPLICAS},
        {DT_TRAFFIC_ALL_REDUCE, 2 * BLOCK, 18, 18, REPLICAS},
    };
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.within = DT_WITHIN_NODE;
    expect(&recipe, 4, 2, 2, wanted, sizeof(wanted) / sizeof(wanted[0]));
}

static void across(const dt_recipe *recipe, int64_t world_size, int64_t node_ranks, double all,
                   double sums)
{
    dt_traffic traffic;
    dt_arena arena;
    double of_sums;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_traffic_make(&traffic, recipe, 0, world_size, node_ranks, 1, &arena, NULL),
                     DT_OK);
    assert_true(fabs(dt_traffic_across_bytes(&traffic, &of_sums) - all) <= 1e-6 * all);
    assert_true(fabs(of_sums - sums) <= 1e-6 * sums);
    dt_arena_release(&arena);
}

/* What leaves each of two nodes: half of what is gathered or divided, and what is summed. */
static void test_bytes_between_nodes(void **state)
{
    double all = ROOT + 3 * BLOCK, once = BLOCK;
    dt_recipe recipe;

    fill(&recipe);
    across(&recipe, 4, 0, 0, 0);
    across(&recipe, 4, 2, (2 * (all + once) + 4 * all) / 2, 0);
    recipe.strategy.within = DT_WITHIN_NODE;
    across(&recipe, 4, 2, 4 * all, 0); /* two ranks send the sums of their halves */
    recipe.strategy.reduce_dtype = DT_REDUCE_BF16;
    across(&recipe, 4, 2, 2 * all, 0);
    recipe.strategy.kind = DT_STRATEGY_DDP;
    recipe.strategy.within = DT_WITHIN_RUN;
    across(&recipe, 4, 2, 2 * all, 0);
    /* layers divided between the nodes: 2 sums for each block in each direction, and 2; */
    recipe.tensor.size = 4;
    recipe.tensor.across_nodes = true;
    across(&recipe, 4, 2, 14.0 * 4 * 64 * 32 * (double)recipe.batch.sequences,
           14.0 * 4 * 64 * 32 * (double)recipe.batch.sequences);
}

static void test_one_rank_sends_nothing_and_dp_has_no_communicator(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_traffic traffic;
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_DP;
    assert_int_equal(dt_traffic_make(&traffic, &recipe, 0, 1, 0, 1, &arena, &err), DT_OK);
    assert_int_equal(traffic.count, 0);
    assert_int_equal(dt_traffic_make(&traffic, &recipe, 0, 2, 0, 1, &arena, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "use 'ddp' or 'fsdp'"));
    dt_arena_release(&arena);
}

static void test_buckets_of_a_few_numbers_are_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_traffic traffic;
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_DDP;
    recipe.strategy.bucket_mb = 4e-6; /* 160,320 messages of one number */
    assert_int_equal(dt_traffic_make(&traffic, &recipe, 0, 2, 0, 1, &arena, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "raise 'strategy.bucket_mb'"));
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_units_are_those_of_the_parameter_count),
        cmocka_unit_test(test_ddp_sends_buckets_from_the_last_block_to_the_root),
        cmocka_unit_test(test_full_shards_are_gathered_ahead_and_reduced_behind),
        cmocka_unit_test(test_zero_1_gathers_once_and_reduces_once),
        cmocka_unit_test(test_tensor_ranks_sum_within_the_layers),
        cmocka_unit_test(test_replicas_sum_parts_after_the_last_micro_step),
        cmocka_unit_test(test_bytes_between_nodes),
        cmocka_unit_test(test_one_rank_sends_nothing_and_dp_has_no_communicator),
        cmocka_unit_test(test_buckets_of_a_few_numbers_are_refused),
    };

    return cmocka_run_group_tests_name("recipes: messages of a step", tests, NULL, NULL);
}
