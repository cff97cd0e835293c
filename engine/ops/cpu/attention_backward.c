/* attention_backward: computes the gradients of q, k and v. The probabilities are recomputed from lse,
 * and the dropout mask from its key.
 *
 * Formula    P = exp(S - lse) and M as in attention.c
 *            dv = (M P)^T dout    dS = P (M (dout v^T) - delta) with delta = rowsum(P M (dout v^T))
 *            dq = scale dS k      dk = scale dS^T q            (Dao et al. 2022,
 *            https://arxiv.org/abs/2205.14135). With a softcap dS is also multiplied by its slope
 * delta      Dao et al. compute delta as rowsum(dout out), because they never hold a whole row of P.
 *            Here the whole row is in memory, so delta is summed over it, without the rounding of out
 * Scratch    6 K D + 2 BLOCK K floats per thread
 */
#include "engine/ops/cpu/attention_int.h"

typedef struct backward_buffers {
    float *rows;               /* K x D or BLOCK x D: rows of the head as gathered */
    float *keys_t, *values_t;  /* panels of k^T and v^T (D deep) */
    float *keys;               /* panels of k (K deep) */
    float *dkeys, *dvalues;    /* K x Dp; with AMX D x Kp, rows sp apart */
    float *p, *ds;             /* BLOCK x Kp, rows sp apart */
    float *q, *dout;           /* BLOCK x D */
    float *q_cols, *dout_cols; /* q and dout as lay_out() has them, D x BLOCK */
    float *dq;                 /* BLOCK x Dp */
    float *slopes;             /* of the cap, of one query; used only with a softcap */
    float *uniforms;           /* uniform numbers of one query; used only with dropout */
} backward_buffers;

/* Returns the floats of dkeys, or of dvalues. */
static int64_t sums_floats(const shape *s)
{
    return s->amx ? s->d * s->sp : s->tk * s->dp;
}

static int64_t backward_floats(const shape *s)
{
    return rows_most(s) * s->d + 2 * s->d * s->tkp + s->tkp * s->dp + 2 * sums_floats(s) +
           2 * BLOCK * s->sp + 2 * BLOCK * s->d + 3 * BLOCK * s->dp + s->sp +
           dt_dropout_floats(s->tk);
}

static backward_buffers backward_cut(float *mine, const shape *s)
{
    backward_buffers u;

    u.keys_t = mine;
    u.values_t = u.keys_t + s->d * s->tkp;
    u.keys = u.values_t + s->d * s->tkp;
    u.dkeys = u.keys + s->tkp * s->dp;
    u.dvalues = u.dkeys + sums_floats(s);
    u.p = u.dvalues + sums_floats(s);
    u.ds = u.p + BLOCK * s->sp;
    u.q_cols = u.ds + BLOCK * s->sp;
    u.dout_cols = u.q_cols + BLOCK * s->dp;
    u.dq = u.dout_cols + BLOCK * s->dp;
    u.q = u.dq + BLOCK * s->dp;
    u.dout = u.q + BLOCK * s->d;
    u.rows = u.dout + BLOCK * s->d;
    u.slopes = u.rows + rows_most(s) * s->d;
    u.uniforms = u.slopes + s->sp;
    return u;
}

