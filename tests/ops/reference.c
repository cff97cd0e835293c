#include "tests/ops/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define ROOT_HALF      0.70710678118654752440
#define DENSITY        0.39894228040143267794 /* 1/sqrt(2 pi) */

void ref_embedding_forward(double *out, const int32_t *tokens, const double *wte, const double *wpe,
                           double scale, int64_t n, int64_t t, int64_t c)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++)
            out[i * c + j] = scale * wte[tokens[i] * c + j] + wpe[i % t * c + j];
}

void ref_embedding_backward(double *dwte, double *dwpe, const double *dout, const int32_t *tokens,
                            double scale, int64_t n, int64_t t, int64_t c)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < c; j++) {
            dwte[tokens[i] * c + j] += scale * dout[i * c + j];
            if (dwpe != NULL)
                dwpe[i % t * c + j] += dout[i * c + j];
        }
    }
}

static void row_statistics(double *mean, double *rstd, const double *x, int64_t c, double eps)
{
    double sum = 0.0, squares = 0.0;

    for (int64_t j = 0; j < c; j++)
        sum += x[j];
    *mean = sum / (double)c;
    for (int64_t j = 0; j < c; j++)
        squares += (x[j] - *mean) * (x[j] - *mean);
    *rstd = 1.0 / sqrt(squares / (double)c + eps);
}

void ref_layernorm_forward(double *y, double *mean, double *rstd, const double *x, const double *w,
                           const double *b, int64_t n, int64_t c, double eps)
{
    for (int64_t i = 0; i < n; i++) {
        row_statistics(&mean[i], &rstd[i], x + i * c, c, eps);
        for (int64_t j = 0; j < c; j++)
            y[i * c + j] = (x[i * c + j] - mean[i]) * rstd[i] * w[j] + b[j];
    }
}

void ref_layernorm_backward(double *dx, double *dw, double *db, const double *dy, const double *x,
                            const double *w, int64_t n, int64_t c, double eps)
{
    for (int64_t i = 0; i < n; i++) {
        double mean, rstd, mean_g = 0.0, mean_gh = 0.0;

        row_statistics(&mean, &rstd, x + i * c, c, eps);
        for (int64_t j = 0; j < c; j++) {
            double h = (x[i * c + j] - mean) * rstd, g = dy[i * c + j] * w[j];

            mean_g += g / (double)c;
            mean_gh += g * h / (double)c;
            dw[j] += dy[i * c + j] * h;
            db[j] += dy[i * c + j];
        }
        for (int64_t j = 0; j < c; j++) {
            double h = (x[i * c + j] - mean) * rstd, g = dy[i * c + j] * w[j];
            dx[i * c + j] += rstd * (g - mean_g - h * mean_gh);
        }
    }
}

void ref_matmul_forward(double *y, const double *x, const double *w, const double *bias, int64_t n,
                        int64_t i, int64_t o)
{
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = 0; k < o; k++) {
            double sum = bias != NULL ? bias[k] : 0.0;

            for (int64_t j = 0; j < i; j++)
                sum += x[r * i + j] * w[k * i + j];
            y[r * o + k] = sum;
        }
    }
}

void ref_matmul_backward(double *dx, double *dw, double *dbias, const double *dy, const double *x,
                         const double *w, int64_t n, int64_t i, int64_t o)
{
    for (int64_t r = 0; r < n; r++) {
        for (int64_t j = 0; j < i; j++) {
            dx[r * i + j] = 0.0;
            for (int64_t k = 0; k < o; k++) {
                dx[r * i + j] += dy[r * o + k] * w[k * i + j];
                dw[k * i + j] += dy[r * o + k] * x[r * i + j];
            }
        }
        for (int64_t k = 0; k < o; k++)
            dbias[k] += dy[r * o + k];
    }
}

ref_qkv ref_packed(double *qkv, const ref_attention *a)
{
    int64_t c = a->heads * a->d;

    return (ref_qkv){qkv, qkv + c, qkv + 2 * c, 3 * c, 3 * c};
}

ref_attention ref_self_attention(int64_t b, int64_t t, int64_t heads, int64_t d, bool causal,
                                 const double *mask)
{
    return (ref_attention){b, t, t, heads, heads, d, causal, NULL, mask, NULL, 0, 0, 0};
}

/* One query of one head: its position, and the keys that it sees. */
typedef struct query {
    int64_t q, out;      /* offsets of its row, and of its row of out */
    int64_t key, stride; /* offsets of key 0 and value 0; distance to the next */
    int64_t begin, end;  /* range of the keys that it sees */
    int64_t task;        /* (b*H + h)*Q + query */
} query;

