/* The order in which an exchange makes a device's ops and a queuing communicator (NCCL) wait for
 * each other, on stand-ins that record their calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device/queue.h"
#include "engine/strategy/strategy_int.h"

typedef struct dt_device_event {
    int number;
} dt_device_event;

struct dt_queue {
    int unused;
};

static struct dt_queue comm_queue;
static char trace[1024];
static int events_open, marks_made;
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

static dt_status event_open(dt_device *device, dt_device_event **out, dt_error *err)
{
    *out = calloc(1, sizeof(**out));
    assert_non_null(*out);
    (*out)->number = ++marks_made;
    events_open++;
    return DT_OK;
}

static void event_close(dt_device *device, dt_device_event *event)
{
    events_open -= event != NULL;
    free(event);
}

static dt_status record(dt_device *device, dt_device_event *event, dt_queue *queue, dt_error *err)
{
    NOTE("mark %d in %s; ", event->number, queue_name(queue));
    return DT_OK;
}

static dt_status follow(dt_device *device, dt_queue *queue, dt_device_event *event, dt_error *err)
{
    NOTE("%s after %d; ", queue_name(queue), event->number);
    return DT_OK;
}

static dt_status wait_event(dt_device *device, dt_device_event *event, dt_error *err)
{
    NOTE("host waits for %d; ", event->number);
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

static const dt_queues queues = {.event_open = event_open,
                                 .event_close = event_close,
                                 .record = record,
                                 .follow = follow,
                                 .wait = wait_event};

static dt_async_comm *open_exchange(dt_device *device, int64_t capacity)
{
    dt_comm comm = {.name = "queued",
                    .world_size = 2,
                    .queue = &comm_queue,
                    .all_reduce = all_reduce,
                    .all_gather = all_gather,
                    .finish = finish};
    dt_async_comm *async_comm;

    memset(device, 0, sizeof(*device));
    device->queues = &queues;
    marks_made = 0;
    broken = false;
    assert_int_equal(dt_async_comm_open(&async_comm, &comm, device, capacity, NULL), DT_OK);
    trace[0] = '\0';
    return async_comm;
}

/* Events 1 and 2 belong to the first job, 3 and 4 to the second. */
static void test_ops_and_collectives_wait_for_each_other_and_the_host_for_none(void **state)
{
    dt_device device;
    dt_async_comm *async_comm = open_exchange(&device, 2);
    dt_async_comm_ticket gather, sum;
    float data[8];

    assert_int_equal(dt_async_comm_all_gather(async_comm, &gather, data, data, 16, NULL), DT_OK);
    assert_int_equal(dt_async_comm_all_reduce(async_comm, &sum, data, 8, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_async_comm_wait(async_comm, gather, NULL), DT_OK);
    assert_string_equal(trace, "mark 1 in ops; comm after 1; gather 16; mark 2 in comm; "
                               "mark 3 in ops; comm after 3; sum 8; mark 4 in comm; "
                               "ops after 2; ");
    trace[0] = '\0';
    /* There is nothing to wait for. */
    assert_int_equal(dt_async_comm_wait(async_comm, 0, NULL), DT_OK);
    assert_int_equal(dt_async_comm_wait_all(async_comm, NULL), DT_OK);
    assert_string_equal(trace, "ops after 4; finish; ");
    dt_async_comm_close(async_comm);
    assert_int_equal(events_open, 0);
}

/* The third job reuses the events of the first: waiting for the first then takes longer. */
static void test_marks_go_around(void **state)
{
    dt_device device;
    dt_async_comm *async_comm = open_exchange(&device, 2);
    dt_async_comm_ticket first;
    float data[8];

    assert_int_equal(dt_async_comm_all_reduce(async_comm, &first, data, 1, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data, 2, DT_F32, NULL), DT_OK);
    assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data, 3, DT_F32, NULL), DT_OK);
    trace[0] = '\0';
    assert_int_equal(dt_async_comm_wait(async_comm, first, NULL), DT_OK);
    assert_string_equal(trace, "ops after 2; ");
    dt_async_comm_close(async_comm);
}

static void test_an_interrupted_collective_is_not_a_result(void **state)
{
    dt_error err = DT_ERROR_INIT, late = DT_ERROR_INIT;
    dt_device device;
    dt_async_comm *async_comm = open_exchange(&device, 2);
    float data[8];

    assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data, 8, DT_F32, NULL), DT_OK);
    broken = true;
    assert_int_equal(dt_async_comm_all_reduce(async_comm, NULL, data, 8, DT_F32, &err),
                     DT_ERR_COMM);
    assert_int_equal(dt_async_comm_wait_all(async_comm, &late), DT_ERR_COMM);
    assert_string_equal(late.message, "cut short");
    dt_async_comm_close(async_comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_and_collectives_wait_for_each_other_and_the_host_for_none),
        cmocka_unit_test(test_marks_go_around),
        cmocka_unit_test(test_an_interrupted_collective_is_not_a_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
