/* Predicted times of messages and steps, compared with numbers calculated by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "engine/model/model.h"
#include "recipes/fields/fields.h"
#include "runner/predict/predict.h"

#define US 1e-6

static void expect_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g is not %.12g", value, wanted);
}

/* --- one message */

static const dt_fabric one_node = {1, 8, true, 360, 376};
static const dt_fabric two_nodes = {2, 8, true, 360, 376};
static const dt_fabric thousand = {128, 8, true, 360, 376};

static void test_large_messages_take_their_bytes_over_the_bus(void **state)
{
    /* ring, simple: 8.4 + 7 * 3.4 us; 7/8 of 1.8 GB at 360 GB/s: 4,375 us */
    expect_near(dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_GATHER, 1800000000),
                (8.4 + 7 * 3.4 + 4375) * US);
    expect_near(dt_collective_seconds(&one_node, DT_TRAFFIC_REDUCE_SCATTER, 1800000000),
                (8.4 + 7 * 3.4 + 4375) * US);
    /* twice the steps and the bytes */
    expect_near(dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_REDUCE, 1800000000),
                (8.4 + 14 * 3.4 + 8750) * US);
    /* 15 steps, one of them over the network; 15/16 of 1.8 GB at 360: 4,687.5 us */
    expect_near(dt_collective_seconds(&two_nodes, DT_TRAFFIC_ALL_GATHER, 1800000000),
                (8.4 + 14 * 3.4 + 9.6 + 4687.5) * US);
}

static void test_small_messages_take_the_latency_of_the_best_way(void **state)
{
    /* ring, LL: 3.6 + 7 * 0.47 us; 7/8 of 1,024 bytes at 120 GB/s: 7.467 ns */
    expect_near(dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_GATHER, 1024),
                (3.6 + 7 * 0.47 + 0.875 * 1024 / 120e3) * US);
    /* a tree with LL: 4.4 + 2 * (7 * 0.52 * 1.8 + 7 * 5.0) us; 2 * 8 bytes at 360 * 0.9 / 3.8 */
    expect_near(dt_collective_seconds(&thousand, DT_TRAFFIC_ALL_REDUCE, 8),
                (4.4 + 2 * (7 * 0.52 * 1.8 + 7 * 5.0) + 16 / (360e3 * 0.9 / 3.8)) * US);
}

/* 25 MB on 1,024 GPUs, a tree with LL128: 4.4 + 2 * (7 * 1.2 + 7 * 8.5) us, and 50 MB at
 * 360 * 0.9 * 0.915 GB/s: 168.7 us. A ring would take milliseconds of latency. */
static void test_trees_carry_buckets_among_many_nodes(void **state)
{
    expect_near(dt_collective_seconds(&thousand, DT_TRAFFIC_ALL_REDUCE, 25000000),
                (4.4 + 2 * (7 * 1.2 + 7 * 8.5) + 50e6 / (360e3 * 0.9 * 0.915)) * US);
}

static void test_the_slowest_link_sets_the_bandwidth(void **state)
{
    dt_fabric slow = {2, 8, true, 360, 11}, single = {2, 1, true, 360, 11},
              alone = {1, 1, true, 1, 1};

    expect_near(dt_fabric_bus_gbs(&one_node), 360);
    expect_near(dt_fabric_bus_gbs(&slow), 11);
    single.node_gbs = 5; /* a node has one GPU */
    expect_near(dt_fabric_bus_gbs(&single), 11);
    expect_near(dt_collective_seconds(&alone, DT_TRAFFIC_ALL_REDUCE, 1 << 20), 0);
}

/* --- a step */

/* GPT-2 124M, 32 x 1024 tokens, bf16, on GPUs of 1000 TFLOP/s at 50 %. */
static void fill(dt_recipe *recipe, dt_machine *machine)
{
    dt_recipe_init(recipe);
    recipe->name = "one";
    recipe->model.layers = recipe->model.heads = 12;
    recipe->model.embed = 768;
    recipe->model.vocab = 50257;
    recipe->batch.sequences = 32;
    recipe->batch.tokens = 1024;
    recipe->precision.kind = DT_PRECISION_BF16;
    recipe->strategy.kind = DT_STRATEGY_DDP;
    *machine = (dt_machine){one_node, 1000, 1000, 0.5, 3350, 80e9};
}

