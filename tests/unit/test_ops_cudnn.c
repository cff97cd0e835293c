/* cuDNN's attention with a stand-in for the library (cudnn_standin.h): the described graph, that
 * it computes attention, and failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/ops/cuda/cudnn.h"
#include "tests/ops/reference.h"
#include "tests/unit/cudnn_standin.h"

#define ROOM ((size_t)1 << 20)

static cudnn_standin *standin;
static const dt_cudnn_shape small = {.batch = 1, .t = 3, .heads = 2, .d = 4, .dtype = DT_BF16};

static int find_standin(void **state)
{
    void *library = dlopen(DT_CUDNN_LIBRARY, RTLD_NOW);

    standin = library != NULL ? dlsym(library, "dt_cudnn_standin") : NULL;
    if (standin == NULL)
        print_error("the stand-in for cuDNN is not in LD_LIBRARY_PATH\n");
    return standin != NULL ? 0 : -1;
}

static int start(void **state)
{
    *standin = (cudnn_standin){.version = 92600, .engines = 2, .out_factor = 1.0f};
    return 0;
}

/* Checks after each test that nothing is left. */
static int end(void **state)
{
    assert_int_equal(standin->living, 0);
    return 0;
}

/* Builds a plan from nothing, runs it once, and closes it. */
static dt_status once(const dt_cudnn_shape *shape, size_t room, void *out, float *lse,
                      const void *qkv, dt_error *err)
{
    int stream;
    dt_cudnn_plan plan = {.cudnn = NULL};
    dt_cudnn cudnn;
    dt_status st;

    DT_TRY(dt_cudnn_open(&cudnn, err));
    DT_TRY(dt_cudnn_connect(&cudnn, &stream, err));
    DT_TRY(dt_cudnn_plan_open(&plan, &cudnn, shape, room, err));
    DT_TRY(dt_cudnn_plan_run(&plan, out, lse, qkv, NULL, err));
out:
    dt_cudnn_plan_close(&plan);
    dt_cudnn_close(&cudnn);
    return st;
}

static dt_status once_small(dt_error *err)
{
    uint16_t qkv[3 * 3 * 8] = {0}, out[3 * 8];
    float lse[2 * 3];

    return once(&small, ROOM, out, lse, qkv, err);
}

/* --- the described graph */

static void test_attention_is_described_operation_by_operation(void **state)
{
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(once_small(&err), DT_OK);
    assert_string_equal(standin->log, "matmul mul index index greater_equal select "
                                      "max sub exp sum log add div matmul graph");
    assert_int_equal(standin->runs, 1);
    assert_int_equal(standin->handles, 1);
}

