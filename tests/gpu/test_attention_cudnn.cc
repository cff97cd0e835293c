/* Whose forward attention an emulated card runs, with a stand-in for cuDNN
 * (tests/unit/cudnn_standin.h) that is as late as the card's streams: its results are used if it is
 * chosen, and dtrun's, bit for bit, if anything is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern "C" {
#include <cmocka.h>
}

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "emulator.h"
#include "engine/device/device_cuda.h"
#include "engine/device/queue.h"
#include "engine/ops/ops.h"
#include "tests/unit/cudnn_standin.h"

#define B 1
#define T 9
#define H 2
#define D 64

extern "C" const dt_cuda_entry dt_cuda_entry_1;

static cudnn_standin *standin;
static char cache[64];
static bool even; /* every key has the same weight: late queries are averages, and small */

static void queue(void *stream, void (*work)(void *), void *what)
{
    dt_emulated_enqueue((cudaStream_t)stream, [=]() {
        dt_emulated_open kernels_see;

        work(what);
    });
}

static int find_standin(void **state)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);

    standin = library != NULL ? (cudnn_standin *)dlsym(library, "dt_cudnn_standin") : NULL;
    if (standin == NULL)
        print_error("the stand-in for cuDNN is not in LD_LIBRARY_PATH\n");
    return standin != NULL ? 0 : -1;
}

static int start(void **state)
{
    memset(standin, 0, sizeof(*standin));
    standin->version = 92600;
    standin->engines = 2;
    standin->workspace_bytes = 4096;
    standin->out_factor = 1.0f;
    standin->queue = queue;
    even = false;
    snprintf(cache, sizeof(cache), "/tmp/dtrun-attention-XXXXXX");
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("DTRUN_ATTENTION", "cudnn", 1);
    return 0;
}

static int end(void **state)
{
    assert_int_equal(standin->living, 0);
    return dt_file_remove_tree(cache, NULL) == DT_OK ? 0 : -1;
}

/* --- a card and one attention */

typedef struct trial {
    dt_device device;
    void *qkv, *out, *lse;
    uint16_t got[B * T * H * D];
    float got_lse[B * H * T];
} trial;

/* Returns element i of qkv: bf16 of size 1 to 2, of both signs. If `even`, queries are 0, and signs
 * depend on the position. */
static uint16_t number(size_t i)
{
    uint16_t size = (uint16_t)(0x3f80 | i * 37 % 128);
    size_t row = 3 * H * D;

    if (even && i % row < H * D)
        return 0;
    return (even ? i / row % 2 != 0 : i * 13 % 3 == 0) ? size | 0x8000 : size;
}

static void open_trial(trial *t)
{
    uint16_t qkv[B * T * 3 * H * D];
    dt_error err = DT_ERROR_INIT;

    for (size_t i = 0; i < B * T * 3 * H * D; i++)
        qkv[i] = number(i);
    assert_int_equal(dt_cuda_entry_1.open(&t->device, 0, false, &err), DT_OK);
    assert_int_equal(t->device.alloc(&t->device, &t->qkv, sizeof(qkv), &err), DT_OK);
    assert_int_equal(t->device.alloc(&t->device, &t->out, sizeof(t->got), &err), DT_OK);
    assert_int_equal(t->device.alloc(&t->device, &t->lse, sizeof(t->got_lse), &err), DT_OK);
    assert_int_equal(t->device.copy_in(&t->device, t->qkv, qkv, sizeof(qkv), &err), DT_OK);
}

static void close_trial(trial *t)
{
    t->device.free(&t->device, t->qkv);
    t->device.free(&t->device, t->out);
    t->device.free(&t->device, t->lse);
    t->device.close(&t->device);
}

static dt_status give(trial *t, bool causal, double p, dt_error *err)
{
    dt_tensor qkv = dt_tensor_3d(t->qkv, DT_BF16, B, T, 3 * H * D);
    dt_tensor out = dt_tensor_3d(t->out, DT_BF16, B, T, H * D);
    dt_tensor lse = dt_tensor_3d(t->lse, DT_F32, B, H, T);
    const dt_philox_key key = {};
    const dt_qkv x = dt_qkv_packed(&qkv, H);
    dt_attention_args args = {};

    args.mask = causal ? DT_MASK_CAUSAL : DT_MASK_FULL;
    args.p = p;
    args.key = &key;
    return t->device.ops->attention_forward(&t->device, &out, &lse, &x, &args, err);
}

