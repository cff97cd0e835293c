/* The communication thread, on a communicator that only writes down what it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/strategy/reducer.h"

#include "base/banned.h"

#define MANY 64

/* Doubles what it reduces, as if there were two ranks alike. */
typedef struct recorder {
    const float *asked[MANY];
    int count, closed;
    int fail_at; /* the call that fails, from 1; 0: none */
    double slow_seconds;
} recorder;

static dt_status record(dt_comm *comm, void *given, int64_t elems, dt_dtype dtype, dt_error *err)
{
    float *data = given;
    recorder *r = comm->state;

    if (r->slow_seconds > 0)
        dt_clock_sleep_seconds(r->slow_seconds);
    r->asked[r->count++ % MANY] = data;
    if (r->count == r->fail_at)
        return DT_FAIL(err, DT_ERR_COMM, "peer gone");
    for (int64_t i = 0; i < elems; i++)
        data[i] *= 2;
    comm->sent_bytes += 4 * elems;
    return DT_OK;
}

static void close_recorder(dt_comm *comm)
{
    ((recorder *)comm->state)->closed++;
}

static dt_reducer *open_reducer(recorder *r, int64_t capacity)
{
    dt_comm comm = {.name = "recorder",
                    .world_size = 2,
                    .state = r,
                    .all_reduce = record,
                    .close = close_recorder};
    dt_reducer *reducer;

    assert_int_equal(dt_reducer_open(&reducer, &comm, capacity, NULL), DT_OK);
    assert_null(comm.state); /* taken */
    return reducer;
}

static void test_buckets_are_reduced_in_the_order_of_launch(void **state)
{
    recorder r = {0};
    float data[10][3];
    dt_reducer *reducer = open_reducer(&r, 10);

    for (int step = 0; step < 5; step++) {
        r.count = 0;
        for (int i = 9; i >= 0; i--) {
            for (int k = 0; k < 3; k++)
                data[i][k] = (float)(i + k);
            assert_int_equal(dt_reducer_launch(reducer, data[i], 3, NULL), DT_OK);
        }
        assert_int_equal(dt_reducer_wait(reducer, NULL), DT_OK);
        assert_int_equal(r.count, 10);
        for (int i = 0; i < 10; i++) {
            assert_ptr_equal(r.asked[i], data[9 - i]);
            for (int k = 0; k < 3; k++)
                assert_true(data[i][k] == (float)(2 * (i + k)));
        }
    }
    assert_int_equal(dt_reducer_sent_bytes(reducer), 5 * 10 * 3 * 4);
    dt_reducer_close(reducer);
    assert_int_equal(r.closed, 1);
}

static void test_launching_does_not_wait_for_the_reduction(void **state)
{
    recorder r = {.slow_seconds = 0.1};
    float data[4] = {1, 1, 1, 1};
    dt_reducer *reducer = open_reducer(&r, 4);
    double start = dt_clock_monotonic_seconds();

    for (int i = 0; i < 4; i++)
        assert_int_equal(dt_reducer_launch(reducer, &data[i], 1, NULL), DT_OK);
    assert_true(dt_clock_monotonic_seconds() - start < 0.3);
    assert_int_equal(dt_reducer_wait(reducer, NULL), DT_OK);
    assert_true(dt_clock_monotonic_seconds() - start >= 0.4);
    dt_reducer_close(reducer);
}

static void test_a_failure_is_told_by_all_that_follows(void **state)
{
    recorder r = {.fail_at = 2};
    dt_error err = DT_ERROR_INIT;
    float data[4] = {1, 1, 1, 1};
    dt_reducer *reducer = open_reducer(&r, 5);

    for (int i = 0; i < 4; i++)
        dt_reducer_launch(reducer, &data[i], 1, NULL);
    assert_int_equal(dt_reducer_wait(reducer, &err), DT_ERR_COMM);
    assert_string_equal(err.message, "peer gone");
    assert_int_equal(dt_reducer_wait(reducer, NULL), DT_ERR_COMM);
    assert_int_equal(dt_reducer_launch(reducer, data, 1, NULL), DT_ERR_COMM);
    assert_int_equal(r.count, 2); /* those behind it were not tried */
    dt_reducer_close(reducer);
    assert_int_equal(r.closed, 1);
}

static void test_closing_with_buckets_under_way_ends(void **state)
{
    recorder r = {.slow_seconds = 0.05};
    float data[50] = {0};
    dt_reducer *reducer = open_reducer(&r, 50);

    for (int i = 0; i < 50; i++)
        assert_int_equal(dt_reducer_launch(reducer, &data[i], 1, NULL), DT_OK);
    dt_reducer_close(reducer);
    assert_true(r.count < 50);
    assert_int_equal(r.closed, 1);
    dt_reducer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_are_reduced_in_the_order_of_launch),
        cmocka_unit_test(test_launching_does_not_wait_for_the_reduction),
        cmocka_unit_test(test_a_failure_is_told_by_all_that_follows),
        cmocka_unit_test(test_closing_with_buckets_under_way_ends),
    };

    return cmocka_run_group_tests_name("strategy: the communication thread", tests, NULL, NULL);
}
