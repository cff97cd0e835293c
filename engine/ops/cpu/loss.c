/* loss: cross entropy of logits, and the squared error of numbers. */
#include <math.h>

#include "engine/ops/cpu/ops_int.h"

/* cross_entropy: computes the loss of each row of logits; backward replaces the logits by their gradient.
 *
 * Formula    loss = log(sum_v exp(l_v - max)) + max - l_target     over the first V columns
 *            dl_v = (exp(l_v - max) / sum - [v = target]) scale,   padded columns 0
 *            A target < 0: loss 0, gradient 0. Both are multiplied by the row's weight, if there are weights.
 * Smoothing  with smoothing e, the loss is (1-e) times the loss of the target, plus e times the mean
 *            loss over all V targets
 * Parts      a rank that has only some columns computes max, sum, l_target and sum_v l_v / V of them; from those of
 *            all ranks join computes the same with max = the largest max, sum = sum of sum_r exp(max_r - max)
 */

#define CROSS_ENTROPY_WORK 8 /* cost of an element, relative to one addition */

static float row_max(const float *x, int64_t n)
{
    float best = x[0];

#pragma omp simd reduction(max : best)
    for (int64_t j = 0; j < n; j++)
        best = x[j] > best ? x[j] : best;
    return best;
}

static float chunk_sum_exp(const float *x, int64_t n, float max)
{
    float sum = 0.0f;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += dt_exp(x[j] - max);
    return sum;
}

static float chunk_exp(float *out, const float *x, int64_t n, float max)
{
    float sum = 0.0f;

#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        out[j] = dt_exp(x[j] - max);
        sum += out[j];
    }
    return sum;
}

/* Returns the sum of exp(x - max), and stores the exponentials in out unless it is NULL; out may be
 * x. Chunks are summed in fp32 and their sums in double, since fp32 alone is not precise enough for
 * a long vocabulary. */
static double row_exp(float *out, const float *x, int64_t n, float max)
{
    double total = 0.0;

    for (int64_t j = 0; j < n; j += DT_ROW_CHUNK) {
        int64_t count = dt_cpu_min(DT_ROW_CHUNK, n - j);

        total += (double)(out != NULL ? chunk_exp(out + j, x + j, count, max)
                                      : chunk_sum_exp(x + j, count, max));
    }
    return total;
}

/* Returns the sum of x - max. */
static double row_sum(const float *x, int64_t n, float max)
{
    double total = 0.0;

    for (int64_t j = 0; j < n; j += DT_ROW_CHUNK) {
        int64_t count = dt_cpu_min(DT_ROW_CHUNK, n - j);
        float sum = 0.0f;

#pragma omp simd reduction(+ : sum)
        for (int64_t k = 0; k < count; k++)
            sum += x[j + k] - max;
        total += (double)sum;
    }
    return total;
}

static void row_scale(float *x, int64_t n, float factor)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        x[j] *= factor;
}

static void row_subtract(float *x, int64_t n, float amount)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        x[j] -= amount;
}

/* The weight of a row; weights NULL: 1. */
static double weight_of(const dt_tensor *weights, int64_t row)
{
    return weights != NULL ? (double)((const float *)weights->data)[row] : 1.0;
}

static bool are_weights(const dt_tensor *weights, int64_t rows)
{
    return weights == NULL || (weights->dtype == DT_F32 && dt_tensor_elems(weights) == rows);
}

static dt_status check_logits(const dt_tensor *losses, const dt_tensor *logits,
                              const dt_tensor *targets, int64_t vocab, dt_error *err)
{
    const int32_t *target = targets->data;
    int64_t n = dt_tensor_rows(logits);

    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_I32 && vocab >= 1 &&
              vocab <= dt_tensor_cols(logits) && dt_tensor_elems(targets) == n &&
              dt_tensor_elems(losses) == n);
    for (int64_t i = 0; i < n; i++)
        if (target[i] >= vocab)
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "target %d at position %lld of the batch is outside the vocabulary of "
                           "%lld: the data were made for another vocabulary",
                           (int)target[i], (long long)i, (long long)vocab);
    return dt_row_check(logits, "cross entropy", err);
}

