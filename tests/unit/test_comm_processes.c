/* comm_processes: collectives between processes of this machine; the bodies run in the ranks. NODE_RANK
 * says which ranks share a node, and so which transport they get.
 *
 *     test_comm_processes        one layout of each transport
 *     test_comm_processes all    every layout
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/channel/events.h"
#include "engine/comm/comm.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"

/* Seconds, longer than the test: nothing in the test ends by this timeout. */
#define FOR_EVER 300

/* The timeout of ranks one of which stops. Not a second: all of them have to connect first, on a busy machine. */
#define STOP_SECONDS 5

#define SAME_ELEMS 100003

typedef struct layout {
    const char *kind;
    int world_size;
    int node[RANKS_MAX];
} layout;

typedef struct shared {
    int world_size;
    const layout *layout;
    pid_t stopped;
    _Atomic int seen; /* number of ranks that noticed the stop */
    float same[RANKS_MAX][SAME_ELEMS];
} shared;

/* The first LAYOUTS_SHORT have one of each transport, with an odd number of ranks or with nodes
 * of different sizes. */
static const layout layouts[] = {
    {"shm", 3, {0}},
    {"gloo", 3, {0, 1, 2}},
    {"nodes", 4, {0, 1, 1, 2}},
    {"shm", 2, {0}},
    {"shm", 4, {0}},
    {"gloo", 2, {0, 1}},
    {"gloo", 4, {0, 1, 2, 3}},
    {"nodes", 4, {0, 0, 1, 1}},
    {"nodes", 3, {0, 0, 1}},
    {"gloo", 4, {0, 1, 0, 1}}, /* no neighbours share a node */
};

#define LAYOUTS_SHORT 3

static size_t layout_count = LAYOUTS_SHORT;

static dt_status open_with(dt_events **events, dt_comm *comm, int rank, const shared *s,
                           double timeout_seconds, dt_error *err)
{
    char node[16];
    dt_status st;

    snprintf(node, sizeof(node), "%d", s->layout->node[rank]);
    setenv("NODE_RANK", node, 1);
    st = dt_events_open(events, rank, s->world_size, err);
    if (st == DT_OK)
        st = dt_comm_open(comm, *events, "test", dt_group_all(rank, s->world_size), timeout_seconds,
                          err);
    return st;
}

static int open_comm(dt_events **events, dt_comm *comm, int rank, const shared *s,
                     double timeout_seconds)
{
    dt_error err = DT_ERROR_INIT;

    if (open_with(events, comm, rank, s, timeout_seconds, &err) != DT_OK)
        fprintf(stderr, "rank %d: %s\n", rank, err.message);
    CHECK(err.code == DT_OK);
    CHECK(strcmp(comm->name, s->layout->kind) == 0);
    return 0;
}

static int run_layout(const layout *l, int (*body)(int rank, void *self), shared *s)
{
    ranks all = {.world_size = l->world_size, .timeout_seconds = 250, .body = body, .self = s};
    int code;

    s->layout = l;
    s->world_size = l->world_size;
    code = ranks_run(&all);
    if (code != 0)
        fprintf(stderr, "with %d ranks, %s: %d\n", l->world_size, l->kind, code);
    return code;
}

static void run_all(int (*body)(int rank, void *self), shared *s)
{
    for (size_t i = 0; i < layout_count; i++)
        assert_int_equal(run_layout(&layouts[i], body, s), 0);
}

static int body_collectives(int rank, void *self)
{
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, self, 100) == 0);
    CHECK(check_collectives(&comm) == 0);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

/* Covers many chunks of shared memory, and several segments and rounds of Gloo's ring. Checks
 * the bytes that all ranks sent against the formulas; between nodes of different sizes they may
 * be more. */