static void forward_of(trial *t, bool causal, double p)
{
    dt_error err = DT_ERROR_INIT;

    if (give(t, causal, p, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(t->device.copy_out(&t->device, t->got, t->out, sizeof(t->got), &err), DT_OK);
    assert_int_equal(t->device.copy_out(&t->device, t->got_lse, t->lse, sizeof(t->got_lse), &err),
                     DT_OK);
}

static void forward(trial *t)
{
    forward_of(t, true, 0);
}

static void ours(trial *t)
{
    setenv("DTRUN_ATTENTION", "own", 1);
    open_trial(t);
    forward(t);
    close_trial(t);
    setenv("DTRUN_ATTENTION", "cudnn", 1);
}

static bool same(const trial *a, const trial *b)
{
    return memcmp(a->got, b->got, sizeof(a->got)) == 0 &&
           memcmp(a->got_lse, b->got_lse, sizeof(a->got_lse)) == 0;
}

/* --- tests */

static void test_what_is_chosen_is_run_once_a_call(void **state)
{
    trial own, t;
    int runs;

    ours(&own);
    assert_int_equal(standin->calls, 0);
    standin->out_factor = 1.015625f; /* within rounding, but distinguishable from dtrun's */
    open_trial(&t);
    forward(&t);
    assert_false(same(&own, &t));
    runs = standin->runs;
    assert_true(runs >= 4); /* it was timed, and its bits were compared */
    forward(&t);
    assert_int_equal(standin->runs, runs + 1);
    assert_int_equal(standin->handles, 1);
    close_trial(&t);
}

static void expect_ours(const char *wish, const char *why)
{
    trial own, t;
    int runs;

    ours(&own);
    setenv("DTRUN_ATTENTION", wish, 1);
    open_trial(&t);
    forward(&t);
    runs = standin->runs;
    forward(&t);
    if (!same(&own, &t) || standin->runs != runs)
        fail_msg("%s, and it is used", why);
    close_trial(&t);
}

static void test_results_that_are_wrong_are_not_taken(void **state)
{
    standin->out_factor = 1.1f;
    expect_ours("cudnn", "it is wrong");
}

/* An error that is not visible at the first query, whose output is one value unchanged. */
static void test_results_that_are_wrong_for_late_queries_are_not_taken(void **state)
{
    trial t;
    int runs;

    even = true;
    standin->out_factor = 1.015625f; /* within rounding, including late queries */
    open_trial(&t);
    forward(&t);
    runs = standin->runs;
    forward(&t);
    assert_int_equal(standin->runs, runs + 1);
    close_trial(&t);
    standin->out_from = 5;
    standin->out_factor = 1.1f;
    expect_ours("cudnn", "it is wrong for late queries");
}

static void test_bits_that_vary_are_not_taken(void **state)
{
    standin->out_drift = 0.004f;
    expect_ours("cudnn", "its bits vary");
}

static void test_where_it_is_not_faster_ours_runs_and_that_is_remembered(void **state)
{
    trial t;

    expect_ours("fastest", "it is not faster"); /* both take the same time here */
    assert_true(standin->runs > 0);
    standin->calls = 0;
    open_trial(&t);
    forward(&t);
    assert_int_equal(standin->calls, 0);
    close_trial(&t);
}

static void test_a_run_that_fails_is_ours_from_then_on(void **state)
{
    trial own, t;
    int calls;

    ours(&own);
    open_trial(&t);
    forward(&t);
    standin->fail_at = standin->calls + 6; /* the last call of a run */
    forward(&t);
    assert_true(same(&own, &t));
    calls = standin->calls;
    forward(&t);
    assert_true(same(&own, &t));
    assert_int_equal(standin->calls, calls);
    close_trial(&t);
}

static void test_a_run_that_fails_while_it_is_recorded_changes_nothing(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_graph *graph;
    trial own, t, before;
    int64_t nodes;

    ours(&own);
    standin->out_factor = 1.015625f;
    open_trial(&t);
    forward(&t);
    before = t;
    assert_int_equal(t.device.graphs->begin(&t.device, &err), DT_OK);
    standin->fail_at = standin->calls + 6;
    assert_int_not_equal(give(&t, true, 0, &err), DT_OK);
    dt_error_clear(&err);
    assert_int_equal(t.device.graphs->end(&t.device, &graph, &nodes, &err), DT_OK);
    assert_null(graph);
    forward(&t);
    assert_true(same(&before, &t));
    assert_false(same(&own, &t));
    close_trial(&t);
}

static void test_whichever_call_fails_at_first_the_result_is_ours_or_as_good(void **state)
{
    trial own, t;
    int calls;

    ours(&own);
    standin->engines = 1;
    open_trial(&t);
    forward(&t);
    close_trial(&t);
    calls = standin->calls - 6; /* before the run that counts */
    for (int i = 1; i <= calls; i += 13) {
        standin->calls = 0;
        standin->fail_at = i;
        open_trial(&t);
        forward(&t);
        assert_true(same(&own, &t));
        close_trial(&t);
    }
}

static void test_with_dropout_and_where_it_is_full_it_is_not_asked(void **state)
{
    trial t;

    open_trial(&t);
    forward_of(&t, true, 0.1);
    forward_of(&t, false, 0);
    assert_int_equal(standin->calls, 0);
    close_trial(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main()
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_chosen_is_run_once_a_call),
        TEST(test_results_that_are_wrong_are_not_taken),
        TEST(test_results_that_are_wrong_for_late_queries_are_not_taken),
        TEST(test_bits_that_vary_are_not_taken),
        TEST(test_where_it_is_not_faster_ours_runs_and_that_is_remembered),
        TEST(test_a_run_that_fails_is_ours_from_then_on),
        TEST(test_a_run_that_fails_while_it_is_recorded_changes_nothing),
        TEST(test_whichever_call_fails_at_first_the_result_is_ours_or_as_good),
        TEST(test_with_dropout_and_where_it_is_full_it_is_not_asked),
    };

    return cmocka_run_group_tests(tests, find_standin, NULL);
}
