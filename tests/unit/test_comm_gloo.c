/* Collectives between processes of this machine; the bodies run in the ranks. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/comm/comm.h"
#include "engine/events.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"

#include "base/banned.h"

#define SAME_ELEMS 100003

typedef struct shared {
    int world_size;
    float same[RANKS_MAX][SAME_ELEMS];
} shared;

static int open_comm(dt_events **events, dt_comm *comm, int rank, const shared *s,
                     double timeout_seconds)
{
    CHECK(dt_events_open(events, rank, s->world_size, NULL) == DT_OK);
    CHECK(dt_comm_open(comm, *events, "test", rank, s->world_size, timeout_seconds, NULL) == DT_OK);
    CHECK(strcmp(comm->name, "gloo") == 0);
    return 0;
}

static int run_ranks(int world_size, int (*body)(int rank, void *self), shared *s)
{
    ranks all = {.world_size = world_size, .timeout_seconds = 40, .body = body, .self = s};

    s->world_size = world_size;
    return ranks_run(&all);
}

static int body_collectives(int rank, void *self)
{
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, self, 20) == 0);
    CHECK(check_collectives(&comm) == 0);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

/* Several segments and rounds of the ring. */
static int body_counted(int rank, void *self)
{
    const shared *s = self;
    int64_t n = 5000001, world_size = s->world_size;
    float *data = calloc((size_t)(n * world_size), sizeof(*data));
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, s, 20) == 0);
    for (int64_t i = 0; i < n * world_size; i++)
        data[i] = (float)((i + rank) % 1000);
    CHECK(comm.reduce_scatter(&comm, data + rank * n, data, n, DT_F32, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;

        for (int r = 0; r < world_size; r++)
            sum += (float)((rank * n + i + r) % 1000);
        CHECK(data[rank * n + i] == sum);
    }
    CHECK(comm.sent_bytes == (world_size - 1) * n * 4);
    CHECK(comm.all_gather(&comm, data, data + rank * n, (size_t)n * 4, NULL) == DT_OK);
    CHECK(comm.sent_bytes == 2 * (world_size - 1) * n * 4);
    comm.sent_bytes = 0;
    CHECK(comm.all_reduce(&comm, data, n, DT_F32, NULL) == DT_OK);
    CHECK(comm.sent_bytes == 2 * (world_size - 1) * n * 4 / world_size);
    dt_comm_close(&comm);
    dt_events_close(events);
    free(data);
    return 0;
}

