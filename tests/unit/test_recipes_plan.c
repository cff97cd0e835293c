/* The plan: made from a recipe, and read back with every value checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "recipes/fields/fields.h"
#include "recipes/plan/plan.h"

static int make(void **state)
{
    dt_arena *arena = calloc(1, sizeof(*arena));

    dt_arena_init(arena, 0);
    *state = arena;
    return 0;
}

static int clean(void **state)
{
    dt_arena_release(*state);
    free(*state);
    return 0;
}

/* Makes a plan with two ranks on each of `nodes` nodes. */
static void make_plan(dt_plan *plan, int64_t nodes, dt_arena *arena)
{
    static const char *names[] = {"localhost", "other"}, *train[] = {"/a.txt"};
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.name = "one";
    recipe.nodes.items = names;
    recipe.nodes.count = nodes;
    recipe.ranks = 2;
    recipe.model.layers = recipe.model.heads = recipe.model.embed = 1;
    recipe.data.train.items = train;
    recipe.data.train.count = 1;
    recipe.schedule.steps = 10;
    assert_int_equal(dt_plan_make(plan, &recipe, 7, arena, NULL), DT_OK);
    plan->run = "k3v9x2";
    plan->attempt = 1;
    plan->directory = "/runs/k3v9x2/checkpoints";
}

static void test_ranks_are_laid_on_nodes_in_order_with_the_cores_divided(void **state)
{
    dt_plan plan;

    make_plan(&plan, 2, *state);
    assert_int_equal(plan.world_size, 4);
    assert_int_equal(plan.node_count, 2);
    assert_string_equal(plan.node_names[1], "other");
    for (int64_t i = 0; i < 4; i++) {
        assert_int_equal(plan.ranks[i].node, i / 2);
        assert_int_equal(plan.ranks[i].local_rank, i % 2);
        assert_string_equal(plan.ranks[i].device, "cpu");
        assert_int_equal(plan.ranks[i].threads, 3);
    }
    assert_string_equal(plan.resume_from, "");
}

static void test_ranks_that_divide_layers_are_on_one_node(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_plan plan;

    make_plan(&plan, 2, *state);
    plan.recipe.tensor.size = 2;
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_OK);
    assert_int_equal(dt_plan_replicas(&plan), 2); /* that read different samples */
    plan.recipe.tensor.size = 4;
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'localhost' has 2 ranks, not a multiple of 'tensor' 4"));
    plan.recipe.tensor.across_nodes = true;
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_OK);
    plan.recipe.tensor.size = 3;
    err = (dt_error)DT_ERROR_INIT;
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "the nodes have 4 ranks, not a multiple of 'tensor' 3"));
}

