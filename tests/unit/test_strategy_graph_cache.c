/* When ops are recorded and replayed, on a stand-in for a device that records its calls; no GPU is needed. */
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

/* --- the device: each op is a letter; a recorded op runs when its graph is launched */

struct dt_graph {
    char ops[16];
    int moves;
};

static char trace[2048];
static char recorded[16];
static bool recording;
static int graphs_open, moves;
static int fail_begin, fail_end; /* at the n-th call from now; 0: never */
static char fail_op;             /* an op that cannot be recorded */

#define NOTE(...)                                                    \
    do {                                                             \
        size_t noted = strlen(trace);                                \
        snprintf(trace + noted, sizeof(trace) - noted, __VA_ARGS__); \
    } while (0)

static dt_status op(char letter, dt_error *err)
{
    size_t used = strlen(recorded);

    if (!recording) {
        NOTE("%c ", letter);
        return DT_OK;
    }
    if (letter == fail_op)
        return DT_FAIL(err, DT_ERR_CUDA, "waits for the device");
    assert_true(used < sizeof(recorded) - 1);
    recorded[used] = letter;
    recorded[used + 1] = '\0';
    return DT_OK;
}

static bool is_due(int *calls)
{
    return *calls > 0 && --*calls == 0;
}

static dt_status begin(dt_device *device, dt_error *err)
{
    assert_false(recording);
    if (is_due(&fail_begin))
        return DT_FAIL(err, DT_ERR_CUDA, "no recording here");
    recording = true;
    recorded[0] = '\0';
    return DT_OK;
}

static dt_status end(dt_device *device, dt_graph **out, int64_t *nodes, dt_error *err)
{
    assert_true(recording);
    recording = false;
    *out = NULL;
    *nodes = (int64_t)strlen(recorded);
    if (is_due(&fail_end))
        return DT_FAIL(err, DT_ERR_CUDA, "the recording is void");
    if (*nodes == 0)
        return DT_OK;
    *out = calloc(1, sizeof(**out));
    assert_non_null(*out);
    memcpy((*out)->ops, recorded, sizeof(recorded));
    (*out)->moves = moves;
    graphs_open++;
    return DT_OK;
}

static dt_status launch(dt_device *device, dt_graph *graph, dt_error *err)
{
    assert_false(recording);
    NOTE("(%s) ", graph->ops);
    return DT_OK;
}

static bool valid(dt_device *device, const dt_graph *graph)
{
    return graph->moves == moves;
}

static void free_graph(dt_device *device, dt_graph *graph)
{
    graphs_open -= graph != NULL;
    free(graph);
}

static const dt_graphs graphs = {
    .begin = begin, .end = end, .launch = launch, .valid = valid, .free = free_graph};
static dt_device device = {.name = "stand-in", .graphs = &graphs};

/* --- the work: ops a and b, the host, op c */

static dt_status graph_break(void *self, int64_t which, dt_error *err)
{
    assert_false(recording);
    NOTE("host%lld ", (long long)which);
    return which == 13 ? DT_FAIL(err, DT_ERR_COMM, "peer gone") : DT_OK;
}

static dt_status give(void *self, dt_error *err)
{
    const int *which = self;
    dt_status st = DT_OK;

    DT_TRY(op('a', err));
    DT_TRY(op('b', err));
    DT_TRY(graph_break(self, *which, err));
    DT_TRY(op('c', err));
out:
    return st;
}

static dt_status record(void *self, dt_graph_cache *graph_cache, dt_error *err)
{
    const int *which = self;
    dt_status st = DT_OK;

    DT_TRY(op('a', err));
    DT_TRY(op('b', err));
    DT_TRY(dt_graph_cache_break(graph_cache, *which, err));
    DT_TRY(op('c', err));
out:
    return st;
}

static int host = 7;
static const dt_graph_cache_ops ops = {
    .self = &host, .give = give, .record = record, .graph_break = graph_break};

static dt_graph_cache *open_steady(void)
{
    dt_graph_cache *graph_cache;

    host = 7;
    recording = false;
    fail_begin = fail_end = moves = graphs_open = 0;
    fail_op = '\0';
    trace[0] = '\0';
    assert_int_equal(dt_graph_cache_open(&graph_cache, &device, "test", sizeof(char), true, NULL),
                     DT_OK);
    return graph_cache;
}

static void close_steady(dt_graph_cache *graph_cache)
{
    dt_graph_cache_close(graph_cache);
    assert_int_equal(graphs_open, 0);
}

/* Runs the work once for each letter, which is the key. */
static const char *run_keys(dt_graph_cache *graph_cache, const char *keys)
{
    trace[0] = '\0';
    for (; *keys != '\0'; keys++) {
        memcpy(dt_graph_cache_key(graph_cache), keys, 1);
        assert_int_equal(dt_graph_cache_run(graph_cache, &ops, NULL), DT_OK);
        NOTE("| ");
    }
    return trace;
}

#define GIVEN  "a b host7 c | "
#define GRAPHS "(ab) host7 (c) | "

static void test_the_third_run_alike_is_recorded_and_the_host_keeps_its_place(void **state)
{
    dt_graph_cache *graph_cache = open_steady();

    assert_string_equal(run_keys(graph_cache, "xxxx"), GIVEN GIVEN GRAPHS GRAPHS);
    close_steady(graph_cache);
}