dt_status DT_CPU_NAME(cross_entropy_forward)(dt_device *device, dt_tensor *losses,
                                             const dt_tensor *logits, const dt_tensor *targets,
                                             const dt_tensor *weights, int64_t vocab, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits);
    const int32_t *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;

    DT_ASSERT(are_weights(weights, n));
    DT_TRY(check_logits(losses, logits, targets, vocab, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, vocab, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *vocab *CROSS_ENTROPY_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *row;
            float max;

            loss[i] = 0.0f;
            if (target[i] < 0)
                continue;
            row = dt_row_read(logits, i * stride, vocab, mine);
            max = row_max(row, vocab);
            loss[i] = (float)log(row_exp(NULL, row, vocab, max)) + (max - row[target[i]]);
            if (weights != NULL)
                loss[i] = (float)(weight_of(weights, i) * (double)loss[i]);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(cross_entropy_backward)(dt_device *device, dt_tensor *losses,
                                              dt_tensor *logits, const dt_tensor *targets,
                                              const dt_tensor *weights, int64_t vocab,
                                              const double *scale_at, double smoothing,
                                              dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits);
    const int32_t *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;

    DT_ASSERT(are_weights(weights, n));
    DT_TRY(check_logits(losses, logits, targets, vocab, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, stride, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *stride *CROSS_ENTROPY_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            double weight = weight_of(weights, i), scale = *scale_at * weight;
            float *out = dt_row_open(logits, i * stride, mine);

            loss[i] = 0.0f;
            if (target[i] < 0) {
                memset(out, 0, (size_t)stride * sizeof *out);
            } else {
                const float *row = dt_row_read(logits, i * stride, vocab, mine);
                float max = row_max(row, vocab), aim = row[target[i]];
                double mean = smoothing > 0 ? row_sum(row, vocab, max) / (double)vocab : 0;
                double sum = row_exp(out, row, vocab, max);

                loss[i] = (float)log(sum) + (max - aim);
                if (smoothing > 0)
                    loss[i] = (float)(log(sum) + (1 - smoothing) * (double)(max - aim) -
                                      smoothing * mean);
                if (weights != NULL)
                    loss[i] = (float)(weight * (double)loss[i]);
                row_scale(out, vocab, (float)(scale / sum));
                if (smoothing > 0)
                    row_subtract(out, vocab, (float)(scale * smoothing / (double)vocab));
                out[target[i]] -= (float)(scale * (1 - smoothing));
                memset(out + vocab, 0, (size_t)(stride - vocab) * sizeof *out);
            }
            dt_row_close(logits, i * stride, stride, out);
        }
    }
out:
    return st;
}

/* --- a vocabulary divided among ranks */

static dt_status check_part(const dt_tensor *logits, const dt_tensor *targets,
                            const dt_vocab_part *part, dt_error *err)
{
    const int32_t *target = targets->data;
    int64_t n = dt_tensor_rows(logits);

    DT_ASSERT(targets->dtype == DT_I32 && dt_tensor_elems(targets) == n && part->count >= 0 &&
              part->count <= dt_tensor_cols(logits));
    for (int64_t i = 0; i < n; i++)
        if (target[i] >= part->all)
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "target %d at position %lld of the batch is outside the vocabulary of "
                           "%lld: the data were made for another vocabulary",
                           (int)target[i], (long long)i, (long long)part->all);
    return dt_row_check(logits, "cross entropy", err);
}

/* The target's column in the part; -1: it is in another part, or does not count. */
static int64_t column_of(const dt_vocab_part *part, int32_t target)
{
    int64_t column = target - part->first;

    return column >= 0 && column < part->count ? column : -1;
}

dt_status DT_CPU_NAME(cross_entropy_part)(dt_device *device, dt_tensor *own,
                                          const dt_tensor *logits, const dt_tensor *targets,
                                          const dt_vocab_part *part, double smoothing,
                                          dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits), count = part->count;
    const int32_t *target = targets->data;
    float *maxima = own->data, *sums = maxima + n, *aims = sums + n, *means = aims + n;
    dt_cpu_scratch scratch;

    DT_ASSERT(own->dtype == DT_F32 && dt_tensor_elems(own) == DT_VOCAB_NUMBERS * n);
    DT_TRY(check_part(logits, targets, part, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, stride, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *stride *CROSS_ENTROPY_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            int64_t column = column_of(part, target[i]);
            const float *row;

            maxima[i] = -INFINITY;
            sums[i] = aims[i] = means[i] = 0.0f;
            if (target[i] < 0 || count == 0)
                continue;
            row = dt_row_read(logits, i * stride, count, mine);
            maxima[i] = row_max(row, count);
            sums[i] = (float)row_exp(NULL, row, count, maxima[i]);
            aims[i] = column >= 0 ? row[column] : 0.0f;
            if (smoothing > 0)
                means[i] = (float)(row_sum(row, count, 0) / (double)part->all);
        }
    }
out:
    return st;
}

/* The numbers of one row over the whole vocabulary. */
typedef struct joined {
    float max, aim;
    double sum, mean; /* mean: of the logits, with smoothing */
} joined;

static joined join_row(const float *all, int64_t ranks, int64_t n, int64_t i)
{
    joined out = {.max = -INFINITY};

    for (int64_t r = 0; r < ranks; r++)
        out.max = fmaxf(out.max, all[DT_VOCAB_NUMBERS * n * r + i]);
    for (int64_t r = 0; r < ranks; r++) {
        const float *own = all + DT_VOCAB_NUMBERS * n * r;

        if (own[n + i] != 0) /* also NaN */
            out.sum += (double)own[n + i] * exp((double)own[i] - (double)out.max);
        out.aim += own[2 * n + i]; /* 0 on all ranks but one */
        out.mean += (double)own[3 * n + i];
    }
    return out;
}