static void test_nodes_that_hold_copies_have_equal_numbers_of_ranks(void **state)
{
    static const char *names[] = {"a ranks=3", "me@b"};
    const int64_t cores[] = {6, 2};
    dt_error err = DT_ERROR_INIT;
    dt_plan plan, unequal;

    make_plan(&plan, 2, *state);
    plan.recipe.strategy.kind = DT_STRATEGY_FSDP;
    plan.recipe.strategy.within = DT_WITHIN_NODE;
    assert_int_equal(dt_plan_node_ranks(&plan), 2);
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_OK);
    plan.recipe.tensor.size = 4; /* a group has all ranks: no node has a whole copy of the model */
    plan.recipe.tensor.across_nodes = true;
    assert_int_equal(dt_plan_check_groups(&plan, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "a node has 2 ranks, not a multiple of 'tensor' 4"));
    plan.recipe.tensor.size = 1;
    plan.recipe.nodes.items = names;
    assert_int_equal(dt_plan_make_on(&unequal, &plan.recipe, cores, *state, NULL), DT_OK);
    assert_int_equal(dt_plan_node_ranks(&unequal), 0);
    err = (dt_error)DT_ERROR_INIT;
    assert_int_equal(dt_plan_check_groups(&unequal, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'a' has 3 and 'me@b' has 2"));
}

static void test_a_node_may_have_its_own_ranks_and_dp_has_one_process(void **state)
{
    static const char *names[] = {"a ranks=3", "me@b"};
    const int64_t cores[] = {6, 2};
    dt_plan plan, again;

    make_plan(&plan, 2, *state);
    plan.recipe.nodes.items = names;
    assert_int_equal(dt_plan_make_on(&again, &plan.recipe, cores, *state, NULL), DT_OK);
    assert_int_equal(again.world_size, 5);
    assert_string_equal(again.node_names[0], "a");
    assert_string_equal(again.node_names[1], "me@b");
    assert_int_equal(again.ranks[2].local_rank, 2);
    assert_int_equal(again.ranks[2].threads, 2);
    assert_int_equal(again.ranks[3].node, 1);
    assert_int_equal(again.ranks[3].threads, 1);

    plan.recipe.nodes.count = 1;
    plan.recipe.strategy.kind = DT_STRATEGY_DP;
    assert_int_equal(dt_plan_make_on(&again, &plan.recipe, cores, *state, NULL), DT_OK);
    assert_int_equal(again.world_size, 1);
    assert_int_equal(again.ranks[0].replicas, 3);
    assert_int_equal(again.ranks[0].threads, 2);
}

static void test_threads_of_the_recipe_win_and_are_at_least_one(void **state)
{
    dt_plan plan, again;

    make_plan(&plan, 1, *state);
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 1, *state, NULL), DT_OK);
    assert_int_equal(again.ranks[0].threads, 1);
    plan.recipe.threads = 5;
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 1, *state, NULL), DT_OK);
    assert_int_equal(again.ranks[1].threads, 5);
}

static void test_ranks_get_the_devices_that_are_found_or_asked_for(void **state)
{
    static const char *names[] = {"a gpus=1 ranks=2", "b", "c gpus=0"};
    const int64_t found[] = {4, 3, 8}, unknown[] = {-1, -1, -1}, few[] = {4, 1, 8};
    dt_error err = DT_ERROR_INIT;
    dt_plan plan, again;

    make_plan(&plan, 2, *state);
    plan.recipe.nodes = (dt_string_list){.items = names, .count = 3};
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 4, *state, NULL), DT_OK);
    assert_int_equal(dt_plan_use_devices(&again, found, *state, NULL), DT_OK);
    assert_int_equal(again.world_size, 2 + 3 + 2);
    assert_string_equal(again.ranks[0].device, "cuda:0"); /* shared by two ranks */
    assert_string_equal(again.ranks[1].device, "cuda:0");
    assert_string_equal(again.ranks[4].device, "cuda:2");
    assert_int_equal(again.ranks[4].node, 1);
    assert_int_equal(again.ranks[4].local_rank, 2);
    assert_string_equal(again.ranks[5].device, "cpu");
    assert_int_equal(again.ranks[5].threads, 2);

    plan.recipe.gpus = 2;
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 4, *state, NULL), DT_OK);
    assert_int_equal(dt_plan_use_devices(&again, few, *state, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'gpus' is 2, but 'b' has 1"));
    assert_int_equal(dt_plan_use_devices(&again, unknown, *state, NULL), DT_OK);
    assert_int_equal(again.world_size, 2 + 2 + 2);

    plan.recipe.nodes.items = names + 1;
    plan.recipe.nodes.count = 1;
    plan.recipe.gpus = -1;
    plan.recipe.strategy.kind = DT_STRATEGY_DP;
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 4, *state, NULL), DT_OK);
    assert_int_equal(dt_plan_use_devices(&again, found + 1, *state, NULL), DT_OK);
    assert_int_equal(again.world_size, 1);
    assert_int_equal(again.ranks[0].replicas, 3);
    assert_string_equal(again.ranks[0].device, "cuda:0");
}