static void test_another_key_is_given_and_recorded_once_it_is_steady(void **state)
{
    dt_graph_cache *graph_cache = open_steady();

    (void)run_keys(graph_cache, "xxx");
    /* A single other key costs nothing. */
    assert_string_equal(run_keys(graph_cache, "yx"), GIVEN GRAPHS);
    assert_string_equal(run_keys(graph_cache, "yyyy"), GIVEN GIVEN GRAPHS GRAPHS);
    assert_int_equal(graphs_open, 2); /* only those of the last key */
    assert_string_equal(run_keys(graph_cache, "xyxy"), GIVEN GRAPHS GIVEN GRAPHS);
    close_steady(graph_cache);
}

static void test_keys_that_take_turns_are_never_recorded(void **state)
{
    dt_graph_cache *graph_cache = open_steady();

    assert_string_equal(run_keys(graph_cache, "xyxyxy"), GIVEN GIVEN GIVEN GIVEN GIVEN GIVEN);
    close_steady(graph_cache);
}

/* Recorded again after memory moved, as when the shapes of an evaluation enlarge the device's workspace. */
static void test_moved_memory_is_recorded_again(void **state)
{
    dt_graph_cache *graph_cache = open_steady();

    (void)run_keys(graph_cache, "xxx");
    moves++;
    assert_string_equal(run_keys(graph_cache, "xx"), GRAPHS GRAPHS);
    assert_int_equal(graphs_open, 2);
    close_steady(graph_cache);
}

#define TEN(x) x x x x x x x x x x

/* After a failure whose cause is gone, recording is tried again after a pause. */
static void fails_once_and_is_recorded_later(dt_graph_cache *graph_cache)
{
    assert_string_equal(run_keys(graph_cache, "xxxxxx"), GIVEN GIVEN GIVEN GIVEN GIVEN GIVEN);
    assert_false(recording);
    assert_int_equal(graphs_open, 0);
    fail_op = '\0';
    for (int i = 0; i < 9; i++)
        (void)run_keys(graph_cache, TEN("x"));
    assert_string_equal(run_keys(graph_cache, TEN("x")),
                        GIVEN GIVEN GIVEN GIVEN GIVEN GIVEN GIVEN GRAPHS GRAPHS GRAPHS);
    close_steady(graph_cache);
}

static void test_a_recording_that_fails_leaves_ops_as_they_were(void **state)
{
    for (int at = 1; at <= 2; at++) { /* the first part, and the one after the cut */
        dt_graph_cache *graph_cache = open_steady();

        fail_begin = at;
        fails_once_and_is_recorded_later(graph_cache);
        graph_cache = open_steady();
        fail_end = at;
        fails_once_and_is_recorded_later(graph_cache);
        graph_cache = open_steady();
        fail_op = at == 1 ? 'b' : 'c';
        fails_once_and_is_recorded_later(graph_cache);
    }
}

static void test_a_recording_that_fails_again_and_again_is_left_alone(void **state)
{
    dt_graph_cache *graph_cache = open_steady();
    int tries = 0;

    fail_op = 'b';
    for (int i = 0; i < 20000; i++) {
        recorded[0] = '\0';
        (void)run_keys(graph_cache, "x");
        tries += recorded[0] == 'a';
    }
    assert_int_equal(tries, DT_GRAPH_CACHE_TRIES);
    close_steady(graph_cache);
}

static void test_what_fails_at_a_cut_ends_the_run(void **state)
{
    dt_graph_cache *graph_cache = open_steady();
    dt_error err = DT_ERROR_INIT;

    host = 13;
    trace[0] = '\0';
    memcpy(dt_graph_cache_key(graph_cache), "x", 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_graph_cache_run(graph_cache, &ops, &err), DT_ERR_COMM);
    assert_string_equal(trace, "a b host13 a b host13 (ab) host13 ");
    close_steady(graph_cache);
}

static void test_a_device_without_graphs_is_given_its_ops(void **state)
{
    dt_device plain = {.name = "plain"};
    dt_graph_cache *graph_cache = open_steady();

    dt_graph_cache_close(graph_cache);
    assert_int_equal(dt_graph_cache_open(&graph_cache, &plain, "test", 1, true, NULL), DT_OK);
    assert_null(graph_cache);
    assert_null(dt_graph_cache_key(graph_cache));
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_graph_cache_run(graph_cache, &ops, NULL), DT_OK);
    assert_string_equal(trace, "a b host7 c a b host7 c a b host7 c ");
    dt_graph_cache_close(graph_cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_third_run_alike_is_recorded_and_the_host_keeps_its_place),
        cmocka_unit_test(test_another_key_is_given_and_recorded_once_it_is_steady),
        cmocka_unit_test(test_keys_that_take_turns_are_never_recorded),
        cmocka_unit_test(test_moved_memory_is_recorded_again),
        cmocka_unit_test(test_a_recording_that_fails_leaves_ops_as_they_were),
        cmocka_unit_test(test_a_recording_that_fails_again_and_again_is_left_alone),
        cmocka_unit_test(test_what_fails_at_a_cut_ends_the_run),
        cmocka_unit_test(test_a_device_without_graphs_is_given_its_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
