/* The memory forecast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/cost/memory.h"
#include "recipes/cost/memory_int.h"
#include "recipes/fields/fields.h"

/* GPT-2 124M at batch 4 x 1024. */
static void fill(dt_recipe *recipe)
{
    dt_recipe_init(recipe);
    recipe->name = "one";
    recipe->model.layers = recipe->model.heads = 12;
    recipe->model.embed = 768;
    recipe->model.vocab = 50257;
    recipe->batch.sequences = 4;
    recipe->batch.tokens = 1024;
    recipe->schedule.steps = 1;
}

/* Estimates for one node. */
static void estimate(dt_memory *out, const dt_recipe *recipe, int64_t vocab)
{
    const dt_memory_ranks ranks = {.world_size = recipe->ranks, .replicas = 1};

    dt_memory_estimate(out, recipe, vocab, &ranks);
}

static void test_gpt2_small_has_its_published_number_of_parameters(void **state)
{
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    estimate(&memory, &recipe, 0);
    /* 124,439,808 as published, plus 47 rows of padding */
    assert_int_equal(memory.parameter_count, 124439808 + 47 * 768);
}

/* dp on a CPU: 16 + 8 bytes an element in fp32, 18 + 6 in bf16 (strategy/dp.c). */
static void test_replicas_of_a_process_count(void **state)
{
    const dt_memory_ranks four = {.world_size = 1, .replicas = 4},
                          one = {.world_size = 1, .replicas = 1};
    dt_memory memory, alone;
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_DP;
    dt_memory_estimate(&memory, &recipe, 0, &four);
    assert_int_equal(memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes,
                     (16 + 8 * 3) * memory.parameter_count);
    recipe.precision.kind = DT_PRECISION_BF16;
    dt_memory_estimate(&memory, &recipe, 0, &four);
    assert_int_equal(memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes,
                     (18 + 6 * 3) * memory.parameter_count);
    dt_memory_estimate(&alone, &recipe, 0, &one);
    assert_int_equal(memory.activations_bytes, 4 * alone.activations_bytes);
}

static void test_ddp_holds_16_bytes_a_parameter_in_fp32_and_18_in_bf16(void **state)
{
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes,
                     16 * memory.parameter_count);
    recipe.precision.kind = DT_PRECISION_BF16;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes,
                     18 * memory.parameter_count);
}

/* Bytes per parameter of a rank of W = 8, as in the tables at the top of the strategies. */
static void test_fsdp_holds_the_parts_of_its_shard_mode(void **state)
{
    static const struct {
        dt_shard_kind shard;
        dt_precision_kind precision;
        double whole, divided; /* bytes a parameter */
    } cases[] = {
        {DT_SHARD_OPTIMIZER, DT_PRECISION_BF16, 6, 12},
        {DT_SHARD_OPTIMIZER, DT_PRECISION_FP32, 8, 8},
        {DT_SHARD_GRADIENTS, DT_PRECISION_BF16, 2, 16},
        {DT_SHARD_GRADIENTS, DT_PRECISION_FP32, 4, 12},
        {DT_SHARD_FULL, DT_PRECISION_FP16, 0, 16},
        {DT_SHARD_FULL, DT_PRECISION_FP32, 0, 16},
    };
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_FSDP;
    recipe.ranks = 8;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t held;
        double expected;

        recipe.strategy.shard = cases[i].shard;
        recipe.precision.kind = cases[i].precision;
        estimate(&memory, &recipe, 0);
        held = memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes;
        expected = (cases[i].whole + cases[i].divided / 8) * (double)memory.parameter_count;
        assert_true((double)held >= expected && (double)held <= expected + 64);
    }
    recipe.strategy.reduce_each_micro_step = false; /* whole gradients until the last micro-step */
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.gradients_bytes, 4 * memory.parameter_count);
}

