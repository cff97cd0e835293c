/* A run that waits for a node, in the API: speed and remaining time are unknown. */
#include "web_support.h"

#include <string.h>

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void add_waiting(test_web *web)
{
    const dt_node node = {.name = "gpu-b", .state = "not reachable (no route to host)"};
    const dt_rank rank = {
        .pid = 77, .device = "cpu", .state = "ready", .exit_code = -1, .exit_signal = -1};
    test_store *t = &web->rows;

    test_store_run(t, "bb", "n");
    assert_good(t, dt_store_run_set_state(t->store, "bb", DT_RUN_RUNNING, -1, "", 2000, &t->err));
    assert_good(t, dt_store_node_set(t->store, "bb", 1, &node, &t->err));
    assert_good(t, dt_store_rank_set(t->store, "bb", 1, &rank, &t->err));
    assert_good(t, dt_store_run_set_progress(t->store, "bb", 20, 0.25, 0.5, 1234.5, 3000, &t->err));
}

static void check_run(const json_t *run)
{
    assert_string_equal(text_at(run, "state"), "running");
    assert_string_equal(text_at(run, "activity"), "waiting for gpu-b");
    assert_true(json_is_null(json_object_get(run, "tokens_per_second")));
}

static void test_a_run_that_waits_for_a_node_has_neither_speed_nor_time_left(void **state)
{
    test_web *web = *state;
    json_t *answer, *run, *node, *rank;
    test_answer metrics;

    add_waiting(web);
    answer = test_web_json(web, 200, "/api/v1/runs/bb");
    run = json_object_get(answer, "run");
    check_run(run);
    assert_true(json_is_null(json_object_get(run, "mean_tokens_per_second")));
    assert_true(json_is_null(json_object_get(run, "eta_seconds")));
    node = json_array_get(json_object_get(answer, "nodes"), 0);
    rank = json_array_get(json_object_get(node, "ranks"), 0);
    assert_string_equal(text_at(rank, "state"), "ready");
    assert_string_equal(text_at(rank, "activity"), "not responding");
    json_decref(answer);
    answer = test_web_json(web, 200, "/api/v1/runs");
    check_run(json_array_get(json_object_get(answer, "runs"), 0));
    json_decref(answer);
    test_answer_init(&metrics);
    test_web_get(web, &metrics, "/metrics");
    assert_non_null(strstr(metrics.body.data, "\ndtrun_run_step{run=\"bb\""));
    assert_null(strstr(metrics.body.data, "\ndtrun_run_tokens_per_second{"));
    test_answer_release(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_run_that_waits_for_a_node_has_neither_speed_nor_time_left, test_web_setup,
            test_web_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
