/* Threads that share an op's pieces: each piece is computed once, whoever runs, and has been when the call returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/device/device.h"
#include "engine/ops/cpu/team.h"
#include "engine/ops/ops.h"

#define THREADS 4 /* more than some machines have */
#if defined(__SANITIZE_THREAD__)
#define CALLS 2000 /* each takes much longer */
#else
#define CALLS 20000
#endif

typedef struct board {
    int64_t pieces, begin;             /* of this call */
    int64_t value[DT_CPU_TEAM_PIECES]; /* what a piece wrote */
    int times[DT_CPU_TEAM_PIECES];
    int64_t sum[THREADS][16]; /* of a thread's pieces; a line each */
} board;

static void write_piece(void *self, int thread, int64_t piece)
{
    board *b = self;

    b->times[piece]++;
    b->value[piece] = b->begin + piece;
    b->sum[thread][0] += piece + 1;
}

static void check(board *b)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < b->pieces; i++) {
        assert_int_equal(b->times[i], 1);
        assert_int_equal(b->value[i], b->begin + i);
    }
    for (int t = 0; t < THREADS; t++)
        sum += b->sum[t][0];
    assert_int_equal(sum, b->pieces * (b->pieces + 1) / 2);
}

static void test_each_piece_is_computed_once(void **state)
{
    dt_cpu_team *team = dt_cpu_team_new(THREADS);
    board *b = calloc(1, sizeof(*b));
    uint32_t draw = 1;

    assert_non_null(team);
    assert_non_null(b);
    for (int call = 0; call < CALLS; call++) {
        draw = draw * 1664525 + 1013904223;
        b->pieces = 1 + draw / 65536 % (call % 100 == 0 ? DT_CPU_TEAM_PIECES : 40);
        b->begin = 1000003 * (int64_t)call;
        memset(b->times, 0, sizeof(b->times));
        memset(b->sum, 0, sizeof(b->sum));
        dt_cpu_team_run(team, write_piece, b, b->pieces,
                        (dt_cpu_coming){(const char *)b->value, sizeof(b->value)});
        check(b);
        if (call % (CALLS / 5) == 0)
            usleep(2000); /* the threads fall asleep */
    }
    dt_cpu_team_free(team);
    free(b);
}

static void test_a_team_that_never_ran_ends(void **state)
{
    for (int threads = 1; threads <= THREADS; threads++)
        dt_cpu_team_free(dt_cpu_team_new(threads));
    dt_cpu_team_free(NULL);
}

/* --- products of one row, in a chain as in generation: each reads what the one before wrote */

#define WIDTH 320
#define STEPS 400

typedef struct chain {
    dt_device device;
    dt_tensor w[2], x[2];
} chain;

static dt_tensor made(chain *c, dt_dtype dtype, int64_t rows, int64_t cols)
{
    void *data;

    assert_int_equal(
        c->device.alloc(&c->device, &data, (size_t)(rows * cols) * dt_dtype_bytes(dtype), NULL),
        DT_OK);
    return dt_tensor_2d(data, dtype, rows, cols);
}

/* Casts row by row: that little runs on one thread, since the thread sanitizer does not see OpenMP's barriers. */
static void fill(chain *c, dt_tensor *to, float least, float width)
{
    int64_t rows = dt_tensor_rows(to), cols = dt_tensor_cols(to);
    dt_tensor wide = made(c, DT_F32, 1, cols);
    uint32_t draw = 7;

    for (int64_t row = 0; row < rows; row++) {
        char *at = (char *)to->data + (size_t)(row * cols) * dt_dtype_bytes(to->dtype);
        dt_tensor narrow = dt_tensor_2d(at, to->dtype, 1, cols);

        for (int64_t i = 0; i < cols; i++) {
            draw = draw * 1664525 + 1013904223;
            ((float *)wide.data)[i] = least + width * (float)(draw >> 8) / 16777216.0f;
        }
        assert_int_equal(c->device.ops->cast(&c->device, &narrow, &wide, NULL), DT_OK);
    }
    c->device.free(&c->device, wide.data);
}

static void run_chain(void *out, dt_dtype dtype, int threads)
{
    chain c;

    assert_int_equal(dt_device_open_cpu(&c.device, threads, NULL), DT_OK);
    for (int i = 0; i < 2; i++) {
        c.w[i] = made(&c, dtype, WIDTH, WIDTH);
        c.x[i] = made(&c, dtype, 1, WIDTH);
        fill(&c, &c.w[i], -0.0968f, 0.1936f); /* a step keeps the size of x */
        fill(&c, &c.x[i], -1, 2);
    }
    for (int step = 0; step < STEPS; step++)
        assert_int_equal(c.device.ops->matmul_forward(&c.device, &c.x[(step + 1) % 2],
                                                      &c.x[step % 2], &c.w[step % 2], NULL, NULL),
                         DT_OK);
    memcpy(out, c.x[STEPS % 2].data, WIDTH * dt_dtype_bytes(dtype));
    for (int i = 0; i < 2; i++) {
        c.device.free(&c.device, c.w[i].data);
        c.device.free(&c.device, c.x[i].data);
    }
    dt_device_close(&c.device);
}

static void test_products_of_one_row_have_the_same_bits_for_any_threads(void **state)
{
    static const dt_dtype types[] = {DT_F32, DT_BF16, DT_F16};
    unsigned char one[4 * WIDTH], many[4 * WIDTH];

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        memset(one, 0, sizeof(one));
        memset(many, 0, sizeof(many));
        run_chain(one, types[i], 1);
        for (int threads = 2; threads <= THREADS; threads++) {
            run_chain(many, types[i], threads);
            assert_memory_equal(one, many, sizeof(one));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_piece_is_computed_once),
        cmocka_unit_test(test_a_team_that_never_ran_ends),
        cmocka_unit_test(test_products_of_one_row_have_the_same_bits_for_any_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
