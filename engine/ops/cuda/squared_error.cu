/* squared_error: computes the loss of each row of outputs; backward replaces the outputs by their gradient.
 *
 * One thread per row: rows are short (the numbers that a model predicts) and many. Sums are in fp32, in the
 * order of the columns; the CPU sums in double, so a row's loss differs by about 1e-7, relative.
 */
#include "engine/ops/cuda/cuda_int.cuh"

template <typename T, bool BACKWARD>
__global__ void squares(float *losses, T *y, const float *targets, int64_t n, int64_t width,
                        const double *scale)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f, factor = 0.0f;

    if (row >= n)
        return;
    if (BACKWARD)
        factor = (float)(2.0 * *scale);
    for (int64_t i = row * width; i < (row + 1) * width; i++) {
        float off = isnan(targets[i]) ? 0.0f : dt_to_float(y[i]) - targets[i];

        sum += off * off;
        if (BACKWARD)
            y[i] = dt_from_float<T>(off * factor);
    }
    losses[row] = sum;
}

template <bool BACKWARD>
static dt_status run(dt_device *device, dt_tensor *losses, const dt_tensor *y,
                     const dt_tensor *targets, const double *scale, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_rows(y), width = dt_tensor_cols(y);

    DT_ASSERT(losses->dtype == DT_F32 && targets->dtype == DT_F32 && dt_tensor_elems(losses) == n &&
              dt_tensor_elems(targets) == dt_tensor_elems(y));
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(y->dtype, "squared error", err, {
        DT_CUDA_LAUNCH((squares<T, BACKWARD>), (unsigned)((n + DT_CUDA_BLOCK - 1) / DT_CUDA_BLOCK),
                       DT_CUDA_BLOCK, 0, state->stream, (float *)losses->data, (T *)y->data,
                       (const float *)targets->data, n, width, scale);
    });
    return dt_cuda_launched("squared error", err);
}

dt_status dt_cuda_squared_error_forward(dt_device *device, dt_tensor *losses, const dt_tensor *y,
                                        const dt_tensor *targets, dt_error *err)
{
    return run<false>(device, losses, y, targets, NULL, err);
}

dt_status dt_cuda_squared_error_backward(dt_device *device, dt_tensor *losses, dt_tensor *y,
                                         const dt_tensor *targets, const double *scale,
                                         dt_error *err)
{
    return run<true>(device, losses, y, targets, scale, err);
}
