/* Ops over the part of a vocabulary or of the heads that one of several ranks has (tensor parallelism). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

#define RANKS 3

/* Returns the part of rank r, of `rows` rows or columns, in a vocabulary of `vocab`. */
static dt_vocab_part part_of(int64_t r, int64_t rows, int64_t vocab)
{
    int64_t left = vocab - r * rows;

    return (dt_vocab_part){r * rows, left < 0 ? 0 : left < rows ? left : rows, vocab};
}

/* B T C and the rows of each part; the outputs of all ranks, in fp32 and in the type, add up to the whole */
void case_embedding_parts(bench *b, const int64_t *dim)
{
    int64_t batch = dim[0], t = dim[1], c = dim[2], rows = dim[3], n = batch * t;
    int64_t vocab = RANKS * rows - rows / 2;
    dt_tensor tokens = bench_tokens(b, 0, vocab, batch, t), none = {0};
    operand wte = bench_random(b, b->act, 1.0, RANKS * rows, c, 0);
    operand dwte = bench_random(b, DT_F32, 1.0, RANKS * rows, c, 0);
    operand dout = bench_random(b, b->act, 1.0, batch, t, c);
    double *want = bench_doubles(b, n * c), *nowhere = bench_doubles(b, t * c);
    double *mine = bench_doubles(b, n * c);
    size_t row_bytes = (size_t)c * dt_dtype_bytes(b->act);
    dt_error err = DT_ERROR_INIT;

    ref_embedding_forward(want, tokens.data, wte.value, nowhere, 1.7, n, t, c);
    ref_embedding_backward(dwte.value, NULL, dout.value, tokens.data, 1.7, n, t, c);
    for (int64_t r = 0; r < RANKS; r++) {
        dt_vocab_part part = part_of(r, rows, vocab);
        dt_tensor own =
            dt_tensor_2d((char *)wte.tensor.data + (size_t)(r * rows) * row_bytes, b->act, rows, c);
        dt_tensor down = dt_tensor_2d((float *)dwte.tensor.data + r * rows * c, DT_F32, rows, c);
        dt_tensor out = bench_output(b, b->act, batch, t, c);
        dt_tensor wide = bench_output(b, DT_F32, batch, t, c);

        for (int64_t i = 0; i < n * c; i++) {
            int64_t row = ((const int32_t *)tokens.data)[i / c] - part.first;

            mine[i] = row >= 0 && row < part.count ? want[i] : 0;
        }
        bench_ok(b->device.ops->embedding_forward(&b->device, &out, &tokens, &own, &none, 1.7,
                                                  &part, &err),
                 &err);
        bench_check(b, "out", &out, mine);
        bench_ok(b->device.ops->embedding_forward(&b->device, &wide, &tokens, &own, &none, 1.7,
                                                  &part, &err),
                 &err);
        bench_check(b, "out in fp32", &wide, mine);
        bench_ok(b->device.ops->embedding_backward(&b->device, &down, &none, &dout.tensor, &tokens,
                                                   1.7, &part, &err),
                 &err);
    }
    bench_check(b, "dwte", &dwte.tensor, dwte.value);
}

/* Returns the columns of rank r of x (N, RANKS * columns). */
static void columns_of(double *out, const double *x, int64_t n, int64_t columns, int64_t r)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * columns, x + (i * RANKS + r) * columns, (size_t)columns * sizeof(double));
}

/* N, the columns of each part, and V of all; about one target in four is not counted */
static void cross_entropy_parts(bench *b, const int64_t *dim, double smoothing, bool weighted)
{
    int64_t n = dim[0], columns = dim[1], vocab = dim[2], all_columns = RANKS * columns;
    const double scale = 1.0 / (double)(2 * n + 1);
    dt_tensor targets = bench_tokens(b, 0, vocab, n, 1), losses = bench_output(b, DT_F32, n, 0, 0);
    operand weights = bench_random(b, DT_F32, 1.0, n, 0, 0);
    const dt_tensor *each = weighted ? &weights.tensor : NULL;
    dt_tensor all = bench_output(b, DT_F32, RANKS, DT_VOCAB_NUMBERS, n);
    double *whole = bench_doubles(b, n * all_columns), *want = bench_doubles(b, n);
    double *want_d = bench_doubles(b, n * all_columns), *mine = bench_doubles(b, n * columns);
    const double *scale_at = bench_bytes(b, &scale, sizeof(scale));
    operand logits[RANKS];
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < n; i++)
        if (bench_uniform(b) < 0.25)
            ((int32_t *)targets.data)[i] = i % 2 == 0 ? -1 : -100;
    for (int64_t r = 0; r < RANKS; r++) {
        dt_vocab_part part = part_of(r, columns, vocab);
        dt_tensor own =
            dt_tensor_2d((float *)all.data + DT_VOCAB_NUMBERS * n * r, DT_F32, DT_VOCAB_NUMBERS, n);

        logits[r] = bench_random(b, b->act, 8.0, n, columns, 0);
        for (int64_t i = 0; i < n * columns; i++) {
            if (i % columns >= part.count)
                bench_put(&logits[r].tensor, i, 1e4); /* would be the maximum if it were counted */
            whole[(i / columns * RANKS + r) * columns + i % columns] = logits[r].value[i];
        }
        bench_ok(b->device.ops->cross_entropy_part(&b->device, &own, &logits[r].tensor, &targets,
                                                   &part, smoothing, &err),
                 &err);
    }
    ref_cross_entropy(want, want_d, whole, targets.data, n, all_columns, vocab, scale, smoothing);
    for (int64_t i = 0; weighted && i < n; i++) {
        want[i] *= weights.value[i];
        for (int64_t j = 0; j < all_columns; j++)
            want_d[i * all_columns + j] *= weights.value[i];
    }
    for (int64_t r = 0; r < RANKS; r++) {
        dt_vocab_part part = part_of(r, columns, vocab);

        memset(losses.data, 0xff, dt_tensor_bytes(&losses));
        bench_ok(b->device.ops->cross_entropy_join(&b->device, &losses, &logits[r].tensor, &all,
                                                   &targets, each, &part, NULL, smoothing, &err),
                 &err);
        bench_check(b, "losses", &losses, want);
        memset(losses.data, 0xff, dt_tensor_bytes(&losses));
        bench_ok(b->device.ops->cross_entropy_join(&b->device, &losses, &logits[r].tensor, &all,
                                                   &targets, each, &part, scale_at, smoothing,
                                                   &err),
                 &err);
        bench_check(b, "losses of backward", &losses, want);
        columns_of(mine, want_d, n, columns, r);
        bench_check(b, "dlogits", &logits[r].tensor, mine);
    }
}

void case_cross_entropy_parts(bench *b, const int64_t *dim)
{
    cross_entropy_parts(b, dim, 0, false);
}

void case_cross_entropy_parts_smoothed(bench *b, const int64_t *dim)
{
    cross_entropy_parts(b, dim, 0.1, false);
}

void case_cross_entropy_parts_weighted(bench *b, const int64_t *dim)
{
    cross_entropy_parts(b, dim, 0, true);
    cross_entropy_parts(b, dim, 0.1, true);
}