static int body_broadcast(int rank, void *self)
{
    const shared *s = self;
    unsigned char bytes[1001];
    dt_events *events;
    dt_comm comm;
    double sent = 0;

    CHECK(open_comm(&events, &comm, rank, s, 20) == 0);
    for (int root = 0; root < s->world_size; root++) {
        memset(bytes, rank + 1, sizeof(bytes));
        CHECK(comm.broadcast(&comm, bytes, sizeof(bytes), root, NULL) == DT_OK);
        for (size_t i = 0; i < sizeof(bytes); i++)
            CHECK(bytes[i] == root + 1);
    }
    /* Each broadcast reaches all but the root: so much was sent by all together. */
    sent = (double)comm.sent_bytes;
    CHECK(comm.all_reduce_f64(&comm, &sent, 1, NULL) == DT_OK);
    CHECK(sent == (double)s->world_size * (s->world_size - 1) * sizeof(bytes));
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

/* Values whose sum depends on the order of the additions. */
static int body_same_bits(int rank, void *self)
{
    shared *s = self;
    dt_events *events;
    dt_comm comm;
    uint32_t x = 12345u + (uint32_t)rank;

    CHECK(open_comm(&events, &comm, rank, s, 20) == 0);
    for (int i = 0; i < SAME_ELEMS; i++) {
        x = x * 1664525u + 1013904223u;
        s->same[rank][i] = ((float)(x >> 8) / 16777216.0f - 0.5f) * (float)(1 << (x & 15));
    }
    CHECK(comm.all_reduce(&comm, s->same[rank], SAME_ELEMS, DT_F32, NULL) == DT_OK);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_peer_dies(int rank, void *self)
{
    dt_error err = DT_ERROR_INIT;
    float data[100] = {0};
    dt_events *events;
    dt_comm comm;
    double start;

    CHECK(open_comm(&events, &comm, rank, self, 30) == 0);
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    if (rank == 1)
        _exit(0);
    start = dt_clock_monotonic_seconds();
    CHECK(comm.all_reduce(&comm, data, 100, DT_F32, &err) == DT_ERR_COMM);
    CHECK(strncmp(err.message, "rank ", 5) == 0);
    CHECK(comm.all_reduce(&comm, data, 100, DT_F32, NULL) == DT_ERR_COMM);
    CHECK(comm.all_reduce_f64(&comm, (double[1]){0}, 1, NULL) == DT_ERR_COMM);
    CHECK(comm.broadcast(&comm, data, 4, 0, NULL) == DT_ERR_COMM);
    CHECK(comm.barrier(&comm, NULL) == DT_ERR_COMM);
    CHECK(dt_clock_monotonic_seconds() - start < 10);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_peer_hangs(int rank, void *self)
{
    float data[100] = {0};
    dt_events *events;
    dt_comm comm;
    double start;

    CHECK(open_comm(&events, &comm, rank, self, 1) == 0);
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    if (rank == 1) {
        dt_clock_sleep_seconds(5);
        _exit(0);
    }
    start = dt_clock_monotonic_seconds();
    CHECK(comm.all_reduce(&comm, data, 100, DT_F32, NULL) == DT_ERR_COMM);
    CHECK(dt_clock_monotonic_seconds() - start < 4.5);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_peer_never_comes(int rank, void *self)
{
    const shared *s = self;
    dt_error err = DT_ERROR_INIT;
    dt_events *events;
    dt_comm comm;

    if (rank == 1)
        return 0;
    CHECK(dt_events_open(&events, rank, s->world_size, NULL) == DT_OK);
    CHECK(dt_comm_open(&comm, events, "test", rank, s->world_size, 0.5, &err) == DT_ERR_TIMEOUT);
    CHECK(strstr(err.message, "rendezvous 'comm/test") != NULL);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_bad_address(int rank, void *self)
{
    const shared *s = self;
    dt_error err = DT_ERROR_INIT;
    dt_events *events;
    dt_comm comm;

    setenv("DTRUN_INTERFACE_ADDRESS", "192.0.2.1", 1); /* for documentation: nobody's */
    CHECK(dt_events_open(&events, rank, s->world_size, NULL) == DT_OK);
    CHECK(dt_comm_open(&comm, events, "test", rank, s->world_size, 5, &err) == DT_ERR_USAGE);
    CHECK(strstr(err.message, "'192.0.2.1'") != NULL);
    dt_events_close(events);
    return 0;
}

static void test_collectives_are_right(void **state)
{
    for (int world_size = 2; world_size <= 4; world_size++)
        assert_int_equal(run_ranks(world_size, body_collectives, *state), 0);
}

static void test_large_ones_are_right_and_what_is_sent_is_counted(void **state)
{
    for (int world_size = 2; world_size <= 3; world_size++)
        assert_int_equal(run_ranks(world_size, body_counted, *state), 0);
}

static void test_a_broadcast_reaches_all_from_any_root(void **state)
{
    for (int world_size = 2; world_size <= 5; world_size++)
        assert_int_equal(run_ranks(world_size, body_broadcast, *state), 0);
}

static void test_all_ranks_and_all_runs_get_the_same_bits(void **state)
{
    shared *s = *state;
    float *first = malloc(sizeof(s->same[0]));

    for (int run = 0; run < 3; run++) {
        assert_int_equal(run_ranks(3, body_same_bits, s), 0);
        if (run == 0)
            memcpy(first, s->same[0], sizeof(s->same[0]));
        for (int rank = 0; rank < 3; rank++)
            assert_memory_equal(s->same[rank], first, sizeof(s->same[0]));
    }
    free(first);
}

static void test_a_dead_peer_is_an_error_within_seconds(void **state)
{
    assert_int_equal(run_ranks(2, body_peer_dies, *state), 0);
    assert_int_equal(run_ranks(3, body_peer_dies, *state), 0);
}

static void test_a_peer_that_hangs_is_an_error_after_the_timeout(void **state)
{
    assert_int_equal(run_ranks(2, body_peer_hangs, *state), 0);
}

static void test_a_peer_that_never_comes_is_an_error_after_the_timeout(void **state)
{
    assert_int_equal(run_ranks(2, body_peer_never_comes, *state), 0);
}

static void test_an_address_of_another_machine_is_an_error(void **state)
{
    assert_int_equal(run_ranks(2, body_bad_address, *state), 0);
}

static void test_one_rank_needs_nobody(void **state)
{
    dt_comm comm;

    assert_int_equal(dt_comm_open(&comm, NULL, "test", 0, 1, 1, NULL), DT_OK);
    assert_string_equal(comm.name, "self");
    assert_int_equal(check_collectives(&comm), 0);
    assert_int_equal(comm.sent_bytes, 0);
    dt_comm_close(&comm);
    dt_comm_close(&comm);
}

static int share_memory(void **state)
{
    *state = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *state == MAP_FAILED ? -1 : 0;
}

static int unshare_memory(void **state)
{
    return munmap(*state, sizeof(shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_needs_nobody),
        cmocka_unit_test(test_collectives_are_right),
        cmocka_unit_test(test_large_ones_are_right_and_what_is_sent_is_counted),
        cmocka_unit_test(test_a_broadcast_reaches_all_from_any_root),
        cmocka_unit_test(test_all_ranks_and_all_runs_get_the_same_bits),
        cmocka_unit_test(test_a_dead_peer_is_an_error_within_seconds),
        cmocka_unit_test(test_a_peer_that_hangs_is_an_error_after_the_timeout),
        cmocka_unit_test(test_a_peer_that_never_comes_is_an_error_after_the_timeout),
        cmocka_unit_test(test_an_address_of_another_machine_is_an_error),
    };

    return cmocka_run_group_tests_name("comm: collectives between processes", tests, share_memory,
                                       unshare_memory);
}