static void predict(dt_prediction *out, const dt_recipe *recipe, const dt_machine *machine)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_predict(out, recipe, 0, machine, &arena, NULL), DT_OK);
    dt_arena_release(&arena);
}

/* 6 (12 * 12 * 768^2 + 50257 * 768) + 12 * 12 * 768 * 1024 = 854,438,400 FLOPs a token, as the
 * engine counts them. Times 32,768 tokens over 5e14 a second: 55.996 ms. The update: 124,475,904
 * elements x 38 bytes over 0.85 * 3350 GB/s. */
static void test_one_card_takes_its_flops_and_its_update(void **state)
{
    dt_model_config config = {.decoder.layers = 12,
                              .decoder.embed = 768,
                              .decoder.vocab = 50257,
                              .tokens = 1024,
                              .batch = 32};
    dt_prediction out;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    machine.fabric.node_gpus = 1;
    predict(&out, &recipe, &machine);
    expect_near(out.token_flops, 854438400);
    expect_near(out.token_flops, dt_model_flops_per_token(&config));
    expect_near(out.pass_seconds, 854438400.0 * 32768 / 5e14);
    expect_near(out.update_seconds, 124475904.0 * 38 / (0.85 * 3350e9));
    expect_near(out.step_seconds, out.pass_seconds + out.update_seconds);
    expect_near(out.tokens_per_second, 32768 / out.step_seconds);
    expect_near(out.mfu, 854438400 * out.tokens_per_second / 1e15);
    expect_near(out.efficiency, 1);
    expect_near(out.exposed_seconds, 0);
}

/* 5 (4 S^2 L + 2 S^3) of a matrix: 280 C^3 of a block; fp32 has its own rate. */
static void test_whole_matrices_take_their_flops_and_are_divided(void **state)
{
    double block = 280.0 * 768 * 768 * 768;
    dt_prediction adamw, alone, eight, sharded;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    predict(&eight, &recipe, &machine);
    assert_true(eight.matrix_flops == 0);
    machine.fabric.node_gpus = 1;
    predict(&adamw, &recipe, &machine);
    recipe.optimizer.kind = DT_OPTIMIZER_MUON;
    machine.matrix_tflops = 250;
    predict(&alone, &recipe, &machine);
    expect_near(alone.matrix_flops, 12 * block);
    assert_true(alone.update_seconds > 12 * block / 125e12 && alone.mfu < adamw.mfu);
    expect_near(alone.token_flops, adamw.token_flops);

    machine.fabric.node_gpus = 8;
    predict(&eight, &recipe, &machine); /* one and a half blocks, to within a matrix */
    assert_true(eight.matrix_flops >= 1.5 * block && eight.matrix_flops < 1.9 * block);
    assert_int_equal(eight.messages[DT_TRAFFIC_BROADCAST].count, 4 * 12);
    expect_near(eight.messages[DT_TRAFFIC_BROADCAST].bytes, 4.0 * 12 * 12 * 768 * 768);
    recipe.strategy.kind = DT_STRATEGY_FSDP; /* a part of every block */
    predict(&sharded, &recipe, &machine);
    assert_true(sharded.matrix_flops > 12 * block / 8 && sharded.matrix_flops < 12 * block);
}

/* Gradients of a block, 7,087,872 elements, are 28.4 MB: 0.14 ms on the bus, against 2.9 ms of computation. All are
 * hidden except those of the root (39,421,440 elements: 6 buckets of 25 MB and one of 7.7 MB) and of block 1, which
 * is computed last. */
static void test_ddp_waits_for_the_root_and_the_first_block(void **state)
{
    double bucket, rest, tail;
    dt_prediction out;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    predict(&out, &recipe, &machine);
    bucket = dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_REDUCE, 25000000);
    rest = dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_REDUCE, 28351488 - 25000000);
    tail = dt_collective_seconds(&one_node, DT_TRAFFIC_ALL_REDUCE, 4 * 39421440 - 6 * 25000000);
    expect_near(out.exposed_seconds, bucket + rest + 6 * bucket + tail);
    expect_near(out.messages[DT_TRAFFIC_ALL_REDUCE].bytes, 4 * 124475904.0);
    /* 12 blocks of two buckets, one of them with a smaller first bucket: 3; the root: 7 */
    assert_int_equal(out.messages[DT_TRAFFIC_ALL_REDUCE].count, 11 * 2 + 3 + 7);
}

/* Every micro-step after the second costs the same: extrapolation equals simulation. */
/* Two GPUs that divide layers do half the work of a token, half the update, and wait for 4 L + 2 sums of the residual
 * stream in fp32. */