/* A rank of N holds (P - R) / N + R elements of P, of which R are of the residual stream's width or of positions. */
static void expect_held(const dt_recipe *recipe, int64_t stream)
{
    dt_memory memory;

    estimate(&memory, recipe, 0);
    assert_int_equal(memory.held_count,
                     (memory.parameter_count - stream) / recipe->tensor.size + stream);
    assert_int_equal(memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes,
                     16 * memory.held_count);
}

static void test_tensor_ranks_hold_their_part_of_every_layer(void **state)
{
    int64_t C = 768;
    dt_memory whole, part;
    dt_recipe recipe;

    fill(&recipe);
    for (int64_t tensor = 2; tensor <= 6; tensor += 2) {
        recipe.tensor.size = recipe.ranks = tensor;
        expect_held(&recipe, 12 * 6 * C + 2 * C + 1024 * C); /* two norms, two biases a block */
    }
    recipe.tensor.size = recipe.ranks = 4;
    recipe.model.kind = DT_MODEL_TRANSFORMER;
    recipe.model.ffn = 3072;
    recipe.model.source_vocab = 20000;
    recipe.model.decoder_layers = 3;
    /* one norm more and one bias more in each block of the decoder; positions of both sides */
    expect_held(&recipe, 12 * 6 * C + 3 * 9 * C + 2 * 1024 * C);
    estimate(&part, &recipe, 0);
    recipe.tensor.size = 1;
    estimate(&whole, &recipe, 0);
    assert_true(part.activations_bytes < whole.activations_bytes * 2 / 3);
    assert_int_equal(part.parameter_count, whole.parameter_count);
}

static void test_full_sharding_gathers_the_root_and_two_blocks_or_all(void **state)
{
    int64_t block = 12 * 768 * 768 + 13 * 768, two, all;
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_FSDP;
    recipe.precision.kind = DT_PRECISION_BF16;
    recipe.ranks = 8;
    estimate(&memory, &recipe, 0);
    two = memory.buffers_bytes;
    recipe.strategy.reshard_after_forward = false;
    estimate(&memory, &recipe, 0);
    all = memory.buffers_bytes;
    assert_int_equal(all - two, 10 * block * 2);
}

static void test_the_optimizer_holds_its_moments(void **state)
{
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    recipe.optimizer.kind = DT_OPTIMIZER_SGD;
    recipe.optimizer.momentum = 0;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.optimizer_bytes, 0);
    recipe.optimizer.momentum = 0.9;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.optimizer_bytes, 4 * memory.parameter_count);
}

static void test_a_head_of_its_own_counts_and_sinusoidal_positions_do_not(void **state)
{
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    recipe.model.tied = false;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.parameter_count, 124439808 + 47 * 768 + 50304 * 768);
    recipe.model.positions = DT_POSITIONS_SINUSOIDAL;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.parameter_count, 124439808 + 47 * 768 + 50304 * 768 - 1024 * 768);
}

static void test_activations_follow_the_formula(void **state)
{
    dt_memory memory;
    dt_recipe recipe;
    int64_t rows = 4 * 1024, act = (12 * 12 + 3) * 768 * 2, stats = 4 * (12 * 16 + 3);
    int64_t row = 50304 * 2, logits = (64 << 20) / row * row; /* of a chunk */

    fill(&recipe);
    recipe.precision.kind = DT_PRECISION_BF16;
    estimate(&memory, &recipe, 0);
    assert_int_equal(memory.activations_bytes, rows * (act + stats) + logits);
    assert_int_equal(memory.total_bytes, memory.parameters_bytes + memory.gradients_bytes +
                                             memory.optimizer_bytes + memory.activations_bytes +
                                             memory.buffers_bytes);
}

