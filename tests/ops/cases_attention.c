/* Attention: of packed heads, and of views (engine/ops/ops.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/cases.h"
#include "tests/ops/reference.h"

/* "full out", ...: in a message. */
static const char *named(char out[48], const char *what, const dt_attention_args *args)
{
    static const char *const kind[] = {"full ", "", "segments' ", "lengths' "};

    snprintf(out, 48, "%s%s", kind[args->mask], what);
    return out;
}

/* The last queries alone: compares with the last rows of the result for all queries. */
static void attention_of_last(bench *b, const dt_qkv *all, const dt_attention_args *args,
                              int64_t queries, const double *want, const double *want_lse)
{
    int64_t batch = all->q.batch, t = all->q.rows, heads = all->q.heads, c = heads * all->q.width;
    int64_t first = t - queries;
    dt_qkv x = {dt_heads_last(all->q, queries), all->k, all->v};
    dt_tensor out = bench_output(b, b->act, batch, queries, c);
    dt_tensor lse = bench_output(b, DT_F32, batch, heads, queries);
    double *rows = bench_doubles(b, batch * queries * c);
    double *sums = bench_doubles(b, batch * heads * queries);
    dt_error err = DT_ERROR_INIT;
    char name[48];

    bench_ok(b->device.ops->attention_forward(&b->device, &out, &lse, &x, args, &err), &err);
    for (int64_t i = 0; i < batch; i++)
        memcpy(rows + i * queries * c, want + (i * t + first) * c,
               (size_t)(queries * c) * sizeof(double));
    for (int64_t i = 0; i < batch * heads; i++)
        memcpy(sums + i * queries, want_lse + i * t + first, (size_t)queries * sizeof(double));
    bench_check(b, named(name, "out of the last queries", args), &out, rows);
    bench_check(b, named(name, "lse of the last queries", args), &lse, sums);
}

/* Backward with the gradient of the bias of q, k and v, which adds the rows of the gradients `want` to it. */
static void attention_bias(bench *b, const dt_qkv *x, const dt_tensor *dout, const dt_tensor *out,
                           const dt_tensor *lse, const dt_attention_args *args, const double *want)
{
    int64_t batch = x->q.batch, t = x->q.rows, columns = 3 * x->q.heads * x->q.width;
    dt_tensor dqkv = bench_output(b, b->act, batch, t, columns);
    const dt_qkv dx = dt_qkv_packed(&dqkv, x->q.heads);
    operand sum = bench_random(b, DT_F32, 1.0, columns, 0, 0);
    dt_error err = DT_ERROR_INIT;
    char name[48];

    if (b->device.ops->attention_backward_bias == NULL)
        return;
    bench_ok(b->device.ops->attention_backward_bias(&b->device, &dx, &sum.tensor, dout, x, out, lse,
                                                    args, &err),
             &err);
    for (int64_t i = 0; i < batch * t * columns; i++)
        sum.value[i % columns] += want[i];
    bench_check(b, named(name, "dqkv with a bias", args), &dqkv, want);
    bench_check(b, named(name, "dbias", args), &sum.tensor, sum.value);
}

