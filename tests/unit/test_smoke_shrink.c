/* How a smoke test changes a recipe, and how faults are parsed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/read/reader.h"
#include "runner/smoke/smoke.h"

static void read_recipe(dt_recipe *out, const char *text, dt_arena *arena)
{
    const dt_recipe_source source = {.path = "big.yaml", .text = text};
    dt_error err = DT_ERROR_INIT;

    if (dt_recipe_read(out, &source, arena, &err) != DT_OK)
        fail_msg("%s", err.message);
}

static void test_a_large_recipe_becomes_small_and_keeps_its_ways(void **state)
{
    const dt_shrink how = {.steps = 12};
    dt_recipe recipe, out;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    read_recipe(
        &recipe,
        "nodes: 'gpu[01-04]'\ngpus: 8\nstrategy: {kind: fsdp, shard: optimizer}\nmodel: gpt2-xl\n"
        "data: a.txt\nprecision: bf16\nbatch: {sequences: 16, tokens: 1024, accumulate: 8}\n"
        "schedule: {steps: 120000, warmup_steps: 40000, period_steps: 10}\n"
        "notify: 'https://a.b/c'\ntime_limit: 3d\nevaluate: {every: 0, sequences: 0}\n",
        &arena);
    dt_shrink_recipe(&out, &recipe, &how);
    assert_int_equal(dt_shrink_ranks_asked(&recipe), 32);
    assert_int_equal(out.nodes.count, 1);
    assert_string_equal(out.nodes.items[0], "localhost");
    assert_int_equal(out.gpus, 0);
    assert_int_equal(out.ranks, 2);
    assert_int_equal(out.strategy.kind, DT_STRATEGY_FSDP);
    assert_int_equal(out.strategy.shard, DT_SHARD_OPTIMIZER);
    assert_int_equal(out.precision.kind, DT_PRECISION_BF16);
    assert_int_equal(out.model.embed % out.model.heads, 0);
    assert_true(out.model.embed <= 64 && out.model.layers <= 2);
    assert_int_equal(out.schedule.steps, 12);
    assert_int_equal(out.schedule.warmup_steps, 4);
    assert_int_equal(out.schedule.period_steps, 1);
    assert_int_equal(out.evaluate.every, 0);
    assert_true(out.evaluate.sequences > 0 && out.time_limit_seconds == 0);
    assert_string_equal(out.notify.webhook, "");
    dt_arena_release(&arena);
}

static void test_an_adapter_shrinks_with_its_model(void **state)
{
    const dt_shrink how = {.steps = 12};
    dt_recipe recipe, out;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    read_recipe(&recipe,
                "model: {from: tests/golden/huggingface/llama}\ndata: {train: a.txt, tokenizer: "
                "char}\nlora: {rank: 4, alpha: 32}\nschedule: {steps: 5}\n",
                &arena);
    recipe.lora.rank = 32;
    recipe.lora.from = "a";
    dt_shrink_recipe(&out, &recipe, &how);
    assert_int_equal(out.lora.rank, 8);
    assert_true(out.lora.alpha == 8);
    assert_string_equal(out.lora.from, "");
    dt_arena_release(&arena);
}

static void test_full_keeps_model_and_batch(void **state)
{
    const dt_shrink how = {.steps = 8, .full = true, .ranks = 3};
    dt_recipe recipe, out;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    read_recipe(
        &recipe,
        "model: gpt2-small\ndata: a.txt\nschedule: {epochs: 2, warmup_steps: 100}\ngpus: 0\n",
        &arena);
    dt_shrink_recipe(&out, &recipe, &how);
    assert_int_equal(out.model.layers, 12);
    assert_int_equal(out.batch.tokens, recipe.batch.tokens);
    assert_int_equal(out.ranks, 3);
    assert_int_equal(out.schedule.epochs, 0);
    assert_true(out.schedule.warmup_steps >= 1 && out.schedule.warmup_steps < 8);
    assert_int_equal(dt_shrink_ranks_asked(&recipe), 1);
    dt_arena_release(&arena);
}

static void test_its_own_nodes_stay(void **state)
{
    const dt_shrink how = {.steps = 12, .here = true};
    dt_recipe recipe, out, one;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    read_recipe(&recipe,
                "nodes: 'gpu[01-04]'\ngpus: 8\nmodel: gpt2-xl\ndata: a.txt\nnodes_min: 3\n"
                "notify: 'https://a.b/c'\ntime_limit: 3d\nschedule: {steps: 1000}\n",
                &arena);
    dt_shrink_recipe(&out, &recipe, &how);
    assert_int_equal(out.nodes.count, 4);
    assert_string_equal(out.nodes.items[3], "gpu04");
    assert_int_equal(out.gpus, 8);
    assert_int_equal(out.nodes_min, 3);
    assert_int_equal(out.model.layers, 2);
    assert_string_equal(out.notify.webhook, "");
    dt_shrink_to_one(&one, &out);
    assert_int_equal(one.nodes.count, 1);
    assert_int_equal(one.gpus, 1);
    assert_int_equal(one.nodes_min, 0);
    dt_arena_release(&arena);
}

static void test_ranks_of_one_machine_become_nodes(void **state)
{
    const dt_shrink how = {.steps = 12, .ranks = 3};
    dt_recipe recipe, out;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    read_recipe(&recipe, "model: gpt2-xl\ndata: a.txt\nschedule: {steps: 1000}\n", &arena);
    dt_shrink_recipe(&out, &recipe, &how);
    dt_shrink_spread(&out);
    assert_int_equal(out.nodes.count, 3);
    assert_string_equal(out.nodes.items[2], "localhost#3");
    assert_int_equal(out.ranks, 1);
    dt_arena_release(&arena);
}

static void test_faults_are_read_as_they_are_written(void **state)
{
    static const struct {
        const char *text, *planted; /* NULL: refused */
        int kind;
    } cases[] = {
        {"rank=1@3", "DTRUN_FAULT=kill 1@3", 0},
        {"1@3", "DTRUN_FAULT=kill 1@3", 0},
        {"@3", "DTRUN_FAULT=kill 0@3", 0},
        {"1@2x4", "DTRUN_FAULT=slow 1@2x4", 2},
        {"rank=0@2", "DTRUN_FAULT=slow 0@2x2", 2},
        {"@6", "DTRUN_FAULT=full 0@6", 3},
        {"rank=0@7", "DTRUN_FAULT=flip 0@7", 4},
        {"node=2@4:10s", "DTRUN_CUT=1@4:10", 5},
        {"1@4:2.5", "DTRUN_CUT=0@4:2.5", 5},
        {"node=1@4", "DTRUN_CUT=0@4:10", 5},
        {"node=0@4:10s", NULL, 5},
        {"node=1@4:0s", NULL, 5},
        {"node=1@4x10", NULL, 5},
        {"node=1@4:10m", NULL, 5},
        {"node=1@4:10s ", NULL, 5},
        {"rank=1@4:10s", NULL, 5},
        {"rank=one", NULL, 0},
        {"1@0", NULL, 0},
        {"1@3x4", NULL, 0},
        {"-1@3", NULL, 0},
        {"1@2x0.5", NULL, 2},
        {"", NULL, 1},
        {"1@3 ", NULL, 1},
        {"@3@4", NULL, 1},
    };
    dt_smoke_fault fault;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_status st = dt_smoke_fault_read(&fault, &dt_smoke_fault_kinds[cases[i].kind],
                                           cases[i].text, &arena, &err);

        assert_int_equal(st, cases[i].planted != NULL ? DT_OK : DT_ERR_USAGE);
        if (st == DT_OK)
            assert_string_equal(fault.planted, cases[i].planted);
    }
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_recipe_becomes_small_and_keeps_its_ways),
        cmocka_unit_test(test_an_adapter_shrinks_with_its_model),
        cmocka_unit_test(test_full_keeps_model_and_batch),
        cmocka_unit_test(test_its_own_nodes_stay),
        cmocka_unit_test(test_ranks_of_one_machine_become_nodes),
        cmocka_unit_test(test_faults_are_read_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