static void test_a_command_has_processes_by_gpu_by_node_or_by_number(void **state)
{
    const int64_t found[] = {4}, none[] = {0};
    const struct {
        const char *processes;
        const int64_t *found;
        int64_t world, replicas;
        const char *last;
    } cases[] = {
        {"gpu", found, 4, 1, "cuda:3"},  {"gpu", none, 1, 1, "cpu"},
        {"node", found, 1, 4, "cuda:0"}, {"node", none, 1, 1, "cpu"},
        {"2", found, 2, 2, "cuda:2"},    {"8", found, 8, 1, "cuda:3"},
        {"3", none, 3, 1, "cpu"},
    };
    dt_error err = DT_ERROR_INIT;
    dt_plan plan, again;

    make_plan(&plan, 1, *state);
    plan.recipe.task = DT_TASK_COMMAND;
    plan.recipe.ranks = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        plan.recipe.processes = cases[i].processes;
        assert_int_equal(dt_plan_make(&again, &plan.recipe, 8, *state, NULL), DT_OK);
        assert_int_equal(dt_plan_use_devices(&again, cases[i].found, *state, NULL), DT_OK);
        assert_int_equal(again.world_size, cases[i].world);
        assert_int_equal(again.ranks[again.world_size - 1].replicas, cases[i].replicas);
        assert_string_equal(again.ranks[again.world_size - 1].device, cases[i].last);
    }
    plan.recipe.processes = "3";
    assert_int_equal(dt_plan_make(&again, &plan.recipe, 8, *state, NULL), DT_OK);
    assert_int_equal(dt_plan_use_devices(&again, found, *state, &err), DT_ERR_RECIPE);
}

static void test_a_plan_comes_back_from_its_json(void **state)
{
    dt_error err = DT_ERROR_INIT;
    char hash[33], back_hash[33];
    dt_plan plan, back;
    json_t *json;

    make_plan(&plan, 2, *state);
    plan.resume_from = "/runs/k3v9x2/checkpoints/step-00000100";
    json = dt_plan_to_json(&plan);
    assert_int_equal(dt_plan_from_json(&back, json, *state, &err), DT_OK);
    json_decref(json);
    assert_string_equal(back.run, "k3v9x2");
    assert_int_equal(back.attempt, 1);
    assert_string_equal(back.directory, plan.directory);
    assert_string_equal(back.resume_from, plan.resume_from);
    assert_int_equal(back.world_size, 4);
    assert_int_equal(back.ranks[3].node, 1);
    assert_int_equal(back.ranks[3].local_rank, 1);
    assert_int_equal(back.ranks[3].threads, 3);
    assert_string_equal(back.node_names[0], "localhost");
    dt_recipe_hash(hash, &plan.recipe);
    dt_recipe_hash(back_hash, &back.recipe);
    assert_string_equal(hash, back_hash);
}

