#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/agent/rank/devices.h"

#define MIB ((int64_t)1 << 20)

static const char answer[] = "0, GPU-aa, 100\n1, GPU-ab, 7\n10, GPU-c, 0\n";

static void test_an_answer_is_read(void **state)
{
    dt_devices devices;

    assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
    assert_int_equal(devices.count, 3);
    assert_int_equal(devices.items[2].index, 10);
    assert_string_equal(devices.items[1].uuid, "GPU-ab");
    assert_int_equal(devices.items[0].baseline_bytes, 100 * MIB);
    assert_int_equal(dt_devices_parse(&devices, "", NULL), DT_OK);
    assert_int_equal(devices.count, 0);
}

static void test_invalid_answers_are_refused(void **state)
{
    static const char *const answers[] = {"No devices were found\n", "0, GPU-a\n",
                                          "0, GPU-a, [N/A]\n", "-1, GPU-a, 5\n", "0, GPU-a, -5\n"};

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        dt_devices devices;

        assert_int_equal(dt_devices_parse(&devices, answers[i], NULL), DT_ERR_CORRUPT);
    }
}

static void test_only_what_the_ranks_see_counts(void **state)
{
    static const struct {
        const char *visible;
        int64_t count, first;
    } cases[] = {{NULL, 3, 0},  {"", 0, 0},       {"1", 1, 1},        {"10", 1, 10},
                 {"0,1", 2, 0}, {"GPU-ab", 1, 1}, {"GPU-c,0", 2, 10}, {"7", 0, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_devices devices;

        assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
        dt_devices_keep_visible(&devices, cases[i].visible);
        assert_int_equal(devices.count, cases[i].count);
        if (devices.count > 0)
            assert_int_equal(devices.items[0].index, cases[i].first);
    }
}

static void test_a_watched_line_is_of_one_device(void **state)
{
    dt_devices devices;
    json_t *values;

    assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
    values = dt_devices_watched(&devices, "GPU-ab, 35, 5120, 81559, 250.31, 45");
    assert_int_equal(json_integer_value(json_object_get(values, "index")), 1);
    assert_float_equal(json_real_value(json_object_get(values, "gpu_busy_percent")), 35, 0);
    assert_float_equal(json_real_value(json_object_get(values, "gpu_used_bytes")), 5120.0 * MIB, 0);
    assert_float_equal(json_real_value(json_object_get(values, "gpu_total_bytes")), 81559.0 * MIB,
                       0);
    assert_float_equal(json_real_value(json_object_get(values, "gpu_power_watts")), 250.31, 1e-9);
    assert_float_equal(json_real_value(json_object_get(values, "gpu_temperature_c")), 45, 0);
    json_decref(values);
    values = dt_devices_watched(&devices, "GPU-c, [N/A], 7, [Not Supported]");
    assert_int_equal(json_object_size(values), 2); /* its index, and what it has */
    assert_float_equal(json_real_value(json_object_get(values, "gpu_used_bytes")), 7.0 * MIB, 0);
    json_decref(values);
    assert_null(dt_devices_watched(&devices, "GPU-a, 35, 5120, 81559, 250.31, 45"));
    assert_null(
        dt_devices_watched(&devices, "Failed to initialize NVML: Driver/library version mismatch"));
    assert_null(dt_devices_watched(&devices, ""));
}

/* The other devices belong to another run. */
static void test_only_what_the_ranks_use_is_kept(void **state)
{
    bool used[DT_DEVICES_MAX] = {false, true};
    dt_devices devices;

    assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
    dt_devices_keep_visible(&devices, "10,1,0");
    dt_devices_keep_used(&devices, used); /* cuda:1 */
    assert_int_equal(devices.count, 1);
    assert_int_equal(devices.items[0].index, 1);
    used[1] = false;
    used[3] = true; /* a device that nvidia-smi did not list */
    assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
    dt_devices_keep_used(&devices, used);
    assert_int_equal(devices.count, 3);
}

static void test_free_is_what_was_held_before_and_a_little(void **state)
{
    dt_devices devices, now;

    assert_int_equal(dt_devices_parse(&devices, answer, NULL), DT_OK);
    assert_true(dt_devices_are_free(&devices));
    assert_int_equal(dt_devices_parse(&now, "1, GPU-ab, 519\n0, GPU-aa, 612\n", NULL), DT_OK);
    dt_devices_update(&devices, &now);
    assert_true(dt_devices_are_free(&devices));
    assert_int_equal(dt_devices_parse(&now, "1, GPU-ab, 520\n", NULL), DT_OK);
    dt_devices_update(&devices, &now);
    assert_false(dt_devices_are_free(&devices));
    assert_int_equal(devices.items[1].baseline_bytes, 7 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_read),
        cmocka_unit_test(test_invalid_answers_are_refused),
        cmocka_unit_test(test_a_watched_line_is_of_one_device),
        cmocka_unit_test(test_only_what_the_ranks_see_counts),
        cmocka_unit_test(test_only_what_the_ranks_use_is_kept),
        cmocka_unit_test(test_free_is_what_was_held_before_and_a_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
