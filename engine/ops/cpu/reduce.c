/* reduce: computes the sum, or the sum of squares, of a whole tensor.
 *
 * The tensor is always cut into PIECES pieces, for any thread count. Each piece is summed in double by
 * one thread, and the sums of the pieces are added in order. The result therefore depends only on the
 * elements and the instruction set.
 */
#include "engine/ops/cpu/ops_int.h"

#define PIECES 64

static double piece_sum(const float *x, int64_t n)
{
    double total = 0.0;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i];
    return total;
}

static double piece_sum_squares(const float *x, int64_t n)
{
    double total = 0.0;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i] * (double)x[i];
    return total;
}

static double reduce(dt_device *device, const dt_tensor *x, double (*piece)(const float *, int64_t))
{
    int64_t elems = dt_tensor_elems(x);
    double parts[PIECES], total = 0.0;

#pragma omp parallel for schedule(static) num_threads(dt_cpu_threads(device, elems))
    for (int i = 0; i < PIECES; i++) {
        int64_t begin = elems * i / PIECES, end = elems * (i + 1) / PIECES;
        parts[i] = piece((const float *)x->data + begin, end - begin);
    }
    for (int i = 0; i < PIECES; i++)
        total += parts[i];
    return total;
}

dt_status DT_CPU_NAME(sum_squares)(dt_device *device, double *out, const dt_tensor *x,
                                   dt_error *err)
{
    DT_ASSERT(x->dtype == DT_F32);
    *out = reduce(device, x, piece_sum_squares);
    return DT_OK;
}

dt_status DT_CPU_NAME(sum)(dt_device *device, double *out, const dt_tensor *x, dt_error *err)
{
    DT_ASSERT(x->dtype == DT_F32);
    *out = reduce(device, x, piece_sum);
    return DT_OK;
}