static void attention(bench *b, const int64_t *dim, const dt_attention_args *args,
                      const double *mask)
{
    int64_t batch = dim[0], t = dim[1], heads = dim[2], d = dim[3], c = heads * d;
    const ref_attention shape =
        ref_self_attention(batch, t, heads, d, args->mask == DT_MASK_CAUSAL, mask);
    operand qkv = bench_random(b, b->act, 1.5, batch, t, 3 * c);
    operand dout = bench_random(b, b->act, 1.0, batch, t, c);
    dt_tensor out = bench_output(b, b->act, batch, t, c);
    dt_tensor lse = bench_output(b, DT_F32, batch, heads, t);
    dt_tensor dqkv = bench_output(b, b->act, batch, t, 3 * c);
    const dt_qkv x = dt_qkv_packed(&qkv.tensor, heads), dx = dt_qkv_packed(&dqkv, heads);
    double *want = bench_doubles(b, batch * t * 3 * c), *want_lse = bench_doubles(b, batch * c * t);
    const ref_qkv value = ref_packed(qkv.value, &shape), slope = ref_packed(want, &shape);
    dt_error err = DT_ERROR_INIT;
    char name[48];

    bench_ok(b->device.ops->attention_forward(&b->device, &out, &lse, &x, args, &err), &err);
    ref_attention_forward(want, want_lse, &value, &shape);
    bench_check(b, named(name, "out", args), &out, want);
    bench_check(b, named(name, "lse", args), &lse, want_lse);
    if (args->p == 0) { /* else their masks are numbered differently */
        attention_of_last(b, &x, args, 1, want, want_lse);
        attention_of_last(b, &x, args, (t + 1) / 2, want, want_lse);
    }

    bench_ok(b->device.ops->attention_backward(&b->device, &dx, &dout.tensor, &x, &out, &lse, args,
                                               &err),
             &err);
    ref_attention_backward(&slope, dout.value, &value, &shape);
    bench_check(b, named(name, "dqkv", args), &dqkv, want);
    attention_bias(b, &x, &dout.tensor, &out, &lse, args, want);
}

/* B T heads D; causal and full */
void case_attention(bench *b, const int64_t *dim)
{
    attention(b, dim, &(dt_attention_args){.mask = DT_MASK_CAUSAL}, NULL);
    attention(b, dim, &(dt_attention_args){.mask = DT_MASK_FULL}, NULL);
}

/* the same, only causal: as long as sequences in training */
void case_long_attention(bench *b, const int64_t *dim)
{
    attention(b, dim, &(dt_attention_args){.mask = DT_MASK_CAUSAL}, NULL);
}

/* Three in ten are dropped: their factors, n of them, numbered as in ops.h, and a key with this
 * rate by the device's clock. */
static const double *dropped(bench *b, dt_philox_key *by_clock, double p, int64_t n)
{
    const dt_philox_key key = {.seed = 5, .step = 2, .layer = 3, .op = DT_PHILOX_DROPOUT_ATTENTION};
    const dt_philox_clock clock = {.step = 2};
    double *mask = bench_doubles(b, n), expected = (double)n * (1.0 - p);
    int64_t kept = 0;

    for (int64_t i = 0; i < n; i++) {
        dt_philox_block block = dt_philox_draw(&key, (uint64_t)i / 4);
        bool keep = dt_philox_uniform(block.word[i % 4]) >= (float)p;

        mask[i] = keep ? 1.0 / (1.0 - p) : 0.0;
        kept += keep;
    }
    assert_true(fabs((double)kept - expected) <= 5.0 * sqrt(expected * p) + 1.0);
    *by_clock = key;
    by_clock->step = 9;
    by_clock->clock = bench_bytes(b, &clock, sizeof clock);
    return mask;
}

/* the same, with three in ten dropped */
void case_attention_dropout(bench *b, const int64_t *dim)
{
    dt_philox_key key;
    const double *mask = dropped(b, &key, 0.3, dim[0] * dim[2] * dim[1] * dim[1]);

    attention(b, dim, &(dt_attention_args){.mask = DT_MASK_CAUSAL, .p = 0.3, .key = &key}, mask);
    attention(b, dim, &(dt_attention_args){.mask = DT_MASK_FULL, .p = 0.3, .key = &key}, mask);
}

/* the same for heads 1 .. heads of twice as many */
void case_attention_some_heads(bench *b, const int64_t *dim)
{
    int64_t batch = dim[0], t = dim[1], heads = dim[2], all = 2 * heads, each = t * t;
    double *own = bench_doubles(b, batch * heads * each);
    const double *mask;
    dt_philox_key key;

    mask = dropped(b, &key, 0.3, batch * all * each);
    for (int64_t i = 0; i < batch; i++)
        memcpy(own + i * heads * each, mask + (i * all + 1) * each,
               (size_t)(heads * each) * sizeof(double));
    attention(b, dim,
              &(dt_attention_args){
                  .mask = DT_MASK_CAUSAL, .p = 0.3, .key = &key, .first_head = 1, .heads = all},
              own);
}

/* --- views: of queries and keys of different numbers, and with separate heads */

