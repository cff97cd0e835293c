/* The order in which an exchange lets a device's ops and a communicator that queues (NCCL) wait for
 * each other, on stand-ins that write down what they are asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device/queue.h"
#include "engine/strategy/async_comm.h"

#include "base/banned.h"

typedef struct dt_mark {
    int number;
} dt_mark;

struct dt_queue {
    int unused;
};

static struct dt_queue comm_queue;
static char trace[1024];
static int marks_open, marks_made;
static bool broken;

#define NOTE(...)                                                  \
    do {                                                           \
        size_t used = strlen(trace);                               \
        snprintf(trace + used, sizeof(trace) - used, __VA_ARGS__); \
    } while (0)

static const char *queue_name(const dt_queue *queue)
{
    return queue == NULL ? "ops" : "comm";
}

static dt_status mark_open(dt_device *device, dt_mark **out, dt_error *err)
{
    *out = calloc(1, sizeof(**out));
    assert_non_null(*out);
    (*out)->number = ++marks_made;
    marks_open++;
    return DT_OK;
}

static void mark_close(dt_device *device, dt_mark *mark)
{
    marks_open -= mark != NULL;
    free(mark);
}

static dt_status record(dt_device *device, dt_mark *mark, dt_queue *queue, dt_error *err)
{
    NOTE("mark %d in %s; ", mark->number, queue_name(queue));
    return DT_OK;
}

static dt_status follow(dt_device *device, dt_queue *queue, dt_mark *mark, dt_error *err)
{
    NOTE("%s after %d; ", queue_name(queue), mark->number);
    return DT_OK;
}

static dt_status wait_mark(dt_device *device, dt_mark *mark, dt_error *err)
{
    NOTE("host waits for %d; ", mark->number);
    return DT_OK;
}

static dt_status all_reduce(dt_comm *comm, void *data, int64_t elems, dt_dtype dtype, dt_error *err)
{
    NOTE("sum %lld; ", (long long)elems);
    return broken ? DT_FAIL(err, DT_ERR_COMM, "peer gone") : DT_OK;
}

static dt_status all_gather(dt_comm *comm, void *out, const void *in, size_t bytes, dt_error *err)
{
    NOTE("gather %zu; ", bytes);
    return DT_OK;
}

static dt_status finish(dt_comm *comm, dt_error *err)
{
    NOTE("finish; ");
    return broken ? DT_FAIL(err, DT_ERR_COMM, "cut short") : DT_OK;
}

static const dt_queues queues = {.mark_open = mark_open,
                                 .mark_close = mark_close,
                                 .record = record,
                                 .follow = follow,
                                 .wait = wait_mark};

static dt_exchange *open_exchange(dt_device *device, int64_t capacity)
{
    dt_comm comm = {.name = "queued",
                    .world_size = 2,
                    .queue = &comm_queue,
                    .all_reduce = all_reduce,
                    .all_gather = all_gather,
                    .finish = finish};
    dt_exchange *exchange;

    memset(device, 0, sizeof(*device));
    device->queues = &queues;
    marks_made = 0;
    broken = false;
    assert_int_equal(dt_exchange_open(&exchange, &comm, device, capacity, NULL), DT_OK);
    trace[0] = '\0';
    return exchange;
}

/* Marks 1 and 2 are the first job's, 3 and 4 the second's. */
static void test_ops_and_collectives_wait_for_each_other_and_the_host_for_none(void **state)
{
    dt_device device;
    dt_exchange *exchange = open_exchange(&device, 2);
    dt_exchange_ticket gather, sum;
    float data[8];

    assert_int_equal(dt_exchange_all_gather(exchange, &gather, data, data, 16, NULL), DT_OK);
    assert_int_equal(dt_exchange_all_reduce(exchange, &sum, data, 8, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_exchange_wait(exchange, gather, NULL), DT_OK);
    assert_string_equal(trace, "mark 1 in ops; comm after 1; gather 16; mark 2 in comm; "
                               "mark 3 in ops; comm after 3; sum 8; mark 4 in comm; "
                               "ops after 2; ");
    trace[0] = '\0';
    assert_int_equal(dt_exchange_wait(exchange, 0, NULL), DT_OK); /* nothing to wait for */
    assert_int_equal(dt_exchange_wait_all(exchange, NULL), DT_OK);
    assert_string_equal(trace, "ops after 4; finish; ");
    dt_exchange_close(exchange);
    assert_int_equal(marks_open, 0);
}

/* The third job takes the marks of the first: who waits for the first then waits for longer. */
static void test_marks_go_around(void **state)
{
    dt_device device;
    dt_exchange *exchange = open_exchange(&device, 2);
    dt_exchange_ticket first;
    float data[8];

    assert_int_equal(dt_exchange_all_reduce(exchange, &first, data, 1, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_exchange_all_reduce(exchange, NULL, data, 2, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_exchange_all_reduce(exchange, NULL, data, 3, DT_F32, NULL), DT_OK);
    trace[0] = '\0';
    assert_int_equal(dt_exchange_wait(exchange, first, NULL), DT_OK);
    assert_string_equal(trace, "ops after 2; ");
    dt_exchange_close(exchange);
}

static void test_a_collective_that_was_cut_short_is_no_result(void **state)
{
    dt_error err = DT_ERROR_INIT, late = DT_ERROR_INIT;
    dt_device device;
    dt_exchange *exchange = open_exchange(&device, 2);
    float data[8];

    assert_int_equal(dt_exchange_all_reduce(exchange, NULL, data, 8, DT_F32, NULL), DT_OK);
    broken = true;
    assert_int_equal(dt_exchange_all_reduce(exchange, NULL, data, 8, DT_F32, &err), DT_ERR_COMM);
    assert_int_equal(dt_exchange_wait_all(exchange, &late), DT_ERR_COMM);
    assert_string_equal(late.message, "cut short");
    dt_exchange_close(exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_and_collectives_wait_for_each_other_and_the_host_for_none),
        cmocka_unit_test(test_marks_go_around),
        cmocka_unit_test(test_a_collective_that_was_cut_short_is_no_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