static query query_of(const ref_attention *a, const ref_qkv *x, int64_t task)
{
    int64_t i = task % a->queries, head = task / a->queries % a->heads;
    int64_t seq = task / a->queries / a->heads, at = i + a->keys - a->queries;
    query made = {.q = (seq * a->queries + i) * x->q_row + head * a->d,
                  .out = ((seq * a->queries + i) * a->heads + head) * a->d,
                  .key = seq * a->keys * x->kv_row + head / (a->heads / a->groups) * a->d,
                  .stride = x->kv_row,
                  .begin = a->starts != NULL ? a->starts[seq * a->keys + at] : 0,
                  .end = a->causal            ? at + 1
                         : a->lengths != NULL ? a->lengths[seq]
                                              : a->keys,
                  .task = task};

    if (a->window > 0 && made.end - made.begin > a->window)
        made.begin = made.end - a->window;
    return made;
}

static double scale_of(const ref_attention *a)
{
    return a->scale > 0 ? a->scale : 1 / sqrt((double)a->d);
}

static double score_of(const ref_attention *a, double product)
{
    double score = product * scale_of(a);

    return a->softcap > 0 ? a->softcap * tanh(score / a->softcap) : score;
}

/* The slope of the score by the product. */
static double score_slope(const ref_attention *a, double product)
{
    double t = a->softcap > 0 ? tanh(product * scale_of(a) / a->softcap) : 0;

    return scale_of(a) * (1 - t * t);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *out, double factor, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] += factor * x[i];
}

/* Computes p[begin..end], the probabilities of a query; returns its log-sum-exp. */
static double probabilities(double *p, const ref_qkv *x, const ref_attention *a, const query *i)
{
    double max = -INFINITY, sum = 0.0;

    for (int64_t j = i->begin; j < i->end; j++) {
        p[j] = score_of(a, dot(x->q + i->q, x->k + i->key + j * i->stride, a->d));
        max = fmax(max, p[j]);
    }
    for (int64_t j = i->begin; j < i->end; j++)
        sum += exp(p[j] - max);
    for (int64_t j = i->begin; j < i->end; j++)
        p[j] = exp(p[j] - max) / sum;
    return max + log(sum);
}

/* Returns the factor of the query's probability for key j. */
static double kept(const ref_attention *a, const query *i, int64_t j)
{
    return a->mask != NULL ? a->mask[i->task * a->keys + j] : 1.0;
}

void ref_attention_forward(double *out, double *lse, const ref_qkv *x, const ref_attention *a)
{
    double *p = malloc((size_t)a->keys * sizeof *p);

    for (int64_t task = 0; task < a->b * a->heads * a->queries; task++) {
        query i = query_of(a, x, task);

        lse[task] = probabilities(p, x, a, &i);
        memset(out + i.out, 0, (size_t)a->d * sizeof *out);
        for (int64_t j = i.begin; j < i.end; j++)
            add(out + i.out, kept(a, &i, j) * p[j], x->v + i.key + j * i.stride, a->d);
    }
    free(p);
}

static void zero_rows(double *x, int64_t rows, int64_t stride, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        memset(x + i * stride, 0, (size_t)width * sizeof *x);
}

void ref_attention_backward(const ref_qkv *dx, const double *dout, const ref_qkv *x,
                            const ref_attention *a)
{
    double *p = malloc((size_t)a->keys * sizeof *p), *dp = malloc((size_t)a->keys * sizeof *dp);

    zero_rows(dx->q, a->b * a->queries, dx->q_row, a->heads * a->d);
    zero_rows(dx->k, a->b * a->keys, dx->kv_row, a->groups * a->d);
    zero_rows(dx->v, a->b * a->keys, dx->kv_row, a->groups * a->d);
    for (int64_t task = 0; task < a->b * a->heads * a->queries; task++) {
        query i = query_of(a, x, task);
        double mean = 0.0;

        probabilities(p, x, a, &i);
        for (int64_t j = i.begin; j < i.end; j++) {
            dp[j] = kept(a, &i, j) * dot(dout + i.out, x->v + i.key + j * i.stride, a->d);
            add(dx->v + i.key + j * i.stride, kept(a, &i, j) * p[j], dout + i.out, a->d);
            mean += p[j] * dp[j];
        }
        for (int64_t j = i.begin; j < i.end; j++) {
            double product = dot(x->q + i.q, x->k + i.key + j * i.stride, a->d);
            double ds = p[j] * (dp[j] - mean) * score_slope(a, product);

            add(dx->q + i.q, ds, x->k + i.key + j * i.stride, a->d);
            add(dx->k + i.key + j * i.stride, ds, x->q + i.q, a->d);
        }
    }
    free(p);
    free(dp);
}