#define MARGIN 8 /* columns: heads stay where fast code can read them */

/* Rows of MARGIN + heads*D columns, the first of which belong to another tensor. */
static operand rows_of_heads(bench *b, dt_heads *view, int64_t batch, int64_t rows, int64_t heads,
                             int64_t d)
{
    operand x = bench_random(b, b->act, 1.5, batch, rows, MARGIN + heads * d);

    *view = dt_heads_of(&x.tensor, MARGIN, heads, d);
    return x;
}

/* The other tensor's columns must be unchanged. */
static void keep_margins(double *want, const operand *x)
{
    int64_t columns = x->tensor.dim[2], n = dt_tensor_elems(&x->tensor);

    for (int64_t i = 0; i < n; i += columns)
        memcpy(want + i, x->value + i, MARGIN * sizeof(double));
}

/* q, k and v after their margins. */
static ref_qkv behind_margins(double *q, double *k, double *v, const operand of[3])
{
    return (ref_qkv){q + MARGIN, k + MARGIN, v + MARGIN, of[0].tensor.dim[2], of[1].tensor.dim[2]};
}

static ref_qkv values_of(const operand x[3])
{
    return behind_margins(x[0].value, x[1].value, x[2].value, x);
}

static void check_gradients(bench *b, const dt_qkv *x, const operand value[3], const dt_tensor *out,
                            const dt_tensor *lse, const dt_attention_args *args,
                            const ref_attention *shape)
{
    operand dout = bench_random(b, b->act, 1.0, out->dim[0], out->dim[1], out->dim[2]);
    static const char *const names[3] = {"dq", "dk", "dv"};
    dt_error err = DT_ERROR_INIT;
    operand grad[3];
    ref_qkv slope, values;
    double *want[3];
    dt_heads view[3];
    char name[48];

    for (int i = 0; i < 3; i++) {
        const dt_heads *of = i == 0 ? &x->q : &x->k;

        grad[i] = rows_of_heads(b, &view[i], of->batch, of->rows, of->heads, of->width);
        want[i] = bench_doubles(b, dt_tensor_elems(&grad[i].tensor));
        keep_margins(want[i], &grad[i]);
    }
    bench_ok(b->device.ops->attention_backward(&b->device, &(dt_qkv){view[0], view[1], view[2]},
                                               &dout.tensor, x, out, lse, args, &err),
             &err);
    slope = behind_margins(want[0], want[1], want[2], grad);
    values = values_of(value);
    ref_attention_backward(&slope, dout.value, &values, shape);
    for (int i = 0; i < 3; i++)
        bench_check(b, named(name, names[i], args), &grad[i].tensor, want[i]);
}

static void views(bench *b, const ref_attention *shape, const dt_attention_args *args)
{
    int64_t batch = shape->b, queries = shape->queries, keys = shape->keys, d = shape->d;
    dt_tensor out = bench_output(b, b->act, batch, queries, shape->heads * d);
    dt_tensor lse = bench_output(b, DT_F32, batch, shape->heads, queries);
    double *want = bench_doubles(b, batch * queries * shape->heads * d);
    double *want_lse = bench_doubles(b, batch * shape->heads * queries);
    dt_error err = DT_ERROR_INIT;
    operand value[3];
    ref_qkv values;
    char name[48];
    dt_qkv x;

    value[0] = rows_of_heads(b, &x.q, batch, queries, shape->heads, d);
    value[1] = rows_of_heads(b, &x.k, batch, keys, shape->groups, d);
    value[2] = rows_of_heads(b, &x.v, batch, keys, shape->groups, d);
    bench_ok(b->device.ops->attention_forward(&b->device, &out, &lse, &x, args, &err), &err);
    values = values_of(value);
    ref_attention_forward(want, want_lse, &values, shape);
    bench_check(b, named(name, "out of views", args), &out, want);
    bench_check(b, named(name, "lse of views", args), &lse, want_lse);
    check_gradients(b, &x, value, &out, &lse, args, shape);
}