static int body_large(int rank, void *self)
{
    const shared *s = self;
    int64_t n = 3000000, world_size = s->world_size, bytes = n * 4;
    bool exact = strcmp(s->layout->kind, "nodes") != 0 || s->layout->node[1] == 0;
    float *data = calloc((size_t)(n * world_size), sizeof(*data));
    dt_events *events;
    dt_comm comm;
    double sent[3];

    exact = exact && world_size != 3;
    CHECK(open_comm(&events, &comm, rank, s, 100) == 0);
    for (int64_t i = 0; i < n * world_size; i++)
        data[i] = (float)((i + rank) % 1000);
    CHECK(comm.reduce_scatter(&comm, data + rank * n, data, n, DT_F32, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;

        for (int r = 0; r < world_size; r++)
            sum += (float)((rank * n + i + r) % 1000);
        CHECK(data[rank * n + i] == sum);
    }
    sent[0] = (double)comm.sent_bytes;
    CHECK(comm.all_gather(&comm, data, data + rank * n, (size_t)bytes, NULL) == DT_OK);
    sent[1] = (double)comm.sent_bytes - sent[0];
    CHECK(comm.all_reduce(&comm, data, n, DT_F32, NULL) == DT_OK);
    sent[2] = (double)comm.sent_bytes - sent[1] - sent[0];
    CHECK(comm.all_reduce_f64(&comm, sent, 3, NULL) == DT_OK);
    CHECK(!exact || sent[0] == (double)(world_size * (world_size - 1) * bytes));
    CHECK(!exact || sent[1] == (double)(world_size * (world_size - 1) * bytes));
    CHECK(!exact || sent[2] == (double)(2 * (world_size - 1) * bytes));
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

    CHECK(open_comm(&events, &comm, rank, s, 100) == 0);
    for (int root = 0; root < s->world_size; root++) {
        memset(bytes, rank + 1, sizeof(bytes));
        CHECK(comm.broadcast(&comm, bytes, sizeof(bytes), root, NULL) == DT_OK);
        for (size_t i = 0; i < sizeof(bytes); i++)
            CHECK(bytes[i] == root + 1);
    }
    /* Each broadcast reaches all ranks but the root; checks the sum of sent bytes. */
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

    CHECK(open_comm(&events, &comm, rank, s, 100) == 0);
    for (int i = 0; i < SAME_ELEMS; i++) {
        x = x * 1664525u + 1013904223u;
        s->same[rank][i] = ((float)(x >> 8) / 16777216.0f - 0.5f) * (float)(1 << (x & 15));
    }
    CHECK(comm.all_reduce(&comm, s->same[rank], SAME_ELEMS, DT_F32, NULL) == DT_OK);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int expect_dead(dt_comm *comm)
{
    int rank = (int)comm->rank;
    dt_error err = DT_ERROR_INIT;
    float data[800] = {0};

    CHECK(comm->all_reduce(comm, data, 100, DT_F32, &err) == DT_ERR_COMM);
    CHECK(strncmp(err.message, "rank ", 5) == 0 || strncmp(err.message, "waited ", 7) == 0);
    CHECK(comm->all_reduce(comm, data, 100, DT_F32, NULL) == DT_ERR_COMM);
    CHECK(comm->all_reduce_f64(comm, (double[1]){0}, 1, NULL) == DT_ERR_COMM);
    CHECK(comm->reduce_scatter(comm, data, data, 100, DT_F32, NULL) == DT_ERR_COMM);
    CHECK(comm->all_gather(comm, data, data, 4, NULL) == DT_ERR_COMM);
    CHECK(comm->broadcast(comm, data, 4, 0, NULL) == DT_ERR_COMM);
    CHECK(comm->barrier(comm, NULL) == DT_ERR_COMM);
    return 0;
}

/* Kills the last rank, which is not always a neighbour of the waiting ranks. */
static int body_peer_is_killed(int rank, void *self)
{
    const shared *s = self;
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, s, FOR_EVER) == 0);
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    if (rank == s->world_size - 1)
        _exit(0); /* closes nothing, like a kill, but with exit code 0 */
    CHECK(expect_dead(&comm) == 0);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_peer_is_killed_in_the_middle(int rank, void *self)
{
    const shared *s = self;
    float *data = calloc(1 << 22, sizeof(*data));
    dt_status st = DT_OK;
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, s, FOR_EVER) == 0);
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    if (rank == 0) {
        signal(SIGALRM, SIG_DFL);
        CHECK(setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 50000}}, NULL) ==
              0);
    }
    while (st == DT_OK)
        st = comm.all_reduce(&comm, data, 1 << 22, DT_F32, NULL);
    CHECK(st == DT_ERR_COMM);
    dt_comm_close(&comm);
    dt_events_close(events);
    free(data);
    return 0;
}

/* A stopped process, for which the kernel still answers. The others have it killed once all of them noticed. */
static int body_peer_stops(int rank, void *self)
{
    shared *s = self;
    dt_events *events;
    dt_comm comm;

    CHECK(open_comm(&events, &comm, rank, s, STOP_SECONDS) == 0);
    if (rank == s->world_size - 1)
        s->stopped = getpid();
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    if (rank == s->world_size - 1)
        raise(SIGSTOP);
    CHECK(expect_dead(&comm) == 0);
    if (atomic_fetch_add(&s->seen, 1) + 1 == s->world_size - 1)
        CHECK(kill(s->stopped, SIGKILL) == 0);
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
    CHECK(open_with(&events, &comm, rank, s, 0.5, &err) == DT_ERR_TIMEOUT);
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

    /* An address for documentation, which no machine has. */
    setenv("DTRUN_INTERFACE_ADDRESS", "192.0.2.1", 1);
    CHECK(open_with(&events, &comm, rank, s, 100, &err) == DT_ERR_USAGE);
    CHECK(strstr(err.message, "'192.0.2.1'") != NULL);
    dt_events_close(events);
    return 0;
}

