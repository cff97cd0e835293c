/* Every op of a backend, forward and backward, against double precision, on awkward shapes.
 *
 *     test_ops [PATTERN...]    only the tests whose names match one ('attention_in_bf16*');
 *                              attention_at_1024 takes long, and runs only if requested
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/backend.h"
#include "tests/ops/cases.h"
#include "tests/ops/watched.h"

#define SHAPES_MAX 10

/* The largest error that is allowed, and why a smaller bound is not possible. */
typedef struct row {
    const char *op;
    op_case *run;
    double f32, bf16, f16;
    const char *reason;
    int64_t dim[SHAPES_MAX][4]; /* a first 0 ends the list */
} row;

#define OPTIMIZER_REASON \
    "a dozen fp32 operations a step, three steps; the copy is rounded to the type"

static const row rows[] = {
    {"row_lengths",
     case_row_lengths,
     1e-30,
     1e-30,
     1e-30,
     "whole numbers",
     {{1, 1}, {3, 2}, {5, 31}, {9, 100}, {130, 7}}},
    {"embedding",
     case_embedding,
     3e-7,
     4e-3,
     5e-4,
     "one addition, rounded once to the type; gradients add at most B*T values in fp32",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 17, 33, 11}, {2, 64, 129, 97}, {12, 64, 128, 65}}},
    {"embedding_with_fixed_places",
     case_embedding_fixed_places,
     4e-7,
     4e-3,
     5e-4,
     "as above, and one product",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 17, 33, 11}, {2, 64, 129, 97}}},
    {"embedding_of_parts",
     case_embedding_parts,
     4e-7,
     4e-3,
     5e-4,
     "one product, rounded once to the type; gradients add at most B*T values in fp32",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 17, 33, 11}, {2, 64, 129, 97}}},
    {"layernorm",
     case_layernorm,
     3e-6,
     8e-3,
     1e-3,
     "fp32 sums over a row and over rows; y and dx are rounded to the type, dx twice (it is added "
     "to)",
     {{1, 2}, {3, 7}, {5, 31}, {64, 33}, {17, 768}, {9, 1600}, {768, 128}}},
    {"embedding_without_places",
     case_embedding_no_places,
     1e-30,
     1e-30,
     1e-30,
     "exact: a row of the table",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 17, 33, 11}, {2, 64, 129, 97}}},
    {"rmsnorm",
     case_rmsnorm,
     3e-6,
     8e-3,
     1e-3,
     "fp32 sums over a row and over rows; y and dx are rounded to the type, dx twice (it is added "
     "to)",
     {{1, 2}, {3, 7}, {5, 31}, {64, 33}, {17, 576}, {9, 1600}, {768, 128}}},
    {"rotary",
     case_rotary,
     3e-7,
     4e-3,
     5e-4,
     "two products and a sum, rounded once to the type",
     {{1, 1, 1, 2}, {2, 5, 3, 6}, {3, 17, 2, 34}, {2, 33, 3, 64}, {1, 65, 5, 128}, {1, 3, 1, 256}}},
    {"rotary_of_normed_heads",
     case_rotary_normed,
     3e-6,
     8e-3,
     1e-3,
     "as a norm and a rotation; dw sums over all heads of all rows in fp32",
     {{1, 1, 1, 2}, {2, 5, 3, 6}, {3, 17, 2, 34}, {2, 33, 3, 64}, {1, 65, 5, 128}, {1, 3, 1, 256}}},
    {"gate_of_silu",
     case_gate_silu,
     4e-6,
     6e-3,
     6e-4,
     "a sigmoid of 4e-7 whose argument's rounding counts |argument| times; results are rounded to "
     "the type",
     {{1, 1}, {3, 7}, {5, 31}, {2, 2049}, {7, 4096}, {33, 64}}},
    {"gate_of_gelu_tanh",
     case_gate_gelu_tanh,
     4e-6,
     6e-3,
     6e-4,
     "a sigmoid of 4e-7 whose argument's rounding counts |argument| times; results are rounded to "
     "the type",
     {{1, 1}, {3, 7}, {5, 31}, {2, 2049}, {7, 4096}, {33, 64}}},
    {"gate_of_gelu",
     case_gate_gelu,
     4e-6,
     6e-3,
     6e-4,
     "a sigmoid of 4e-7 whose argument's rounding counts |argument| times; results are rounded to "
     "the type",
     {{1, 1}, {3, 7}, {5, 31}, {2, 2049}, {7, 4096}, {33, 64}}},
    {"softcap",
     case_softcap,
     2e-6,
     6e-3,
     6e-4,
     "a tanh of 5e-7, rounded once to the type; 1 - (y/cap)^2 cancels where y is near the cap",
     {{1, 1}, {3, 7}, {5, 31}, {2, 2049}, {33, 64}}},
    {"norm_of_all_heads",
     case_heads_norm,
     3e-6,
     8e-3,
     1e-3,
     "as rmsnorm; sums over the elements of a row and over rows in fp32",
     {{1, 1, 1, 2}, {2, 5, 3, 6}, {3, 17, 2, 34}, {2, 33, 3, 64}, {1, 65, 5, 128}, {1, 3, 1, 256}}},
    {"matmul",
     case_matmul,
     3e-6,
     8e-3,
     5e-4,
     "fp32 sums of up to 331 products in blocks; results are rounded to the type",
     {{1, 1, 1},
      {1, 2050, 131},
      {5, 3, 2},
      {8, 1029, 6},
      {31, 33, 65},
      {64, 128, 96},
      {97, 331, 67},
      {88, 63, 21},
      {88, 21, 63},
      {300, 64, 48}}},
    {"matmul_large",
     case_matmul,
     1e-5,
     8e-3,
     5e-4,
     "as above, with sums of up to 9001 products; more than a block, a slice or a chunk of our code "
     "for bf16",
     {{70, 450, 420},
      {24, 4130, 40},
      {4130, 40, 24},
      {40, 24, 4130},
      {515, 420, 70},
      {20, 24, 9001}}},
    {"matmul_bias",
     case_matmul_bias,
     3e-6,
     8e-3,
     5e-4,
     "as above",
     {{1, 1, 1}, {5, 3, 2}, {17, 64, 48}}},
    {"attention",
     case_attention,
     1e-5,
     3e-2,
     4e-3,
     "fp32 softmax through an exp of 2e-7, sums over T; in 16 bits backward starts from an out "
     "that is rounded, and cancels in dout v^T - delta",
     {{1, 1, 1, 1},
      {2, 5, 3, 7},
      {1, 31, 2, 33},
      {1, 33, 1, 32},
      {3, 64, 4, 32},
      {1, 131, 2, 64},
      {1, 150, 1, 128},
      {1, 301, 1, 64},
      {2, 97, 2, 80}}},
    {"attention_at_1024",
     case_long_attention,
     2e-5,
     5e-2,
     7e-3,
     "as above; flash attention rounds p and ds before their sums over 1,024, and what those "
     "roundings "
     "alone make of an exact backward is up to 3.9e-2 in bf16 and 6.0e-3 in fp16 (32 problems of "
     "these shapes)",
     {{1, 1024, 1, 64}, {1, 1024, 1, 128}}},
    {"attention_with_dropout",
     case_attention_dropout,
     1e-5,
     3e-2,
     4e-3,
     "as above; which probabilities are kept is exact, and one more or less would show in fp32",
     {{1, 1, 1, 1},
      {2, 5, 3, 7},
      {1, 31, 2, 33},
      {1, 33, 1, 32},
      {1, 131, 2, 64},
      {1, 150, 1, 128},
      {2, 97, 2, 80}}},
    {"attention_with_dropout_of_some_heads",
     case_attention_some_heads,
     1e-5,
     3e-2,
     4e-3,
     "as above: the mask is that of these heads among all",
     {{1, 1, 1, 1}, {2, 5, 3, 7}, {3, 33, 2, 32}, {2, 97, 2, 64}}},
    {"attention_of_views",
     case_attention_views,
     1e-5,
     3e-2,
     4e-3,
     "as above; gradients of k and v are sums over three heads, in fp32",
     {{1, 1, 1, 1},
      {3, 5, 1, 6},
      {7, 4, 2, 5},
      {33, 67, 1, 32},
      {40, 40, 2, 64},
      {1, 90, 1, 128},
      {70, 131, 1, 64}}},
    {"attention_with_window_scale_and_cap",
     case_attention_switches,
     2e-5,
     3e-2,
     4e-3,
     "as above; scores are up to three times as large, and their rounding counts in exp; a cap is "
     "a tanh of 5e-7",
     {{1, 1, 1, 1},
      {3, 5, 1, 6},
      {7, 4, 2, 5},
      {33, 67, 1, 32},
      {40, 40, 2, 64},
      {1, 90, 1, 128},
      {70, 131, 1, 64}}},
    {"matmul_gelu",
     case_matmul_gelu,
     4e-6,
     6e-3,
     6e-4,
     "a product, then GELU of it, which may be rounded to the type in between",
     {{1, 1, 1}, {3, 5, 7}, {31, 33, 8}, {17, 64, 96}, {65, 24, 48}}},
    {"matmul_residual",
     case_matmul_residual,
     4e-6,
     6e-3,
     6e-4,
     "a product, then a sum with it, which may be rounded to the type in between",
     {{1, 1, 1}, {3, 5, 7}, {31, 33, 8}, {17, 64, 96}, {65, 24, 50}}},
    {"gelu",
     case_gelu,
     4e-6,
     6e-3,
     6e-4,
     "a tail of 5e-7 whose exponent's rounding counts |exponent| times; results are rounded to the "
     "type",
     {{1}, {7}, {31}, {2048}, {5003}, {40000}}},
    {"gelu_tanh",
     case_gelu_tanh,
     4e-6,
     6e-3,
     6e-4,
     "a sigmoid of 4e-7 whose argument's rounding counts |argument| times; results are rounded to "
     "the type",
     {{1}, {7}, {31}, {2048}, {5003}, {40000}}},
    {"relu", case_relu, 1e-30, 4e-3, 5e-4, "exact in fp32", {{1}, {7}, {31}, {2048}, {5003}}},
    {"tanh",
     case_tanh,
     4e-6,
     6e-3,
     6e-4,
     "libm's tanh; a slope of two sigmoids, whose argument's rounding counts |argument| times; "
     "results are rounded to the type",
     {{1}, {7}, {31}, {2048}, {5003}}},
    {"squared_error",
     case_squared_error,
     1e-6,
     4e-3,
     5e-4,
     "a difference, squared and summed over a row; gradients are rounded to the type",
     {{1, 1}, {7, 3}, {31, 2}, {129, 17}, {3, 1000}}},
    {"dropout",
     case_dropout,
     2e-7,
     4e-3,
     5e-4,
     "one product, rounded once to the type; which elements are kept is exact",
     {{1, 50}, {7, 0}, {31, 10}, {2049, 20}, {10007, 90}}},
    {"residual",
     case_residual,
     1e-7,
     4e-3,
     5e-4,
     "one addition, rounded once to the type",
     {{1}, {31}, {2049}, {70001}}},
    {"cross_entropy",
     case_cross_entropy,
     3e-6,
     4e-3,
     5e-4,
     "fp32 sum of exponentials over V; gradients are rounded to the type",
     {{1, 1, 1},
      {1, 2, 1},
      {5, 7, 7},
      {31, 128, 65},
      {33, 131, 97},
      {9, 1024, 1000},
      {5, 50304, 50257}}},
    {"cross_entropy_weighted",
     case_cross_entropy_weighted,
     3e-6,
     4e-3,
     5e-4,
     "as above; the weight is multiplied before the rounding",
     {{1, 1, 1}, {5, 7, 7}, {33, 131, 97}, {9, 1024, 1000}}},
    {"cross_entropy_of_parts",
     case_cross_entropy_parts,
     3e-6,
     4e-3,
     5e-4,
     "as above; the ranks' sums are rounded to fp32 before they are added",
     {{1, 1, 1}, {5, 7, 7}, {31, 64, 65}, {33, 131, 297}, {9, 1024, 2000}, {2, 4224, 12577}}},
    {"cross_entropy_of_parts_smoothed",
     case_cross_entropy_parts_smoothed,
     3e-6,
     4e-3,
     5e-4,
     "as above",
     {{1, 1, 1}, {5, 7, 7}, {31, 64, 65}, {33, 131, 297}, {9, 1024, 2000}, {2, 4224, 12577}}},
    {"cross_entropy_of_parts_weighted",
     case_cross_entropy_parts_weighted,
     3e-6,
     4e-3,
     5e-4,
     "as above",
     {{1, 1, 1}, {5, 7, 7}, {33, 131, 297}, {9, 1024, 2000}}},
    {"adamw", case_adamw, 2e-6, 4e-3, 5e-4, OPTIMIZER_REASON, {{1}, {31}, {2049}, {20011}}},
    {"adamw_fairseq",
     case_adamw_fairseq,
     2e-6,
     4e-3,
     5e-4,
     OPTIMIZER_REASON,
     {{1}, {31}, {2049}, {20011}}},
    {"adamw_with_bf16_moments",
     case_adamw_bf16_moments,
     2e-6,
     4e-3,
     5e-4,
     "as above; moments are compared in the case",
     {{1}, {31}, {2049}, {20011}}},
    {"adam", case_adam, 2e-6, 4e-3, 5e-4, OPTIMIZER_REASON, {{1}, {31}, {2049}, {20011}}},
    {"adam_fairseq",
     case_adam_fairseq,
     2e-6,
     4e-3,
     5e-4,
     OPTIMIZER_REASON,
     {{1}, {31}, {2049}, {20011}}},
    {"sgd", case_sgd, 2e-6, 4e-3, 5e-4, OPTIMIZER_REASON, {{1}, {31}, {2049}, {20011}}},
    {"sgd_momentum",
     case_sgd_momentum,
     2e-6,
     4e-3,
     5e-4,
     OPTIMIZER_REASON,
     {{1}, {31}, {2049}, {20011}}},
    {"sgd_nesterov",
     case_sgd_nesterov,
     2e-6,
     4e-3,
     5e-4,
     OPTIMIZER_REASON,
     {{1}, {31}, {2049}, {20011}}},
    {"lion",
     case_lion,
     2e-6,
     4e-3,
     5e-4,
     "as above; no sum of momentum and gradient is so near 0 that a rounding turns the step",
     {{1}, {31}, {2049}, {20011}}},
    {"normalize",
     case_normalize,
     2e-7,
     4e-3,
     5e-4,
     "one product with a factor that is rounded once; rounded once to the type",
     {{1}, {31}, {2049}, {70001}}},
    {"blend",
     case_blend,
     2e-7,
     4e-3,
     5e-4,
     "two products and a sum, rounded once to the type",
     {{1}, {31}, {2049}, {70001}}},
    {"cast",
     case_cast,
     2e-3,
     2e-3,
     2e-3,
     "to bf16: half a unit of 8 bits; the way to fp32 is exact and asserted",
     {{1}, {31}, {4099}, {70001}}},
    {"sums",
     case_sums,
     1e-30,
     1e-30,
     1e-30,
     "compared in the case, relative 1e-12: double sums",
     {{1}, {31}, {63}, {4099}, {100003}}},
    {"views",
     case_views,
     2e-7,
     4e-3,
     5e-4,
     "one addition, and a step of one product and one sum; rounded once to the type",
     {{1}, {7}, {31}, {4099}}},
    {"zero", case_zero, 1e-30, 1e-30, 1e-30, "exact", {{1}, {31}, {4099}, {200003}}},
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])
#define VARIANTS  (6 * ROW_COUNT) /* three types, one thread and two */