/* (1 + tanh(u)) / 2, which would cancel to 0 for a large negative u */
static double half_one_plus_tanh(double u)
{
    return 1.0 / (1.0 + exp(-2.0 * u));
}

double ref_gelu(double x)
{
    return x * 0.5 * erfc(-x * ROOT_HALF);
}

double ref_gelu_slope(double x)
{
    return 0.5 * erfc(-x * ROOT_HALF) + x * DENSITY * exp(-0.5 * x * x);
}

double ref_gelu_tanh(double x)
{
    return x * half_one_plus_tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
}

double ref_gelu_tanh_slope(double x)
{
    double s = half_one_plus_tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
    double slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);

    return s + 2.0 * x * s * (1.0 - s) * slope;
}

void ref_cross_entropy(double *losses, double *dlogits, const double *logits,
                       const int32_t *targets, int64_t n, int64_t padded, int64_t vocab,
                       double scale, double smoothing)
{
    for (int64_t i = 0; i < n; i++) {
        const double *row = logits + i * padded;
        double max = -INFINITY, sum = 0.0, nll = 0.0;

        for (int64_t j = 0; j < vocab; j++)
            max = fmax(max, row[j]);
        for (int64_t j = 0; j < vocab; j++)
            sum += exp(row[j] - max);
        for (int64_t j = 0; j < vocab; j++) /* of every target, by its share */
            nll += (smoothing / (double)vocab + (j == targets[i] ? 1.0 - smoothing : 0.0)) *
                   (log(sum) + max - row[j]);
        losses[i] = targets[i] < 0 ? 0.0 : nll;
        for (int64_t j = 0; j < padded; j++) {
            double p = exp(row[j] - max) / sum - smoothing / (double)vocab -
                       (j == targets[i] ? 1.0 - smoothing : 0.0);
            dlogits[i * padded + j] = targets[i] < 0 || j >= vocab ? 0.0 : p * scale;
        }
    }
}

static double adam_step(double m, double v, const dt_optimizer_args *args)
{
    double correct_m = 1.0 - pow(args->options.beta1, (double)args->step);
    double correct_v = 1.0 - pow(args->options.beta2, (double)args->step);

    if (args->options.variant == DT_OPTIMIZER_FAIRSEQ)
        return args->lr * sqrt(correct_v) / correct_m * m / (sqrt(v) + args->options.eps);
    return args->lr * (m / correct_m) / (sqrt(v / correct_v) + args->options.eps);
}

static double sgd_step(double *m, double g, const dt_optimizer_args *args)
{
    if (args->options.momentum == 0.0)
        return args->lr * g;
    *m = args->step == 1 ? g : args->options.momentum * *m + g;
    return args->lr * (args->options.nesterov ? g + args->options.momentum * *m : *m);
}

static double lion_step(double *m, double g, const dt_optimizer_args *args)
{
    double way = args->options.beta1 * *m + (1.0 - args->options.beta1) * g;

    *m = args->options.beta2 * *m + (1.0 - args->options.beta2) * g;
    return args->lr * ((way > 0) - (way < 0));
}

void ref_optimizer(double *param, double *m, double *v, const double *grad, int64_t n,
                   const dt_optimizer_args *args)
{
    for (int64_t i = 0; i < n; i++) {
        double g = grad[i] * args->grad_scale;

        if (args->options.kind == DT_OPTIMIZER_ADAMW || args->options.kind == DT_OPTIMIZER_LION)
            param[i] -= args->lr * args->options.weight_decay * param[i];
        else
            g += args->options.weight_decay * param[i];
        if (args->options.kind == DT_OPTIMIZER_SGD) {
            param[i] -= sgd_step(m != NULL ? &m[i] : NULL, g, args);
            continue;
        }
        if (args->options.kind == DT_OPTIMIZER_LION) {
            param[i] -= lion_step(&m[i], g, args);
            continue;
        }
        m[i] = args->options.beta1 * m[i] + (1.0 - args->options.beta1) * g;
        v[i] = args->options.beta2 * v[i] + (1.0 - args->options.beta2) * g * g;
        param[i] -= adam_step(m[i], v[i], args);
    }
}