static uint16_t to_bf16(double x)
{
    float rounded = (float)x;
    uint32_t bits;

    memcpy(&bits, &rounded, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

static double of_16(uint16_t bits, dt_dtype dtype)
{
    uint32_t wide = (uint32_t)bits << 16;
    _Float16 half;
    float x;

    memcpy(&half, &bits, sizeof(half));
    memcpy(&x, &wide, sizeof(x));
    return dtype == DT_BF16 ? (double)x : (double)half;
}

static uint16_t to_16(double x, dt_dtype dtype)
{
    _Float16 half = (_Float16)x;
    uint16_t bits;

    memcpy(&bits, &half, sizeof(bits));
    return dtype == DT_BF16 ? to_bf16(x) : bits;
}

/* Probabilities and output are rounded to the type once each; numbers are of size 1.5. */
static void expect_attention(const dt_cudnn_shape *s, double tolerance)
{
    int64_t c = s->heads * s->d, rows = s->batch * s->t;
    size_t outs = (size_t)(rows * c), sums = (size_t)(rows * s->heads);
    uint16_t *qkv = calloc(3 * outs, sizeof(*qkv)), *out = calloc(outs, sizeof(*out));
    double *value = calloc(3 * outs, sizeof(*value)), *want = calloc(outs, sizeof(*want));
    double *want_lse = calloc(sums, sizeof(*want_lse));
    float *lse = calloc(sums, sizeof(*lse));
    const ref_attention shape = ref_self_attention(s->batch, s->t, s->heads, s->d, true, NULL);
    dt_error err = DT_ERROR_INIT;
    ref_qkv x;

    for (size_t i = 0; i < 3 * outs; i++) {
        qkv[i] = to_16(1.5 * sin(1.0 + 0.7 * (double)i + 0.001 * (double)(i * i % 977)), s->dtype);
        value[i] = of_16(qkv[i], s->dtype);
    }
    assert_int_equal(once(s, ROOM, out, lse, qkv, &err), DT_OK);
    x = ref_packed(value, &shape);
    ref_attention_forward(want, want_lse, &x, &shape);
    for (size_t i = 0; i < outs; i++)
        if (!(fabs(of_16(out[i], s->dtype) - want[i]) <= tolerance))
            fail_msg("out[%zu] is %g, not %g", i, of_16(out[i], s->dtype), want[i]);
    for (size_t i = 0; i < sums; i++)
        if (!(fabs((double)lse[i] - want_lse[i]) <= 1e-5 * (1 + fabs(want_lse[i]))))
            fail_msg("lse[%zu] is %g, not %g", i, (double)lse[i], want_lse[i]);
    free(qkv);
    free(out);
    free(value);
    free(want);
    free(want_lse);
    free(lse);
}

static void test_what_is_described_is_causal_attention(void **state)
{
    expect_attention(&(dt_cudnn_shape){2, 7, 3, 16, DT_BF16}, 2e-2);
    expect_attention(&(dt_cudnn_shape){2, 7, 3, 16, DT_F16}, 2e-3);
    expect_attention(&(dt_cudnn_shape){1, 33, 2, 64, DT_F16}, 2e-3);
    expect_attention(&(dt_cudnn_shape){1, 1, 1, 128, DT_BF16}, 2e-2);
}

/* --- engines */

static void test_engines_that_will_not_do_are_passed_over(void **state)
{
    dt_error err = DT_ERROR_INIT;

    standin->wavering = 1;
    assert_int_equal(once_small(&err), DT_OK);
    standin->wavering = 0;
    standin->unbuildable = 1;
    assert_int_equal(once_small(&err), DT_OK);
    standin->unbuildable = 0;
    standin->workspace_bytes = (int64_t)ROOM + 1;
    assert_int_equal(once_small(&err), DT_OK);
    assert_int_equal(err.code, DT_OK); /* and no message is recorded */
}

static void expect_none(const char *words)
{
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(once_small(&err), DT_ERR_UNSUPPORTED);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void test_a_missing_engine_is_reported_with_the_reason(void **state)
{
    standin->engines = 0;
    expect_none("no engine");
    standin->engines = 1;
    standin->wavering = 1;
    expect_none("not deterministic");
    standin->wavering = 0;
    standin->workspace_bytes = (int64_t)ROOM + 1;
    expect_none("1048577 bytes");
    standin->workspace_bytes = 0;
    standin->unbuildable = 1;
    expect_none("CUDNN_STATUS_NOT_SUPPORTED: call");
}

/* --- failures */

static void test_any_failing_call_is_an_error_and_leaves_nothing(void **state)
{
    dt_error err = DT_ERROR_INIT;
    int calls;

    standin->engines = 1;
    assert_int_equal(once_small(&err), DT_OK);
    calls = standin->calls;
    assert_true(calls > 200);
    for (int i = 1; i <= calls; i++) {
        standin->calls = 0;
        standin->fail_at = i;
        dt_error_clear(&err);
        assert_int_equal(once_small(&err), DT_ERR_CUDA);
        assert_int_equal(strncmp(err.message, "cudnn: ", 7), 0);
        assert_null(strchr(err.message, '\n'));
        assert_int_equal(standin->living, 0);
    }
}

static void test_a_handle_without_its_stream_is_an_error(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_cudnn cudnn;
    int stream;

    assert_int_equal(dt_cudnn_open(&cudnn, &err), DT_OK);
    standin->fail_at = 2;
    assert_int_equal(dt_cudnn_connect(&cudnn, &stream, &err), DT_ERR_CUDA);
    assert_null(cudnn.handle);
    dt_error_clear(&err);
    assert_int_equal(dt_cudnn_connect(&cudnn, &stream, &err), DT_OK);
    dt_cudnn_close(&cudnn);
}

static void test_an_old_library_is_refused_by_its_number(void **state)
{
    dt_error err = DT_ERROR_INIT;

    standin->version = DT_CUDNN_OLDEST - 1;
    assert_int_equal(once_small(&err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "91899"));
    assert_int_equal(standin->calls, 0);
}

/* In another process, since a loaded library stays. An installed library may be found. */
static void test_a_missing_library_is_reported(void **state)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        unsetenv("LD_LIBRARY_PATH");
        execl("/proc/self/exe", "test_ops_cudnn", "missing", (char *)NULL);
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int open_without(void)
{
    dt_error err = DT_ERROR_INIT;
    dt_cudnn cudnn;
    dt_status st = dt_cudnn_open(&cudnn, &err);

    dt_cudnn_close(&cudnn);
    return st == DT_OK || (st == DT_ERR_UNSUPPORTED && strstr(err.message, "libcudnn")) ? 0 : 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_attention_is_described_operation_by_operation),
        TEST(test_what_is_described_is_causal_attention),
        TEST(test_engines_that_will_not_do_are_passed_over),
        TEST(test_a_missing_engine_is_reported_with_the_reason),
        TEST(test_any_failing_call_is_an_error_and_leaves_nothing),
        TEST(test_a_handle_without_its_stream_is_an_error),
        TEST(test_an_old_library_is_refused_by_its_number),
        TEST(test_a_missing_library_is_reported),
    };

    if (argc > 1)
        return open_without();
    return cmocka_run_group_tests(tests, find_standin, NULL);
}