typedef struct variant {
    const row *row;
    dt_dtype act;
    int threads;
    char name[96];
} variant;

static void run_shape(bench *b, const variant *v, const int64_t *dim)
{
    double limit = v->act == DT_F32 ? v->row->f32 : v->act == DT_BF16 ? v->row->bf16 : v->row->f16;
    uint64_t digest;

    bench_begin(b, v->act);
    v->row->run(b, dim);
    digest = b->digest;
    if (b->worst > limit)
        fail_msg("%s at %lld,%lld,%lld,%lld: error %.2e is over %.1e: %s (%s)", v->name,
                 (long long)dim[0], (long long)dim[1], (long long)dim[2], (long long)dim[3],
                 b->worst, limit, b->worst_where, v->row->reason);
    if (getenv("DT_TEST_VERBOSE") != NULL)
        print_message("  %lld,%lld,%lld,%lld: worst %.1e of %.1e\n", (long long)dim[0],
                      (long long)dim[1], (long long)dim[2], (long long)dim[3], b->worst, limit);
    bench_begin(b, v->act);
    v->row->run(b, dim);
    if (b->digest != digest)
        fail_msg("%s at %lld,%lld,%lld,%lld: a second run gives other bits", v->name,
                 (long long)dim[0], (long long)dim[1], (long long)dim[2], (long long)dim[3]);
}