static int body_two_families(int rank, void *self)
{
    const shared *s = self;
    dt_error err = DT_ERROR_INIT;
    dt_events *events;
    dt_comm comm;

    setenv("DTRUN_INTERFACE_ADDRESS", rank == 0 ? "127.0.0.1" : "::1", 1);
    CHECK(open_with(&events, &comm, rank, s, 100, &err) == DT_ERR_UNSUPPORTED);
    CHECK(strstr(err.message, "network.interface") != NULL);
    dt_events_close(events);
    return 0;
}

static int body_secret(int rank, void *self)
{
    dt_events *events;
    dt_comm comm;

    setenv("DTRUN_RUN_SECRET", "00ff17", 1);
    CHECK(open_comm(&events, &comm, rank, self, 100) == 0);
    CHECK(comm.barrier(&comm, NULL) == DT_OK);
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static int body_wrong_secret(int rank, void *self)
{
    const shared *s = self;
    dt_error err = DT_ERROR_INIT;
    dt_events *events;
    dt_comm comm;

    setenv("DTRUN_RUN_SECRET", rank == 1 ? "00ff18" : "00ff17", 1);
    CHECK(open_with(&events, &comm, rank, s, 100, &err) == DT_ERR_COMM);
    CHECK(strstr(err.message, "does not know the secret") != NULL ||
          strstr(err.message, "authenticate the ranks") != NULL);
    CHECK(rank != 1 || strstr(err.message, "does not know the secret") != NULL);
    CHECK(strstr(err.message, "00ff") == NULL);
    dt_events_close(events);
    return 0;
}

static int body_bad_secret(int rank, void *self)
{
    const shared *s = self;
    dt_error err = DT_ERROR_INIT;
    dt_events *events;
    dt_comm comm;

    setenv("DTRUN_RUN_SECRET", "no secret", 1);
    CHECK(open_with(&events, &comm, rank, s, 100, &err) == DT_ERR_USAGE);
    CHECK(strstr(err.message, "no secret") == NULL);
    dt_events_close(events);
    return 0;
}

static const layout gloo_2 = {"gloo", 2, {0, 1}}, shm_2 = {"shm", 2, {0}};

static void test_collectives_are_right(void **state)
{
    run_all(body_collectives, *state);
}

static void test_large_ones_are_right_and_what_is_sent_is_counted(void **state)
{
    run_all(body_large, *state);
}

static void test_a_broadcast_is_counted_once_for_each_that_it_reaches(void **state)
{
    run_all(body_broadcast, *state);
}

static void test_all_ranks_and_all_runs_get_the_same_bits(void **state)
{
    shared *s = *state;
    float *first = malloc(sizeof(s->same[0]));

    for (size_t i = 0; i < layout_count; i++)
        for (int run = 0; run < 3; run++) {
            assert_int_equal(run_layout(&layouts[i], body_same_bits, s), 0);
            if (run == 0)
                memcpy(first, s->same[0], sizeof(s->same[0]));
            for (int rank = 0; rank < s->world_size; rank++)
                assert_memory_equal(s->same[rank], first, sizeof(s->same[0]));
        }
    free(first);
}

static void test_a_dead_peer_is_an_error_within_seconds(void **state)
{
    run_all(body_peer_is_killed, *state);
}

static int share_memory(void **state)
{
    *state = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *state == MAP_FAILED ? -1 : 0;
}

/* Returns true if the victim ends by this signal and all other ranks exit with 0; reports others. */
static bool one_is_killed(const layout *l, int (*body)(int rank, void *self), shared *s, int victim,
                          int signal_number)
{
    ranks all = {.world_size = l->world_size, .timeout_seconds = 250, .body = body, .self = s};
    bool good = true;

    s->layout = l;
    s->world_size = l->world_size;
    s->seen = 0;
    ranks_run(&all);
    for (int rank = 0; rank < all.world_size; rank++)
        if (all.code[rank] != (rank == victim ? 128 + signal_number : 0)) {
            fprintf(stderr, "%s of %d: rank %d ended with %d\n", l->kind, l->world_size, rank,
                    all.code[rank]);
            good = false;
        }
    return good;
}

static void test_a_peer_killed_in_the_middle_is_an_error_of_all_others(void **state)
{
    for (size_t i = 0; i < layout_count; i++)
        assert_true(
            one_is_killed(&layouts[i], body_peer_is_killed_in_the_middle, *state, 0, SIGALRM));
}

/* Each layout waits for its timeout, so that several run at once, each in a process with its own shared memory. */
static void test_a_peer_that_stops_is_an_error_after_the_timeout(void **state)
{
    for (size_t first = 0; first < layout_count; first += LAYOUTS_SHORT) {
        pid_t pid[LAYOUTS_SHORT];
        size_t count = layout_count - first < LAYOUTS_SHORT ? layout_count - first : LAYOUTS_SHORT;
        bool good = true;

        fflush(NULL);
        for (size_t i = 0; i < count; i++) {
            const layout *l = &layouts[first + i];
            void *own;

            pid[i] = fork();
            assert_true(pid[i] >= 0);
            if (pid[i] == 0)
                _exit(share_memory(&own) != 0 ||
                      !one_is_killed(l, body_peer_stops, own, l->world_size - 1, SIGKILL));
        }
        for (size_t i = 0; i < count; i++) {
            int status;

            assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
            good = good && status == 0;
        }
        assert_true(good);
    }
}

static void test_a_peer_that_never_comes_is_an_error_after_the_timeout(void **state)
{
    assert_int_equal(run_layout(&gloo_2, body_peer_never_comes, *state), 0);
    assert_int_equal(run_layout(&shm_2, body_peer_never_comes, *state), 0);
}

static void test_an_address_of_another_machine_is_an_error(void **state)
{
    assert_int_equal(run_layout(&gloo_2, body_bad_address, *state), 0);
}

/* A retry would fail in the same way. */
static void test_addresses_of_two_families_are_not_tried_again(void **state)
{
    assert_int_equal(run_layout(&gloo_2, body_two_families, *state), 0);
}

static void test_ranks_that_share_a_secret_connect(void **state)
{
    run_all(body_secret, *state);
}

static void test_a_connection_without_the_secret_is_refused(void **state)
{
    for (size_t i = 0; i < layout_count; i++)
        if (strcmp(layouts[i].kind, "gloo") == 0)
            assert_int_equal(run_layout(&layouts[i], body_wrong_secret, *state), 0);
}

static void test_a_secret_that_is_not_hex_is_an_error_that_does_not_show_it(void **state)
{
    assert_int_equal(run_layout(&gloo_2, body_bad_secret, *state), 0);
}

static void test_one_rank_needs_nobody(void **state)
{
    dt_comm comm;

    assert_int_equal(dt_comm_open(&comm, NULL, "test", dt_group_all(0, 1), 1, NULL), DT_OK);
    assert_string_equal(comm.name, "self");
    assert_int_equal(check_collectives(&comm), 0);
    assert_int_equal(comm.sent_bytes, 0);
    dt_comm_close(&comm);
    dt_comm_close(&comm);
}

static int unshare_memory(void **state)
{
    return munmap(*state, sizeof(shared));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_needs_nobody),
        cmocka_unit_test(test_collectives_are_right),
        cmocka_unit_test(test_large_ones_are_right_and_what_is_sent_is_counted),
        cmocka_unit_test(test_a_broadcast_is_counted_once_for_each_that_it_reaches),
        cmocka_unit_test(test_all_ranks_and_all_runs_get_the_same_bits),
        cmocka_unit_test(test_a_dead_peer_is_an_error_within_seconds),
        cmocka_unit_test(test_a_peer_killed_in_the_middle_is_an_error_of_all_others),
        cmocka_unit_test(test_a_peer_that_stops_is_an_error_after_the_timeout),
        cmocka_unit_test(test_a_peer_that_never_comes_is_an_error_after_the_timeout),
        cmocka_unit_test(test_an_address_of_another_machine_is_an_error),
        cmocka_unit_test(test_addresses_of_two_families_are_not_tried_again),
        cmocka_unit_test(test_ranks_that_share_a_secret_connect),
        cmocka_unit_test(test_a_connection_without_the_secret_is_refused),
        cmocka_unit_test(test_a_secret_that_is_not_hex_is_an_error_that_does_not_show_it),
    };

    if (argc > 1 && strcmp(argv[1], "all") == 0)
        layout_count = sizeof(layouts) / sizeof(layouts[0]);
    return cmocka_run_group_tests_name("comm: collectives between processes", tests, share_memory,
                                       unshare_memory);
}
