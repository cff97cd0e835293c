/* cross_entropy: computes the loss of each row of logits; backward replaces the logits by their gradient.
 *
 * Formula    loss = log(sum_v exp(l_v - max)) + max - l_target     over the first V columns
 *            dl_v = (exp(l_v - max) / sum - [v = target]) scale,   padded columns 0
 *            A target < 0: loss 0, gradient 0.
 * Smoothing  with smoothing e, the loss is (1-e) times the loss of the target, plus e times the mean
 *            loss over all V targets
 */
#include <math.h>

#include "engine/ops/cpu/math_int.h"
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

#define WORK 8 /* cost of an element, relative to one addition */

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

/* Returns the mean of x - max. */
static double row_mean(const float *x, int64_t n, float max)
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
    return total / (double)n;
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

static dt_status check(const dt_tensor *losses, const dt_tensor *logits, const dt_tensor *targets,
                       int64_t vocab, dt_error *err)
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
                                             int64_t vocab, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits);
    const int32_t *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;

    DT_TRY(check(losses, logits, targets, vocab, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, vocab, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *vocab *WORK))
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
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(cross_entropy_backward)(dt_device *device, dt_tensor *losses,
                                              dt_tensor *logits, const dt_tensor *targets,
                                              int64_t vocab, const double *scale_at,
                                              double smoothing, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t n = dt_tensor_rows(logits), stride = dt_tensor_cols(logits);
    const double scale = *scale_at;
    const int32_t *target = targets->data;
    float *loss = losses->data;
    dt_cpu_scratch scratch;

    DT_TRY(check(losses, logits, targets, vocab, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, stride, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *stride *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            float *out = dt_row_open(logits, i * stride, mine);

            loss[i] = 0.0f;
            if (target[i] < 0) {
                memset(out, 0, (size_t)stride * sizeof *out);
            } else {
                const float *row = dt_row_read(logits, i * stride, vocab, mine);
                float max = row_max(row, vocab), aim = row[target[i]];
                double mean = smoothing > 0 ? row_mean(row, vocab, max) : 0;
                double sum = row_exp(out, row, vocab, max);

                loss[i] = (float)log(sum) + (max - aim);
                if (smoothing > 0)
                    loss[i] = (float)(log(sum) + (1 - smoothing) * (double)(max - aim) -
                                      smoothing * mean);
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