static float join_loss(const joined *of, double smoothing)
{
    if (smoothing > 0)
        return (float)(log(of->sum) + (1 - smoothing) * (double)(of->max - of->aim) -
                       smoothing * (of->mean - (double)of->max));
    return (float)log(of->sum) + (of->max - of->aim);
}

/* Turns a row of logits into their gradient. */
static void join_backward(float *out, const float *row, const joined *of, int64_t column,
                          const dt_vocab_part *part, int64_t stride, double scale, double smoothing)
{
    if (part->count > 0) {
        row_exp(out, row, part->count, of->max);
        row_scale(out, part->count, (float)(scale / of->sum));
        if (smoothing > 0)
            row_subtract(out, part->count, (float)(scale * smoothing / (double)part->all));
    }
    if (column >= 0)
        out[column] -= (float)(scale * (1 - smoothing));
    memset(out + part->count, 0, (size_t)(stride - part->count) * sizeof *out);
}

dt_status DT_CPU_NAME(cross_entropy_join)(dt_device *device, dt_tensor *losses, dt_tensor *logits,
                                          const dt_tensor *all, const dt_tensor *targets,
                                          const dt_tensor *weights, const dt_vocab_part *part,
                                          const double *scale_at, double smoothing, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits);
    int64_t ranks = n > 0 ? dt_tensor_elems(all) / (DT_VOCAB_NUMBERS * n) : 0;
    const int32_t *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;

    DT_ASSERT(all->dtype == DT_F32 && dt_tensor_elems(all) == DT_VOCAB_NUMBERS * n * ranks &&
              losses->dtype == DT_F32 && dt_tensor_elems(losses) == n && are_weights(weights, n));
    DT_TRY(check_part(logits, targets, part, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, stride, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *stride *CROSS_ENTROPY_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            bool counts = target[i] >= 0;
            joined of = join_row(all->data, ranks, n, i);
            float *out;

            loss[i] = counts ? join_loss(&of, smoothing) : 0.0f;
            if (counts && weights != NULL)
                loss[i] = (float)(weight_of(weights, i) * (double)loss[i]);
            if (scale_at == NULL)
                continue;
            out = dt_row_open(logits, i * stride, mine);
            if (counts)
                join_backward(out, dt_row_read(logits, i * stride, part->count, mine), &of,
                              column_of(part, target[i]), part, stride,
                              *scale_at * weight_of(weights, i), smoothing);
            else
                memset(out, 0, (size_t)stride * sizeof *out);
            dt_row_close(logits, i * stride, stride, out);
        }
    }
out:
    return st;
}

/* squared_error: computes the loss of each row of outputs; backward replaces the outputs by their gradient.
 *
 * Formula    loss = sum_o (y_o - t_o)^2,   dy_o = 2 (y_o - t_o) scale; both 0 if t_o is NaN.
 *            A row is summed in double
 */

#define SQUARED_ERROR_WORK 2 /* cost of an element, relative to one addition */

static float row_loss(const float *y, const float *target, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++) {
        double off = isnan(target[i]) ? 0.0 : (double)y[i] - (double)target[i];

        sum += off * off;
    }
    return (float)sum;
}

static void row_gradient(float *dy, const float *y, const float *target, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        dy[i] = isnan(target[i]) ? 0.0f : (y[i] - target[i]) * factor;
}

static dt_status check_outputs(const dt_tensor *losses, const dt_tensor *y,
                               const dt_tensor *targets, dt_error *err)
{
    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_F32 &&
              dt_tensor_elems(losses) == dt_tensor_rows(y) &&
              dt_tensor_elems(targets) == dt_tensor_elems(y));
    return dt_row_check(y, "squared error", err);
}

/* Computes the losses of all rows; unless `factor` is NULL, also replaces y by its gradient. */
static dt_status each_row(dt_device *device, dt_tensor *losses, dt_tensor *y,
                          const dt_tensor *targets, const float *factor, dt_error *err)
{
    int64_t n = dt_tensor_rows(y), width = dt_tensor_cols(y);
    const float *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;
    dt_status st = DT_OK;

    DT_TRY(check_outputs(losses, y, targets, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, width, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *width *SQUARED_ERROR_WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            const float *row = dt_row_read(y, i * width, width, mine);

            loss[i] = row_loss(row, target + i * width, width);
            if (factor != NULL) {
                float *out = dt_row_open(y, i * width, mine);

                row_gradient(out, row, target + i * width, width, *factor);
                dt_row_close(y, i * width, width, out);
            }
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(squared_error_forward)(dt_device *device, dt_tensor *losses,
                                             const dt_tensor *y, const dt_tensor *targets,
                                             dt_error *err)
{
    dt_tensor read = *y;

    return each_row(device, losses, &read, targets, NULL, err);
}

dt_status DT_CPU_NAME(squared_error_backward)(dt_device *device, dt_tensor *losses, dt_tensor *y,
                                              const dt_tensor *targets, const double *scale,
                                              dt_error *err)
{
    float factor = (float)(2.0 * *scale);

    return each_row(device, losses, y, targets, &factor, err);
}