/* (B,K): one position in seven starts a segment. */
static dt_tensor segments(bench *b, int64_t batch, int64_t keys)
{
    dt_tensor starts = bench_tokens(b, 0, 7, batch, keys);
    int32_t *first = starts.data;

    for (int64_t i = 0; i < batch * keys; i++) {
        int32_t at = (int32_t)(i % keys);

        first[i] = at == 0 || first[i] == 0 ? at : first[i - 1];
    }
    return starts;
}

/* All keys of the first sequence, half of those of the second. */
static void views_of_lengths(bench *b, ref_attention shape)
{
    int32_t said[2] = {(int32_t)shape.keys, (int32_t)((shape.keys + 1) / 2)};
    dt_attention_args args = {.mask = DT_MASK_LENGTHS,
                              .key_lengths = bench_tokens(b, 0, 1, shape.b, 1)};
    dt_philox_key key;

    memcpy(args.key_lengths.data, said, sizeof said);
    shape.lengths = said;
    views(b, &shape, &args);
    shape.mask = dropped(b, &key, 0.3, shape.b * shape.heads * shape.queries * shape.keys);
    args.p = 0.3;
    args.key = &key;
    views(b, &shape, &args);
}

/* Q K groups D; two sequences, three heads for each group; every mask */
void case_attention_views(bench *b, const int64_t *dim)
{
    ref_attention shape = {2,    dim[0], dim[1], 3 * dim[2], dim[2], dim[3], false,
                           NULL, NULL,   NULL,   0,          0,      0};
    dt_tensor starts = segments(b, shape.b, shape.keys);
    dt_philox_key key;

    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_FULL});
    views_of_lengths(b, shape);
    if (shape.queries > shape.keys)
        return;
    shape.causal = true;
    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_CAUSAL});
    shape.starts = starts.data;
    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_SEGMENTS, .segment_starts = starts});
    shape.mask = dropped(b, &key, 0.3, shape.b * shape.heads * shape.queries * shape.keys);
    views(b, &shape,
          &(dt_attention_args){
              .mask = DT_MASK_SEGMENTS, .segment_starts = starts, .p = 0.3, .key = &key});
}

/* the same with a window, another scale, and a cap: one by one, then together */
void case_attention_switches(bench *b, const int64_t *dim)
{
    ref_attention shape = {2,    dim[0], dim[1], 3 * dim[2], dim[2], dim[3], true,
                           NULL, NULL,   NULL,   0,          0,      0};
    dt_tensor starts = segments(b, shape.b, shape.keys);
    int64_t window = (shape.keys + 2) / 3;
    int32_t said[2] = {(int32_t)shape.keys, (int32_t)((shape.keys + 1) / 2)};
    dt_tensor lengths = bench_tokens(b, 0, 1, shape.b, 1);
    dt_philox_key key;

    if (shape.queries > shape.keys)
        return;
    memcpy(lengths.data, said, sizeof said);
    shape.softcap = 1.5;
    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_CAUSAL, .softcap = 1.5});
    shape.softcap = 0;
    shape.scale = 0.3;
    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_CAUSAL, .scale = 0.3});
    shape.window = window;
    views(b, &shape, &(dt_attention_args){.mask = DT_MASK_CAUSAL, .scale = 0.3, .window = window});
    shape.softcap = 1.5;
    shape.starts = starts.data;
    views(b, &shape,
          &(dt_attention_args){.mask = DT_MASK_SEGMENTS,
                               .segment_starts = starts,
                               .scale = 0.3,
                               .window = window,
                               .softcap = 1.5});
    shape.starts = NULL;
    shape.mask = dropped(b, &key, 0.3, shape.b * shape.heads * shape.queries * shape.keys);
    views(b, &shape,
          &(dt_attention_args){.mask = DT_MASK_CAUSAL,
                               .scale = 0.3,
                               .window = window,
                               .softcap = 1.5,
                               .p = 0.3,
                               .key = &key});
    shape.mask = NULL;
    shape.causal = false;
    shape.lengths = said;
    views(b, &shape,
          &(dt_attention_args){.mask = DT_MASK_LENGTHS,
                               .key_lengths = lengths,
                               .scale = 0.3,
                               .window = window,
                               .softcap = 1.5});
}