/* Turns the scores in p into probabilities, and dout v^T in ds into the gradient of the scores. */
static void backward_row(float *p, float *ds, span keys, int64_t width, float scale, float lse)
{
    int64_t computed = mask_row(p, keys);
    float delta = 0.0f;

#pragma omp simd reduction(+ : delta)
    for (int64_t j = 0; j < computed; j++) {
        p[j] = dt_exp(p[j] * scale - lse);
        delta += p[j] * ds[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < computed; j++)
        ds[j] = p[j] * (ds[j] - delta);
    for (int64_t j = computed; j < width; j++)
        p[j] = ds[j] = 0.0f;
}

/* Like backward_row, with dropout. p becomes the probabilities times the dropout mask, which dv
 * needs. uniforms[0] belongs to the first key that the query sees. */
static void backward_row_dropped(float *p, float *ds, span keys, int64_t width, float scale,
                                 float lse, const float *uniforms, const dt_dropout *dropout)
{
    float threshold = dropout->threshold, kept = dropout->scale, delta = 0.0f;
    int64_t n = keys.end - keys.begin;

    for (int64_t j = 0; j < keys.begin; j++)
        p[j] = ds[j] = 0.0f;
    for (int64_t j = keys.end; j < width; j++)
        p[j] = ds[j] = 0.0f;
    p += keys.begin;
    ds += keys.begin;
#pragma omp simd reduction(+ : delta)
    for (int64_t j = 0; j < n; j++) {
        p[j] = dt_exp(p[j] * scale - lse);
        ds[j] *= uniforms[j] >= threshold ? kept : 0.0f;
        delta += p[j] * ds[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        ds[j] = p[j] * (ds[j] - delta);
        p[j] *= uniforms[j] >= threshold ? kept : 0.0f;
    }
}

/* One query head. */
typedef struct backward_head {
    place q, dq, dout;
    const float *lse;
    const dt_dropout *dropout;
    int64_t sequence, head; /* head: counted over all sequences */
} backward_head;

/* Converts the rows of p and ds to pairs of bf16 in place. ds keeps its rows, with the elements of
 * two neighbouring keys in one word. Rows r and r + 1 of p, with r even, become the transposed
 * operands: row r holds the elements of p of the queries r and r + 1 as pairs, row r + 1 those of
 * ds. Rows are filled up with zeros. */
static void pair_rows(const shape *s, int64_t rows, int64_t width, backward_buffers u)
{
    int64_t filled = dt_cpu_round_up(rows, s->fill);

    for (int64_t r = rows; r < filled; r++) {
        memset(u.p + r * s->sp, 0, (size_t)width * sizeof(float));
        memset(u.ds + r * s->sp, 0, (size_t)width * sizeof(float));
    }
    for (int64_t r = 0; r < filled; r += 2) {
        float *p = u.p + r * s->sp, *ds = u.ds + r * s->sp;

        dt_tile_pair_rows(p, p, p + s->sp, width);
        dt_tile_pair_rows(p + s->sp, ds, ds + s->sp, width);
        dt_tile_pair_row(ds, width);
        dt_tile_pair_row(ds + s->sp, width);
    }
}

/* Lays out the rows of a block of q or dout for add_rows(): in panels, or transposed for AMX. panels: scratch. */
static void lay_out(float *out, float *panels, const float *rows, int64_t count, const shape *s)
{
    int64_t deep = words(s, s->block);

    if (!s->amx) {
        pack(out, deep, rows, count, s);
        return;
    }
    pack(panels, deep, rows, count, s);
    for (int64_t j = 0; j < s->d; j += COLS)
        dt_tile_transpose(out + j * deep, deep, panels + j * deep, COLS, COLS, deep);
}

/* Adds p^T x to the rows `from` to from + keys - 1 of dx: x of a block's queries in lay_out()'s form, p as the
 * rows of pair_rows(), or of fp32, `stride` apart. With AMX dx^T += x^T p. */
static void add_rows(float *dx, const float *p, int64_t stride, const float *x, int64_t from,
                     int64_t keys, int64_t queries, const shape *s)
{
    int64_t deep = words(s, s->block);
    const dt_cpu_amx_product product = {.c = dx + from,
                                        .a = x,
                                        .b = p,
                                        .m = s->d,
                                        .n = dt_cpu_round_up(keys, COLS),
                                        .k = dt_cpu_round_up(words(s, queries), DT_CPU_AMX_SIDE),
                                        .c_row = s->sp,
                                        .a_row = deep,
                                        .b_row = stride,
                                        .b_panel = COLS,
                                        .accumulate = true};

    if (s->amx)
        dt_cpu_amx_multiply(&product);
    else
        dt_tile_product(dx + from * s->dp, s->dp, p, 1, stride, x, deep * COLS, keys, s->d,
                        words(s, queries), true, s->pairs);
}

static void backward_block(const backward_head *h, const shape *s, int64_t i, backward_buffers u)
{
    int64_t rows = dt_cpu_min(s->block, s->tq - i), d = words(s, s->d);
    span keys = keys_of_block(s, h->sequence, i, rows);
    int64_t from = keys.begin, count = keys.end - from, width = dt_cpu_round_up(count, COLS);
    const float *ds_columns = s->pairs ? u.p + s->sp : u.ds;
    int64_t column = s->pairs ? 2 * s->sp : s->sp;

    gather(u.q, h->q, i, rows, s);
    gather(u.dout, h->dout, i, rows, s);
    lay_out(u.q_cols, u.dq, u.q, rows, s);
    lay_out(u.dout_cols, u.dq, u.dout, rows, s);

    multiply_panels(u.p, s->sp, u.q, d, u.keys_t + from * d, d * COLS, rows, count, d, s);
    multiply_panels(u.ds, s->sp, u.dout, d, u.values_t + from * d, d * COLS, rows, count, d, s);
    for (int64_t r = 0; r < rows; r++) {
        float *p = u.p + r * s->sp, *ds = u.ds + r * s->sp, lse = h->lse[i + r];
        span seen = keys_of(s, h->sequence, i + r), here = within(seen, from);

        if (s->softcap > 0.0f) {
            cap_slopes(u.slopes, p + here.begin, here.end - here.begin, s);
            cap_scores(p + here.begin, here.end - here.begin, s);
        }
        if (h->dropout->threshold > 0.0f)
            backward_row_dropped(p, ds, here, width, s->scale, lse,
                                 dt_dropout_draw(h->dropout,
                                                 mask_start(s, h->head, i + r, seen.begin),
                                                 here.end - here.begin, u.uniforms),
                                 h->dropout);
        else
            backward_row(p, ds, here, width, s->scale, lse);
        for (int64_t j = 0; s->softcap > 0.0f && j < here.end - here.begin; j++)
            ds[here.begin + j] *= u.slopes[j];
    }
    if (s->pairs)
        pair_rows(s, rows, width, u);

    multiply_panels(u.dq, s->dp, u.ds, s->sp, u.keys + words(s, from) * COLS, s->kd * COLS, rows,
                    s->d, words(s, count), s);
    for (int64_t j = 0; j < rows * s->dp; j++)
        u.dq[j] *= s->scale;
    scatter(h->dq, i, rows, s->d, u.dq, s->dp, u.rows);
    add_rows(u.dkeys, ds_columns, column, u.q_cols, from, count, rows, s);
    add_rows(u.dvalues, u.p, column, u.dout_cols, from, count, rows, s);
}

/* Copies dkeys or dvalues to the rows of a head. keys: scratch, K x D. */
static void scatter_sums(place p, const float *sums, float *keys, float *row, const shape *s)
{
    if (s->amx)
        dt_tile_transpose(keys, s->d, sums, s->sp, s->tk, s->d);
    scatter(p, 0, s->tk, s->d, s->amx ? keys : sums, s->amx ? s->d : s->dp, row);
}

/* The tensors of a call. */
typedef struct backward_call {
    const dt_qkv *dx, *x;
    const dt_tensor *dout;
    const float *lse; /* log-sum-exp of all heads */
    dt_dropout dropout;
} backward_call;

/* Computes the gradients of one key head, and of each query head that uses it. */
static void backward_group(const backward_call *c, const shape *s, int64_t b, int64_t group,
                           backward_buffers u)
{
    gather(u.rows, place_of(&c->x->k, b, group), 0, s->tk, s);
    pack_transposed(u.keys_t, u.rows, s->tk, s);
    pack(u.keys, s->kd, u.rows, s->tk, s);
    gather(u.rows, place_of(&c->x->v, b, group), 0, s->tk, s);
    pack_transposed(u.values_t, u.rows, s->tk, s);
    memset(u.dkeys, 0, (size_t)sums_floats(s) * sizeof(float));
    memset(u.dvalues, 0, (size_t)sums_floats(s) * sizeof(float));
    for (int64_t head = group * s->group; head < (group + 1) * s->group; head++) {
        backward_head h = {.q = place_of(&c->x->q, b, head),
                           .dq = place_of(&c->dx->q, b, head),
                           .dout = place_in(c->dout, s, b, head),
                           .lse = c->lse + (b * s->heads + head) * s->tq,
                           .dropout = &c->dropout,
                           .sequence = b,
                           .head = mask_head(s, b, head)};

        for (int64_t i = 0; i < s->tq; i += s->block)
            backward_block(&h, s, i, u);
    }
    for (int64_t j = 0; j < sums_floats(s); j++)
        u.dkeys[j] *= s->scale;
    scatter_sums(place_of(&c->dx->k, b, group), u.dkeys, u.keys, u.rows, s);
    scatter_sums(place_of(&c->dx->v, b, group), u.dvalues, u.keys, u.rows, s);
}

dt_status DT_CPU_NAME(attention_backward)(dt_device *device, const dt_qkv *dx,
                                          const dt_tensor *dout, const dt_qkv *x,
                                          const dt_tensor *out, const dt_tensor *lse,
                                          const dt_attention_args *args, dt_error *err)
{
    dt_status st = DT_OK;
    shape s = shape_of(x, args);
    backward_call call = {dx, x, dout, lse->data, dt_dropout_of(args->p, args->key)};
    dt_cpu_scratch scratch;

    DT_ASSERT(lse->dtype == DT_F32 && dt_tensor_elems(lse) == s.b * s.heads * s.tq);
    DT_ASSERT(fits(&dx->q, &s, s.tq, s.heads) && fits(&dx->k, &s, s.tk, s.groups) &&
              fits(&dx->v, &s, s.tk, s.groups));
    DT_TRY(dt_row_check(dout, "attention", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, backward_floats(&s), err));
#pragma omp parallel num_threads(dt_cpu_threads(device, s.b *s.tq *s.tk *s.heads *s.d))
    {
        dt_cpu_share share = dt_cpu_share_mine(s.b * s.groups, 1);
        backward_buffers buffers = backward_cut(dt_cpu_scratch_mine(scratch), &s);

        begin_products(&s);
        for (int64_t task = share.begin; task < share.end; task++) {
            backward_group(&call, &s, task / s.groups, task % s.groups, buffers);
            dt_progress_made();
        }
        end_products(&s);
    }
out:
    return st;
}