static void test_op_equals_double_precision_and_repeats(void **state)
{
    const variant *v = *state;
    bench b;

    bench_open(&b, v->threads);
    b.device.ops = watched_table(b.device.ops);
    for (int i = 0; i < SHAPES_MAX && v->row->dim[i][0] != 0; i++)
        run_shape(&b, v, v->row->dim[i]);
    bench_close(&b);
}

/* All except those that run several others. */
static void test_table_has_every_op(void **state)
{
    bench b;

    bench_open(&b, 1);
#define HAS(op) assert_non_null(b.device.ops->op);
    DT_OPS_NEEDED(HAS)
    bench_close(&b);
}

/* The last test: the tests before it have called everything that the backend has. */
static void test_every_op_was_driven(void **state)
{
    const watched_op *called = watched_ops;
    bench b;

    bench_open(&b, 1);
#define WAS_DRIVEN(op)                                                       \
    if (b.device.ops->op != NULL && called->calls == 0)                      \
        fail_msg("no case calls '" #op "': add one to tests/ops/cases_*.c"); \
    called++;
    DT_OPS(WAS_DRIVEN)
    bench_close(&b);
}

/* Arguments are patterns of names: only these ("attention*"), or all except these
 * ("!attention*_in_bf16*"); the last match counts. Without a positive pattern, every op of the
 * table must have been called. */
static bool asks(char **patterns)
{
    for (; *patterns != NULL; patterns++)
        if (**patterns != '!')
            return true;
    return false;
}

static bool is_wanted(const char *name, char **patterns)
{
    bool wanted = !asks(patterns);

    for (; *patterns != NULL; patterns++) {
        bool leaves_out = **patterns == '!';

        if (fnmatch(*patterns + leaves_out, name, 0) == 0)
            wanted = !leaves_out;
    }
    return wanted;
}

int main(int argc, char **argv)
{
    static const dt_dtype types[] = {DT_F32, DT_BF16, DT_F16};
    static variant variants[VARIANTS];
    static struct CMUnitTest tests[VARIANTS + 2];
    size_t count = 0;
    dt_error err = DT_ERROR_INIT;
    dt_device device;
    bool threads, asked = asks(argv + 1);
    dt_status st = bench_backend_open(&device, 1, &err);

    if (st == DT_ERR_UNSUPPORTED) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    threads = strcmp(device.name, "cpu") == 0; /* the work of other devices does not use them */
    dt_device_close(&device);
    for (size_t i = 0; i < VARIANTS; i++) {
        variant *v = &variants[i];

        v->row = &rows[i / 6];
        v->act = types[i % 3];
        v->threads = i % 6 < 3 ? 1 : 2;
        if (v->threads > 1 && !threads)
            continue;
        if (v->row->run == case_long_attention && !asked) /* only if a pattern requests it */
            continue;
        if (v->row->run == case_sums &&
            v->act != DT_F32) /* in fp32, whatever the type of activations */
            continue;
        snprintf(v->name, sizeof v->name, "%s_in_%s_with_%d_threads", v->row->op,
                 bench_type_name(v->act), v->threads);
        if (!is_wanted(v->name, argv + 1))
            continue;
        tests[count++] = (struct CMUnitTest){v->name, test_op_equals_double_precision_and_repeats,
                                             NULL, NULL, v};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_table_has_every_op);
    if (argc > 1 && count == 1) {
        fprintf(stderr, "no test has a name like '%s'\n", argv[1]);
        return 2;
    }
    if (!asked) /* one op alone calls no other */
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_every_op_was_driven);
    return _cmocka_run_group_tests("ops", tests, count, NULL, NULL);
}
