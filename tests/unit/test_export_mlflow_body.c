/* The requests to MLflow for a run: names, values, states, and points that it already has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/export/mlflow.h"

static const dt_run run = {.id = "k3v9x2",
                           .name = "shakespeare",
                           .state = DT_RUN_STOPPED,
                           .attempt = 2,
                           .created_ms = 1000,
                           .started_ms = 5000,
                           .ended_ms = 9000,
                           .recipe_json = "{\"model\":{\"layers\":4,\"kind\":\"gpt2\"},"
                                          "\"sweep\":{\"a[0]\":[1,2]},\"lr\":0.5}",
                           .reason = "",
                           .tags = "keep",
                           .group = "",
                           .note = ""};

/* Takes over the value. */
static void assert_json(json_t *value, const char *wanted)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, value);
    assert_string_equal(text.data, wanted);
    dt_strbuf_release(&text);
    json_decref(value);
}

static void test_a_run_is_found_made_and_ended(void **state)
{
    assert_json(dt_mlflow_search_body("7", &run),
                "{\"experiment_ids\":[\"7\"],\"filter\":\"tags.`dtrun.run` = 'k3v9x2'\","
                "\"max_results\":1}");
    assert_json(
        dt_mlflow_create_body("7", &run),
        "{\"experiment_id\":\"7\",\"run_name\":\"shakespeare\",\"start_time\":1000,\"tags\":["
        "{\"key\":\"dtrun.tags\",\"value\":\"keep\"},{\"key\":\"dtrun.group\",\"value\":\"\"},"
        "{\"key\":\"dtrun.reason\",\"value\":\"\"},"
        "{\"key\":\"mlflow.note.content\",\"value\":\"\"},"
        "{\"key\":\"dtrun.run\",\"value\":\"k3v9x2\"},"
        "{\"key\":\"mlflow.source.name\",\"value\":\"dtrun\"}]}");
    assert_json(
        dt_mlflow_update_body("r", &run),
        "{\"run_id\":\"r\",\"status\":\"KILLED\",\"run_name\":\"shakespeare\",\"end_time\":9000}");
}

static void test_the_recipe_is_sent_once_by_dotted_names(void **state)
{
    json_t *known = json_pack("[{ssss}]", "key", "model.layers", "value", "4"), *rest;

    assert_json(
        dt_mlflow_params(&run, NULL),
        "[{\"key\":\"model.layers\",\"value\":\"4\"},{\"key\":\"model.kind\",\"value\":\"gpt2\"},"
        "{\"key\":\"sweep.a_0_\",\"value\":\"[1,2]\"},{\"key\":\"lr\",\"value\":\"0.5\"}]");
    rest = dt_mlflow_params(&run, known);
    assert_int_equal(json_array_size(rest), 3);
    json_decref(rest);
    json_decref(known);
}

static void test_points_are_numbers_or_words_for_nan_and_infinity(void **state)
{
    dt_metric point = {.name = "loss", .step = 3, .time_ms = 5, .value = 0.1};

    assert_json(dt_mlflow_metric(&point), "{\"key\":\"loss\",\"value\":0.10000000000000001,"
                                          "\"timestamp\":5,\"step\":3}");
    point.value = NAN;
    assert_json(dt_mlflow_metric(&point),
                "{\"key\":\"loss\",\"value\":\"NaN\",\"timestamp\":5,\"step\":3}");
    point.value = -INFINITY;
    assert_json(dt_mlflow_metric(&point),
                "{\"key\":\"loss\",\"value\":\"-Infinity\",\"timestamp\":5,\"step\":3}");
}

static void test_existing_points_are_found_by_their_newest_step(void **state)
{
    json_t *there = json_pack("{s{s[{sssi}{ssss}{ss}]}}", "data", "metrics", "key", "loss", "step",
                              740, "key", "speed", "step", "730", "key", "first");

    assert_int_equal(dt_mlflow_last_step(there, "loss"), 740);
    assert_int_equal(dt_mlflow_last_step(there, "speed"),
                     730); /* 64 bits may be a string in protobuf's JSON */
    assert_int_equal(dt_mlflow_last_step(there, "first"), 0);
    assert_true(dt_mlflow_last_step(there, "other") == INT64_MIN);
    assert_true(dt_mlflow_last_step(NULL, "loss") == INT64_MIN);
    json_decref(there);
}

static void test_names_are_made_fit(void **state)
{
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_string_equal(dt_mlflow_name("gpu/0:a b-c.d_e", &arena), "gpu/0:a b-c.d_e");
    assert_string_equal(dt_mlflow_name("<b>\xc3\xa4=", &arena), "_b____");
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_found_made_and_ended),
        cmocka_unit_test(test_the_recipe_is_sent_once_by_dotted_names),
        cmocka_unit_test(test_points_are_numbers_or_words_for_nan_and_infinity),
        cmocka_unit_test(test_existing_points_are_found_by_their_newest_step),
        cmocka_unit_test(test_names_are_made_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
