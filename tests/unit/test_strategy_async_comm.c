/* The communication thread, with a communicator that only records its calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/strategy/strategy_int.h"

#define MANY 64

/* Doubles what it reduces, like two equal ranks. */
typedef struct recorder {
    const float *asked[MANY];
    int count, closed;
    int fail_at; /* the call that fails, from 1; 0: none */
    double slow_seconds;
    sem_t *go; /* each call waits for it; NULL: no waiting */
    dt_device device;
} recorder;

static dt_status record(dt_comm *comm, void *given, int64_t elems, dt_dtype dtype, dt_error *err)
{
    float *data = given;
    recorder *r = comm->state;

    if (r->slow_seconds > 0)
        dt_clock_sleep_seconds(r->slow_seconds);
    while (r->go != NULL && sem_wait(r->go) != 0) /* interrupted by a signal */
        ;
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

static dt_async_comm *open_exchange(recorder *r, int64_t capacity)
{
    dt_comm comm = {.name = "recorder",
                    .world_size = 2,
                    .state = r,
                    .all_reduce = record,
                    .close = close_recorder};
    dt_async_comm *async_comm;

    assert_int_equal(dt_device_open_cpu(&r->device, 1, NULL), DT_OK);
    assert_int_equal(dt_async_comm_open(&async_comm, &comm, &r->device, capacity, NULL), DT_OK);
    assert_null(comm.state); /* taken over */
    return async_comm;
}

static void close_exchange(dt_async_comm *async_comm, recorder *r)
{
    dt_async_comm_close(async_comm);
    assert_int_equal(r->closed, 1);
    dt_device_close(&r->device);
}

static void test_buckets_are_reduced_in_the_order_of_launch(void **state)
{
    recorder r = {0};
    float data[10][3];
    dt_async_comm *async_comm = open_exchange(&r, 10);

    for (int step = 0; step < 5; step++) {
        r.count = 0;
        for (int i = 9; i >= 0; i--) {
            for (int k = 0; k < 3; k++)
                data[i][k] = (float)(i + k);
            assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data[i], 3, DT_F32, NULL),
                             DT_OK);
        }
        assert_int_equal(dt_async_comm_wait_all(async_comm, NULL), DT_OK);
        assert_int_equal(r.count, 10);
        for (int i = 0; i < 10; i++) {
            assert_ptr_equal(r.asked[i], data[9 - i]);
            for (int k = 0; k < 3; k++)
                assert_true(data[i][k] == (float)(2 * (i + k)));
        }
    }
    assert_int_equal(dt_async_comm_sent_bytes(async_comm), 5 * 10 * 3 * 4);
    close_exchange(async_comm, &r);
}

static void test_a_ticket_is_waited_for_alone(void **state)
{
    recorder r = {.slow_seconds = 0.02};
    dt_async_comm_ticket tickets[6];
    float data[6] = {1, 1, 1, 1, 1, 1};
    dt_async_comm *async_comm = open_exchange(&r, 6);

    for (int i = 0; i < 6; i++)
        assert_int_equal(
            dt_async_comm_all_reduce(async_comm, &tickets[i], &data[i], 1, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_async_comm_wait(async_comm, 0, NULL), DT_OK);
    assert_int_equal(dt_async_comm_wait(async_comm, tickets[2], NULL), DT_OK);
    assert_true(data[0] == 2 && data[1] == 2 && data[2] == 2);
    assert_int_equal(dt_async_comm_wait_all(async_comm, NULL), DT_OK);
    assert_true(data[5] == 2);
    close_exchange(async_comm, &r);
}

/* If launching waited, the test would never end. */
static void test_launching_does_not_wait_for_the_reduction(void **state)
{
    sem_t go;
    recorder r = {.go = &go};
    float data[4] = {1, 1, 1, 1};
    dt_async_comm *async_comm = open_exchange(&r, 4);

    assert_int_equal(sem_init(&go, 0, 0), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, &data[i], 1, DT_F32, NULL),
                         DT_OK);
    assert_int_equal(r.count, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sem_post(&go), 0);
    assert_int_equal(dt_async_comm_wait_all(async_comm, NULL), DT_OK);
    assert_true(data[0] == 2 && data[3] == 2);
    close_exchange(async_comm, &r);
    sem_destroy(&go);
}

static void test_a_failure_is_returned_by_all_later_calls(void **state)
{
    recorder r = {.fail_at = 2};
    dt_error err = DT_ERROR_INIT;
    float data[4] = {1, 1, 1, 1};
    dt_async_comm *async_comm = open_exchange(&r, 5);

    for (int i = 0; i < 4; i++)
        dt_async_comm_all_reduce(async_comm, NULL, &data[i], 1, DT_F32, NULL);
    assert_int_equal(dt_async_comm_wait_all(async_comm, &err), DT_ERR_COMM);
    assert_string_equal(err.message, "peer gone");
    assert_int_equal(dt_async_comm_wait_all(async_comm, NULL), DT_ERR_COMM);
    assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data, 1, DT_F32, NULL),
                     DT_ERR_COMM);
    assert_int_equal(r.count, 2); /* the calls after it were not made */
    close_exchange(async_comm, &r);
}

static void test_closing_with_buckets_under_way_ends(void **state)
{
    recorder r = {.slow_seconds = 0.05};
    float data[50] = {0};
    dt_async_comm *async_comm = open_exchange(&r, 50);

    for (int i = 0; i < 50; i++)
        assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, &data[i], 1, DT_F32, NULL),
                         DT_OK);
    close_exchange(async_comm, &r);
    assert_true(r.count < 50);
    dt_async_comm_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_are_reduced_in_the_order_of_launch),
        cmocka_unit_test(test_a_ticket_is_waited_for_alone),
        cmocka_unit_test(test_launching_does_not_wait_for_the_reduction),
        cmocka_unit_test(test_a_failure_is_returned_by_all_later_calls),
        cmocka_unit_test(test_closing_with_buckets_under_way_ends),
    };

    return cmocka_run_group_tests_name("strategy: the communication thread", tests, NULL, NULL);
}
