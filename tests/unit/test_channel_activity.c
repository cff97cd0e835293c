#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/channel/activity.h"
#include "engine/progress.h"

static const char *text(const json_t *told, const char *key)
{
    return json_string_value(json_object_get(told, key));
}

static void test_the_longest_wait_is_reported(void **state)
{
    int first, second;
    json_t *told = dt_activity_report();

    assert_true(json_is_null(json_object_get(told, "collective")));
    assert_true(json_is_null(json_object_get(told, "seconds")));
    json_decref(told);
    dt_activity_step(12);
    dt_activity_phase("train");
    first = dt_activity_wait_begin("all_reduce", "ddp", 1234, 25000000);
    second = dt_activity_wait_begin("barrier", "main", 7, 0);
    told = dt_activity_report();
    assert_int_equal(json_integer_value(json_object_get(told, "step")), 12);
    assert_string_equal(text(told, "phase"), "train");
    assert_string_equal(text(told, "collective"), "all_reduce comm/ddp #1234, 25.0 MB");
    assert_true(json_real_value(json_object_get(told, "seconds")) >= 0);
    json_decref(told);
    dt_activity_wait_end(first);
    told = dt_activity_report();
    assert_string_equal(text(told, "collective"), "barrier comm/main #7, 0.0 MB");
    json_decref(told);
    dt_activity_wait_end(second);
}

static void test_progress_moves_with_what_is_done_and_not_while_waiting(void **state)
{
    json_t *told;
    int64_t before;
    int place;

    dt_activity_micro_step(3, 8);
    place = dt_activity_wait_begin("barrier", "main", 7, 0);
    before = dt_progress_count();
    told = dt_activity_report();
    assert_int_equal(json_integer_value(json_object_get(told, "micro_step")), 3);
    assert_int_equal(json_integer_value(json_object_get(told, "micro_steps")), 8);
    assert_int_equal(json_integer_value(json_object_get(told, "progress")), before);
    json_decref(told);
    assert_int_equal(dt_progress_count(), before);
    dt_activity_wait_end(place);
    assert_true(dt_progress_count() > before);
}

static void test_more_waits_than_places_are_ignored(void **state)
{
    int places[64];

    for (int i = 0; i < 64; i++)
        places[i] = dt_activity_wait_begin("barrier", "main", i, 0);
    assert_int_equal(places[63], -1);
    for (int i = 0; i < 64; i++)
        dt_activity_wait_end(places[i]);
    places[0] = dt_activity_wait_begin("barrier", "main", 0, 0);
    assert_int_equal(places[0], 0);
    dt_activity_wait_end(places[0]);
}

static atomic_bool over;

static void *wait_often(void *number)
{
    for (int64_t i = 0; !atomic_load(&over); i++)
        dt_activity_wait_end(dt_activity_wait_begin("all_gather", "fsdp", i, 1000000));
    return number;
}

static void test_what_is_read_while_threads_write_is_whole(void **state)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_often, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        json_t *told = dt_activity_report();
        const char *collective = text(told, "collective");

        if (collective != NULL) {
            assert_memory_equal(collective, "all_gather comm/fsdp #", 22);
            assert_non_null(strstr(collective, ", 1.0 MB"));
        }
        json_decref(told);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_wait_is_reported),
        cmocka_unit_test(test_progress_moves_with_what_is_done_and_not_while_waiting),
        cmocka_unit_test(test_more_waits_than_places_are_ignored),
        cmocka_unit_test(test_what_is_read_while_threads_write_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