static void expect_corrupt(json_t *json, dt_arena *arena, const char *message)
{
    dt_error err = DT_ERROR_INIT;
    dt_plan back;

    assert_int_equal(dt_plan_from_json(&back, json, arena, &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, message);
    json_decref(json);
}

static json_t *good_json(dt_arena *arena)
{
    dt_plan plan;

    make_plan(&plan, 1, arena);
    return dt_plan_to_json(&plan);
}

/* Changes `key` of a valid plan to `value` (NULL: removes it); reading must fail with the message. */
static void expect_corrupt_key(void **state, const char *key, json_t *value, const char *message)
{
    json_t *json = good_json(*state);

    if (value != NULL)
        json_object_set_new(json, key, value);
    else
        json_object_del(json, key);
    expect_corrupt(json, *state, message);
}

/* The same for a key of the plan's second rank. */
static void expect_corrupt_rank(void **state, const char *key, json_t *value, const char *message)
{
    json_t *json = good_json(*state);

    json_object_set_new(json_array_get(json_object_get(json, "ranks"), 1), key, value);
    expect_corrupt(json, *state, message);
}

static void test_damage_at_the_top_is_refused(void **state)
{
    expect_corrupt(json_array(), *state, "plan: expected an object");
    expect_corrupt_key(state, "plan", json_integer(0),
                       "plan: 'plan' is 0 (expected a version, from 1)");
    expect_corrupt_key(state, "run", json_string(""), "plan: 'run' is empty");
    expect_corrupt_key(state, "run", NULL, "plan: 'run' is missing");
    expect_corrupt_key(state, "attempt", json_integer(0),
                       "plan: 'attempt' is 0: expected 1 to 2147483647");
    expect_corrupt_key(state, "directory", json_string("here"),
                       "plan: 'directory' is not an absolute path");
    expect_corrupt_key(state, "directory", json_string(""), "plan: 'directory' is empty");
    expect_corrupt_key(state, "resume_from", json_string("step"),
                       "plan: 'resume_from' is not an absolute path");
    expect_corrupt_key(state, "nodes", json_array(), "plan: 'nodes' is empty");
    expect_corrupt_key(state, "nodes", json_pack("[s]", "a"), "plan: nodes: expected an object");
    expect_corrupt_key(state, "world_size", json_integer(3),
                       "plan: 'ranks' has 2 entries, 'world_size' is 3");
    expect_corrupt_key(state, "world_size", json_integer(INT64_MAX),
                       "plan: 'world_size' is 9223372036854775807: expected 1 to 1048576");
    expect_corrupt_key(state, "recipe", json_object(), "recipe: 'name' is missing");
}

static void test_damage_of_a_rank_is_refused(void **state)
{
    expect_corrupt_rank(state, "rank", json_integer(0), "plan: ranks: rank 0 is listed twice");
    expect_corrupt_rank(state, "rank", json_integer(2),
                        "plan: ranks: 'rank' is 2: expected 0 to 1");
    expect_corrupt_rank(state, "node", json_integer(1),
                        "plan: ranks: 'node' is 1: expected 0 to 0");
    expect_corrupt_rank(state, "local_rank", json_integer(0),
                        "plan: ranks: rank 1: local rank 0 of node 0 is out of order");
    expect_corrupt_rank(state, "threads", json_integer(0),
                        "plan: ranks: 'threads' is 0: expected 1 to 4096");
    expect_corrupt_rank(state, "device", json_string(""), "plan: ranks: 'device' is empty");
}

static void test_another_version_is_unsupported(void **state)
{
    dt_error err = DT_ERROR_INIT;
    json_t *json = good_json(*state);
    dt_plan back;

    json_object_set_new(json, "plan", json_integer(2));
    json_object_set_new(json, "ranks", json_string("in a way of its own"));
    assert_int_equal(dt_plan_from_json(&back, json, *state, &err), DT_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "plan: another dtrun wrote it (version 2, this program reads "
                                     "version 1): use that dtrun");
    json_decref(json);
}

static void test_an_unknown_key_is_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    json_t *json = good_json(*state);
    dt_plan back;

    json_object_set_new(json_array_get(json_object_get(json, "ranks"), 1), "socket",
                        json_integer(1));
    assert_int_equal(dt_plan_from_json(&back, json, *state, &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, "plan: unknown key 'ranks.socket'");
    json_decref(json);
}

static void test_a_plan_file_is_named_in_its_errors(void **state)
{
    char folder[] = "/tmp/dt_plan.XXXXXX", path[64], message[128];
    dt_error err = DT_ERROR_INIT;
    dt_strbuf text;
    json_t *json = good_json(*state);
    dt_plan back;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/plan.json", folder);
    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    assert_int_equal(dt_file_write_atomic(path, text.data, text.length, 0600, NULL), DT_OK);
    assert_int_equal(dt_plan_read(&back, path, *state, &err), DT_OK);
    json_object_set_new(json, "attempt", json_string("one"));
    dt_strbuf_reset(&text);
    dt_json_write(&text, json);
    assert_int_equal(dt_file_write_atomic(path, text.data, text.length, 0600, NULL), DT_OK);
    assert_int_equal(dt_plan_read(&back, path, *state, &err), DT_ERR_CORRUPT);
    snprintf(message, sizeof(message), "%s: plan: 'attempt': expected a whole number", path);
    assert_string_equal(err.message, message);
    json_decref(json);
    dt_strbuf_release(&text);
    dt_file_remove_tree(folder, NULL);
}

static json_t *task_json(dt_arena *arena)
{
    static int64_t done[] = {0, 3, 5, 7};
    static dt_plan_part parts[8];
    static const char *arguments[] = {"--beam", "4"};
    dt_plan plan;

    make_plan(&plan, 2, arena);
    for (int64_t i = 0; i < 8; i++)
        parts[i] = (dt_plan_part){7 * i, i < 7 ? 7 : 1, 100 + i};
    plan.recipe.task = DT_TASK_GENERATE;
    plan.task = (dt_plan_task){.run = "a7c3k9",
                               .input = "/in",
                               .target = "",
                               .output = "/out",
                               .lines = 50,
                               .parts = parts,
                               .part_count = 8,
                               .arguments = {arguments, 2},
                               .done = done,
                               .done_count = 2};
    return dt_plan_to_json(&plan);
}

static void test_a_task_comes_back(void **state)
{
    json_t *json = task_json(*state);
    dt_plan back;

    assert_int_equal(dt_plan_from_json(&back, json, *state, NULL), DT_OK);
    assert_int_equal(back.recipe.task, DT_TASK_GENERATE);
    assert_string_equal(back.task.run, "a7c3k9");
    assert_string_equal(back.task.arguments.items[1], "4");
    assert_int_equal(back.task.done_count, 2);
    assert_int_equal(back.task.done[3], 7);
    assert_int_equal(back.task.lines, 50);
    assert_int_equal(back.task.part_count, 8);
    assert_int_equal(back.task.parts[7].first, 49);
    assert_int_equal(back.task.parts[7].lines, 1);
    assert_int_equal(back.task.parts[7].weight, 107);
    json_decref(json);
}

static void test_damage_of_a_task_is_refused(void **state)
{
    static const char *const broken[] = {"[[0, 0]]",    "[[0, 9]]",        "[[3, 4], [2, 3]]",
                                         "[[0, 1, 2]]", "[[\"0\", 1]]",    "[3]",
                                         "[[-1, 2]]",   "[[0, 2], [1, 3]]"};
    static const char *const no_parts[] = {
        "[]",           "[3]",     "[[0, 1]]", "[[1, 0]]", "[[1099511627777, 1]]",
        "[[50, 1, 1]]", "[[1, 1]]"}; /* fewer parts than are done */
    json_t *json;
    dt_plan back;

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        json = task_json(*state);
        json_object_set_new(json_object_get(json, "task"), "done", json_loads(broken[i], 0, NULL));
        assert_int_equal(dt_plan_from_json(&back, json, *state, NULL), DT_ERR_CORRUPT);
        json_decref(json);
    }
    for (size_t i = 0; i < sizeof(no_parts) / sizeof(no_parts[0]); i++) {
        json = task_json(*state);
        json_object_set_new(json_object_get(json, "task"), "parts",
                            json_loads(no_parts[i], 0, NULL));
        assert_int_equal(dt_plan_from_json(&back, json, *state, NULL), DT_ERR_CORRUPT);
        json_decref(json);
    }
    json = task_json(*state);
    json_object_del(json, "task");
    assert_int_equal(dt_plan_from_json(&back, json, *state, NULL), DT_ERR_CORRUPT);
    json_decref(json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ranks_are_laid_on_nodes_in_order_with_the_cores_divided),
        TEST(test_ranks_that_divide_layers_are_on_one_node),
        TEST(test_nodes_that_hold_copies_have_equal_numbers_of_ranks),
        TEST(test_a_node_may_have_its_own_ranks_and_dp_has_one_process),
        TEST(test_threads_of_the_recipe_win_and_are_at_least_one),
        TEST(test_ranks_get_the_devices_that_are_found_or_asked_for),
        TEST(test_a_command_has_processes_by_gpu_by_node_or_by_number),
        TEST(test_a_plan_comes_back_from_its_json),
        TEST(test_damage_at_the_top_is_refused),
        TEST(test_damage_of_a_rank_is_refused),
        TEST(test_another_version_is_unsupported),
        TEST(test_an_unknown_key_is_refused),
        TEST(test_a_plan_file_is_named_in_its_errors),
        TEST(test_a_task_comes_back),
        TEST(test_damage_of_a_task_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