/* If a save comes before the end and the memory is the host's: values and both moments of AdamW. */
static void test_a_save_beside_training_takes_a_copy(void **state)
{
    static const dt_memory_ranks hosts = {.world_size = 4, .replicas = 1, .host = true},
                                 cards = {.world_size = 4, .replicas = 1};
    dt_memory memory, without;
    dt_recipe recipe;

    fill(&recipe);
    recipe.schedule.steps = 100;
    recipe.checkpoint.every = 10;
    dt_memory_estimate(&memory, &recipe, 0, &hosts);
    dt_memory_estimate(&without, &recipe, 0, &cards);
    assert_int_equal(memory.copy_bytes, 12 * memory.parameter_count);
    assert_int_equal(memory.total_bytes - memory.runtime_bytes,
                     without.total_bytes - without.runtime_bytes + memory.copy_bytes);
    recipe.strategy.kind = DT_STRATEGY_FSDP;
    dt_memory_estimate(&memory, &recipe, 0, &hosts);
    assert_int_equal(memory.copy_bytes, 12 * ((memory.parameter_count + 3) / 4));
    recipe.checkpoint.every = 100; /* the last save is not in the background */
    recipe.checkpoint.keep_best = 0;
    dt_memory_estimate(&memory, &recipe, 0, &hosts);
    assert_int_equal(memory.copy_bytes, 0);
}

static int64_t runtime_of(const dt_recipe *recipe, const dt_memory_ranks *ranks)
{
    dt_memory memory;

    dt_memory_estimate(&memory, recipe, 50257, ranks);
    return memory.runtime_bytes;
}

/* A shared segment for the ranks of a node, one more message between nodes, packed operands for
 * each thread, and fp32 copies where products of 16-bit numbers are computed in fp32. */
static void test_a_rank_on_the_host_counts_what_it_works_in(void **state)
{
    static const dt_memory_ranks one = {.world_size = 1, .replicas = 1, .host = true},
                                 node = {.world_size = 4, .replicas = 1, .host = true},
                                 two = {.world_size = 4,
                                        .replicas = 1,
                                        .host = true,
                                        .node_ranks = 2},
                                 many = {
                                     .world_size = 1, .replicas = 2, .host = true, .threads = 4};
    int64_t alone, wide;
    dt_recipe recipe;

    fill(&recipe);
    recipe.threads = 1;
    recipe.precision.kind = DT_PRECISION_FP32;
    alone = runtime_of(&recipe, &one);
    assert_int_equal(runtime_of(&recipe, &node) - alone, 10 * DT_MEMORY_SLOT_BYTES);
    assert_true(runtime_of(&recipe, &two) - alone > 6 * DT_MEMORY_SLOT_BYTES);
    assert_int_equal(runtime_of(&recipe, &many) - alone, 7 * (7 << 20));
    recipe.precision.kind = DT_PRECISION_BF16;
    wide = runtime_of(&recipe, &one) - alone;
    assert_true(wide >= 4 * 50304 * recipe.model.embed); /* at least the head's weight */
    assert_true(wide <= 2 * 4 * 50304 * recipe.model.embed + (1 << 20));
}

/* The buffers of NCCL's channels do not depend on the messages. */
static void test_a_rank_on_a_gpu_counts_channels_and_no_message(void **state)
{
    static const dt_memory_ranks one = {.world_size = 1, .replicas = 1},
                                 node = {.world_size = 8, .replicas = 1, .node_ranks = 8},
                                 two = {.world_size = 8, .replicas = 1, .node_ranks = 4};
    const int64_t ring = 32 * ((int64_t)12 << 20);
    int64_t alone;
    dt_recipe recipe;

    fill(&recipe);
    recipe.strategy.kind = DT_STRATEGY_FSDP;
    alone = runtime_of(&recipe, &one);
    assert_int_equal(runtime_of(&recipe, &node) - alone, ring);
    assert_int_equal(runtime_of(&recipe, &two) - alone, ring);
    recipe.model.embed *= 8; /* its largest unit is 1.6 GB */
    assert_int_equal(runtime_of(&recipe, &node) - alone, ring);
    recipe.strategy.kind = DT_STRATEGY_DDP; /* a tree has two neighbours */
    assert_int_equal(runtime_of(&recipe, &node) - alone, 3 * ring);
}

