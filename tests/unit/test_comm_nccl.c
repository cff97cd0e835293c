/* NCCL's communicator with a stand-in for the library and the GPU, which records calls, and can
 * hang, fail and lose ranks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/comm/nccl/nccl.h"

#define CALLS_MAX 64

/* --- the stand-in: queued work is done only up to `done_calls` */

typedef struct dt_device_event {
    int64_t calls; /* queued before it was recorded */
} dt_device_event;

struct dt_queue {
    int unused;
};

static struct {
    dt_nccl_call calls[CALLS_MAX];
    int64_t call_count;
    _Atomic int64_t done_calls;
    _Atomic bool aborted;
    _Atomic int async_error, busy_looks;
    int aborts, host_closed, host_barriers, events;
    int looks_of_a_call;
    bool connect_fails;
} seen;

static struct dt_queue the_queue;

static dt_status open_queue(dt_device *device, dt_queue **out, dt_error *err)
{
    *out = &the_queue;
    return DT_OK;
}

static void close_queue(dt_device *device, dt_queue *queue) {}

static dt_status open_event(dt_device *device, dt_device_event **out, dt_error *err)
{
    *out = calloc(1, sizeof(**out));
    seen.events++;
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

static void close_event(dt_device *device, dt_device_event *event)
{
    seen.events -= event != NULL;
    free(event);
}

static dt_status record(dt_device *device, dt_device_event *event, dt_queue *queue, dt_error *err)
{
    event->calls = seen.call_count;
    return DT_OK;
}

static bool is_reached(const dt_device_event *event)
{
    return seen.aborted || seen.done_calls >= event->calls;
}

static dt_status wait_event(dt_device *device, dt_device_event *event, dt_error *err)
{
    while (!is_reached(event))
        dt_clock_sleep_seconds(0.002);
    return DT_OK;
}

static const dt_queues queues = {.open = open_queue,
                                 .close = close_queue,
                                 .event_open = open_event,
                                 .event_close = close_event,
                                 .record = record,
                                 .wait = wait_event};

static int link_version(void)
{
    return 22809;
}

static dt_status link_connect(dt_nccl **out, dt_device *device, const uint8_t *id, int64_t rank,
                              int64_t world_size, dt_error *err)
{
    *out = (dt_nccl *)(void *)&seen;
    assert_int_equal(id[0], 42);
    return seen.connect_fails ? DT_FAIL(err, DT_ERR_COMM, "nccl: connecting: refused") : DT_OK;
}

static dt_status link_state(dt_nccl *nccl, bool *busy, dt_error *err)
{
    assert_ptr_equal(nccl, &seen);
    *busy = seen.busy_looks > 0;
    seen.busy_looks -= *busy;
    return seen.async_error ? DT_FAIL(err, DT_ERR_COMM, "nccl: between the ranks: remote error")
                            : DT_OK;
}

static dt_status link_call(dt_nccl *nccl, const dt_nccl_call *call, dt_queue *queue, dt_error *err)
{
    assert_ptr_equal(queue, &the_queue);
    assert_int_equal(seen.busy_looks, 0);
    seen.calls[seen.call_count++ % CALLS_MAX] = *call;
    seen.busy_looks = seen.looks_of_a_call;
    return DT_OK;
}

static dt_status link_reached(dt_device *device, dt_device_event *event, bool *out, dt_error *err)
{
    *out = is_reached(event);
    return DT_OK;
}

static void link_abort(dt_nccl *nccl)
{
    seen.aborts++;
    seen.aborted = true;
}

static const dt_nccl_link link_of_test = {.version = link_version,
                                          .connect = link_connect,
                                          .state = link_state,
                                          .call = link_call,
                                          .reached = link_reached,
                                          .abort = link_abort};

static dt_status host_barrier(dt_comm *comm, dt_error *err)
{
    seen.host_barriers++;
    return DT_OK;
}

static dt_status host_sum(dt_comm *comm, double *data, int64_t elems, dt_error *err)
{
    data[0] *= 2;
    return DT_OK;
}

static void host_close(dt_comm *comm)
{
    seen.host_closed++;
}

static dt_device device = {.queues = &queues};

static dt_status open_one(dt_comm *out, double timeout_seconds, const dt_peer *peer, dt_error *err)
{
    dt_nccl_options options = {.link = &link_of_test,
                               .device = &device,
                               .name = "test",
                               .rank = 1,
                               .world_size = 4,
                               .timeout_seconds = timeout_seconds,
                               .peers = peer,
                               .peer_count = peer != NULL};
    dt_comm host = {.barrier = host_barrier, .all_reduce_f64 = host_sum, .close = host_close};
    uint8_t id[DT_NCCL_ID_BYTES] = {42};
    dt_status st = dt_nccl_open(out, &options, id, &host, err);

    assert_null(host.close); /* taken over, also on failure */
    return st;
}

static int start(void **state)
{
    memset(&seen, 0, sizeof(seen));
    return 0;
}

/* Checks after each test that nothing is left. */
static int end(void **state)
{
    assert_int_equal(seen.aborts, 1);
    assert_int_equal(seen.host_closed, 1);
    assert_int_equal(seen.events, 0);
    return 0;
}

/* --- tests */

static void test_collectives_are_queued_as_they_are_called(void **state)
{
    float data[8] = {0}, part[2] = {0};
    dt_error err = DT_ERROR_INIT;
    double value = 3;
    dt_comm comm;

    seen.busy_looks = 3; /* connecting takes a while */
    assert_int_equal(open_one(&comm, 60, NULL, &err), DT_OK);
    assert_non_null(comm.queue);
    assert_int_equal(comm.all_reduce(&comm, data, 8, DT_F32, &err), DT_OK);
    assert_int_equal(comm.reduce_scatter(&comm, part, data, 2, DT_BF16, &err), DT_OK);
    assert_int_equal(comm.all_gather(&comm, data, part, 8, &err), DT_OK);
    assert_int_equal(comm.broadcast(&comm, data, 32, 2, &err), DT_OK);
    assert_int_equal(comm.all_reduce(&comm, data, 0, DT_F32, &err), DT_OK);
    assert_int_equal(seen.call_count, 4); /* empty collectives are not queued */
    assert_int_equal(seen.calls[0].kind, DT_NCCL_ALL_REDUCE);
    assert_int_equal(seen.calls[0].elems, 8);
    assert_int_equal(seen.calls[1].dtype, DT_BF16);
    assert_ptr_equal(seen.calls[1].in, data);
    assert_ptr_equal(seen.calls[1].out, part);
    assert_int_equal(seen.calls[2].elems, 8);
    assert_int_equal(seen.calls[3].root, 2);
    /* all-reduce 2*3*32/4, reduce-scatter 3*2*2, all-gather 3*8; a broadcast ends at the rank before its root */
    assert_int_equal(comm.sent_bytes, 48 + 12 + 24);
    assert_int_equal(comm.all_reduce_f64(&comm, &value, 1, &err), DT_OK);
    assert_true(value == 6);
    seen.done_calls = 4;
    assert_int_equal(comm.barrier(&comm, &err), DT_OK);
    assert_int_equal(seen.host_barriers, 1);
    dt_comm_close(&comm);
}

static void test_a_call_waits_until_the_one_before_is_taken(void **state)
{
    dt_error err = DT_ERROR_INIT;
    float data[4] = {0};
    dt_comm comm;

    seen.looks_of_a_call = 2;
    assert_int_equal(open_one(&comm, 60, NULL, &err), DT_OK);
    for (int i = 0; i < 3 * DT_NCCL_HISTORY; i++) { /* the ring buffer wraps around */
        assert_int_equal(comm.all_reduce(&comm, data, 4, DT_F32, &err), DT_OK);
        assert_int_equal(seen.busy_looks, 0);
    }
    seen.done_calls = 3 * DT_NCCL_HISTORY;
    assert_int_equal(comm.finish(&comm, &err), DT_OK);
    dt_comm_close(&comm);
}

/* finish() returns the error, and so does each later call. */
static void expect_failure(dt_comm *comm, const char *words)
{
    double begin = dt_clock_monotonic_seconds();
    dt_error err = DT_ERROR_INIT, again = DT_ERROR_INIT;
    float data[4] = {0};

    assert_int_equal(comm->finish(comm, &err), DT_ERR_COMM);
    assert_non_null(strstr(err.message, words));
    assert_non_null(strstr(err.message, "rank 1 of 4"));
    assert_true(dt_clock_monotonic_seconds() - begin < 30); /* it does not hang */
    assert_int_equal(comm->all_reduce(comm, data, 4, DT_F32, &again), DT_ERR_COMM);
    assert_string_equal(again.message, err.message);
    dt_comm_close(comm);
}

static void test_an_error_of_another_rank_ends_what_is_queued(void **state)
{
    dt_error err = DT_ERROR_INIT;
    float data[4] = {0};
    dt_comm comm;

    assert_int_equal(open_one(&comm, 60, NULL, &err), DT_OK);
    assert_int_equal(comm.all_reduce(&comm, data, 4, DT_F32, &err), DT_OK);
    seen.async_error = 1;
    expect_failure(&comm, "remote error");
}

static void test_a_missing_rank_does_not_hang(void **state)
{
    dt_error err = DT_ERROR_INIT;
    float data[4] = {0};
    dt_comm comm;

    assert_int_equal(open_one(&comm, 0.3, NULL, &err), DT_OK);
    assert_int_equal(comm.all_reduce(&comm, data, 4, DT_F32, &err), DT_OK);
    assert_int_equal(comm.reduce_scatter(&comm, data, data, 1, DT_F32, &err), DT_OK);
    seen.done_calls = 1; /* the first call is done; the message names the second */
    expect_failure(&comm, "reduce_scatter #2");
}

static void test_a_process_of_this_node_that_is_gone_is_seen(void **state)
{
    dt_error err = DT_ERROR_INIT;
    float data[4] = {0};
    pid_t child = fork();
    dt_peer peer;
    dt_comm comm;

    if (child == 0)
        _exit(0);
    assert_true(child > 0);
    assert_int_equal(dt_peer_self(&peer, &err), DT_OK);
    peer.pid = child;
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(open_one(&comm, 600, &peer, &err), DT_OK);
    assert_int_equal(comm.all_reduce(&comm, data, 4, DT_F32, &err), DT_OK);
    expect_failure(&comm, "has died");
}

static void test_connecting_that_fails_leaves_nothing(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_comm comm;

    seen.connect_fails = true;
    assert_int_equal(open_one(&comm, 60, NULL, &err), DT_ERR_COMM);
    assert_non_null(strstr(err.message, "refused"));
    assert_null(comm.close);
}

static void test_connecting_to_nobody_ends(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_comm comm;

    seen.busy_looks = 1 << 30;
    assert_int_equal(open_one(&comm, 0.3, NULL, &err), DT_ERR_COMM);
    assert_non_null(strstr(err.message, "did not connect"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_collectives_are_queued_as_they_are_called),
        TEST(test_a_call_waits_until_the_one_before_is_taken),
        TEST(test_an_error_of_another_rank_ends_what_is_queued),
        TEST(test_a_missing_rank_does_not_hang),
        TEST(test_a_process_of_this_node_that_is_gone_is_seen),
        TEST(test_connecting_that_fails_leaves_nothing),
        TEST(test_connecting_to_nobody_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