static void test_tensor_ranks_wait_for_their_sums(void **state)
{
    const dt_fabric two = {1, 2, true, 360, 376};
    double sum = dt_collective_seconds(&two, DT_TRAFFIC_ALL_REDUCE, (int64_t)4 * 32768 * 768);
    dt_prediction one, out;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    machine.fabric.node_gpus = 1;
    predict(&one, &recipe, &machine);
    machine.fabric.node_gpus = recipe.tensor.size = 2;
    predict(&out, &recipe, &machine);
    expect_near(out.pass_seconds, one.pass_seconds / 2);
    expect_near(out.exposed_seconds, 50 * sum);
    assert_int_equal(out.messages[DT_TRAFFIC_ALL_REDUCE].count, 50);
    expect_near(out.step_tokens, one.step_tokens);
    assert_true(out.update_seconds > one.update_seconds / 2);
    assert_true(out.update_seconds < one.update_seconds * 0.51);
}

static void test_many_micro_steps_are_as_their_sum(void **state)
{
    dt_prediction few, more, most;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    recipe.strategy.kind = DT_STRATEGY_FSDP;
    machine.fabric = thousand;
    recipe.batch.accumulate = 4;
    predict(&few, &recipe, &machine);
    recipe.batch.accumulate = 5;
    predict(&more, &recipe, &machine);
    recipe.batch.accumulate = 104;
    predict(&most, &recipe, &machine);
    expect_near(most.pass_seconds, 26 * few.pass_seconds);
    expect_near(most.step_seconds - few.step_seconds, 100 * (more.step_seconds - few.step_seconds));
    assert_int_equal(most.messages[DT_TRAFFIC_REDUCE_SCATTER].count, 104 * 13);
    /* the first pass gathers 13 units, and each of the 207 others all blocks but two */
    assert_int_equal(most.messages[DT_TRAFFIC_ALL_GATHER].count, 13 + 207 * 10);
}

/* All blocks but the last compute (16 C^2 + 4 T C) rows again; the MFU does not count this. */
static void test_recomputation_takes_time_and_counts_for_nothing(void **state)
{
    double again = 11.0 * 32768 * (16 * 768.0 * 768 + 4 * 1024.0 * 768) / 5e14;
    dt_prediction plain, out;
    dt_machine machine;
    dt_recipe recipe;

    fill(&recipe, &machine);
    predict(&plain, &recipe, &machine);
    recipe.activation_checkpointing = DT_RECOMPUTE_FULL;
    predict(&out, &recipe, &machine);
    expect_near(out.pass_seconds, plain.pass_seconds + again);
    expect_near(out.token_flops, plain.token_flops);
    assert_true(out.mfu < plain.mfu);
    assert_true(out.memory.activations_bytes < plain.memory.activations_bytes);
}

static void test_overlap_ends_sooner_on_a_slower_network(void **state)
{
    int64_t fast, slow;
    dt_machine machine;
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fill(&recipe, &machine);
    assert_int_equal(dt_predict_overlap_end(&fast, &recipe, 0, &machine, &arena, NULL), DT_OK);
    machine.fabric.network_gbs = 11;
    assert_int_equal(dt_predict_overlap_end(&slow, &recipe, 0, &machine, &arena, NULL), DT_OK);
    assert_int_equal(slow, 16);
    assert_true(fast > 1024);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_messages_take_their_bytes_over_the_bus),
        cmocka_unit_test(test_small_messages_take_the_latency_of_the_best_way),
        cmocka_unit_test(test_trees_carry_buckets_among_many_nodes),
        cmocka_unit_test(test_the_slowest_link_sets_the_bandwidth),
        cmocka_unit_test(test_one_card_takes_its_flops_and_its_update),
        cmocka_unit_test(test_whole_matrices_take_their_flops_and_are_divided),
        cmocka_unit_test(test_ddp_waits_for_the_root_and_the_first_block),
        cmocka_unit_test(test_tensor_ranks_wait_for_their_sums),
        cmocka_unit_test(test_many_micro_steps_are_as_their_sum),
        cmocka_unit_test(test_recomputation_takes_time_and_counts_for_nothing),
        cmocka_unit_test(test_overlap_ends_sooner_on_a_slower_network),
    };

    return cmocka_run_group_tests_name("plan: predictions", tests, NULL, NULL);
}