static void test_the_vocabulary_is_the_recipes_or_the_datas(void **state)
{
    dt_memory recipes, datas, unknown, small;
    dt_recipe recipe;

    fill(&recipe);
    estimate(&recipes, &recipe, 65);
    recipe.model.vocab = 0;
    estimate(&datas, &recipe, 50257);
    estimate(&unknown, &recipe, 0);
    estimate(&small, &recipe, 65);
    assert_int_equal(recipes.parameter_count, datas.parameter_count);
    assert_int_equal(datas.parameter_count - unknown.parameter_count, (50304 - 256) * 768);
    assert_int_equal(unknown.parameter_count - small.parameter_count, (256 - 128) * 768);
}

static void test_what_does_not_fit_is_refused_with_the_table(void **state)
{
    const dt_memory_ranks alone = {.world_size = 1, .replicas = 1};
    dt_error err = DT_ERROR_INIT;
    dt_memory memory;
    dt_recipe recipe;

    fill(&recipe);
    estimate(&memory, &recipe, 0);
    assert_int_equal(
        dt_memory_check(&recipe, 0, &alone, 2, 2 * memory.total_bytes, "localhost", &err), DT_OK);
    assert_int_equal(
        dt_memory_check(&recipe, 0, &alone, 2, 2 * memory.total_bytes - 1, "localhost", &err),
        DT_ERR_RECIPE);
    dt_error_clear(&err);
    dt_memory_check(&recipe, 0, &alone, 2, 7000000000, "localhost", &err);
    assert_string_equal(
        err.message,
        "the run does not fit into the memory of 'localhost': 2 ranks need 8.0 GB, 7.0 GB "
        "available\n"
        "  parameters     497.9 MB  124475904 x 4 bytes\n"
        "  gradients      497.9 MB  124475904 x 4 bytes\n"
        "  optimizer      995.8 MB  124475904 x 8 bytes, two moments\n"
        "  activations      1.9 GB  batch 4 x 1024 tokens x 12 layers\n"
        "  buffers         67.2 MB  tokens, gradients being sent, the program\n"
        "  a rank           4.0 GB  in all\n"
        "lower 'batch.sequences' or 'batch.tokens', take 'activation_checkpointing: full', the "
        "model's size, or 'ranks'");
}

static void test_the_largest_recipe_does_not_overflow(void **state)
{
    const dt_memory_ranks alone = {.world_size = 1, .replicas = 1};
    dt_error err = DT_ERROR_INIT;
    dt_memory memory;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].type == DT_FIELD_INT)
            *(int64_t *)((char *)&recipe + dt_fields[i].offset) = (int64_t)dt_fields[i].high;
    estimate(&memory, &recipe, 0);
    assert_true(memory.total_bytes > (int64_t)1 << 60);
    assert_int_equal(dt_memory_check(&recipe, 0, &alone, 1024, INT64_MAX - 1, "localhost", &err),
                     DT_ERR_RECIPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_small_has_its_published_number_of_parameters),
        cmocka_unit_test(test_replicas_of_a_process_count),
        cmocka_unit_test(test_ddp_holds_16_bytes_a_parameter_in_fp32_and_18_in_bf16),
        cmocka_unit_test(test_fsdp_holds_the_parts_of_its_shard_mode),
        cmocka_unit_test(test_tensor_ranks_hold_their_part_of_every_layer),
        cmocka_unit_test(test_full_sharding_gathers_the_root_and_two_blocks_or_all),
        cmocka_unit_test(test_the_optimizer_holds_its_moments),
        cmocka_unit_test(test_a_head_of_its_own_counts_and_sinusoidal_positions_do_not),
        cmocka_unit_test(test_activations_follow_the_formula),
        cmocka_unit_test(test_a_save_beside_training_takes_a_copy),
        cmocka_unit_test(test_a_rank_on_the_host_counts_what_it_works_in),
        cmocka_unit_test(test_a_rank_on_a_gpu_counts_channels_and_no_message),
        cmocka_unit_test(test_the_vocabulary_is_the_recipes_or_the_datas),
        cmocka_unit_test(test_what_does_not_fit_is_refused_with_the_table),
        cmocka_unit_test(test_the_largest_recipe_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
