/* attention_trial: compares two implementations of attention on one call's data: their times, and
 * the difference of their results. */
#ifndef DT_ENGINE_OPS_CUDA_ATTENTION_TRIAL_CUH
#define DT_ENGINE_OPS_CUDA_ATTENTION_TRIAL_CUH

#include "engine/ops/cuda/attention_int.cuh"

#define DT_TRIALS 3
#define DT_RUNS   4 /* per trial: all but the first launch overlap with running kernels */

/* The results of one forward pass. */
struct dt_attention_results {
    void *out; /* (B,Q,H*D), in the call's type */
    float *lse;
};

/* Allocates memory for two results of the call. Release with cudaFree() on `out` of the first. */
dt_status dt_attention_results_take(dt_attention_results (&out)[2], const dt_attention &a,
                                    dt_dtype dtype, dt_error *err);

/* DT_ERR_UNSUPPORTED if the two results in `theirs`, of two runs of the same kernel, are not
 * bit-identical, or differ from a.out_written and a.lse by more than rounding. Waits for the
 * stream. */
dt_status dt_attention_results_agree(dt_device *device, const dt_attention &a, dt_dtype dtype,
                                     const dt_attention_results (&theirs)[2], dt_error *err);

/* *apart = the largest |a - b| of rows x cols elements. If `relative`, it is divided by the row's
 * largest |a|. A number that is not finite in only one of the two counts as an infinite difference.
 * dtype may be F32. Waits for the stream. */
dt_status dt_attention_apart(float *apart, dt_device *device, const void *a, const void *b,
                             int64_t rows, int64_t cols, bool relative, dt_dtype dtype,
                             dt_error *err);

/* Returns the milliseconds of one run, in the best of DT_TRIALS; the first trial warms up. `work`
 * queues one run. */
template <typename W>
static dt_status dt_attention_time(float *best_ms, dt_cuda_state *state, W work, dt_error *err)
{
    cudaEvent_t begin = NULL, end = NULL;
    dt_status st = DT_OK;
    float ms;

    DT_TRY(dt_cuda_check(cudaEventCreate(&begin), "timing attention", err));
    DT_TRY(dt_cuda_check(cudaEventCreate(&end), "timing attention", err));
    for (int i = 0; i <= DT_TRIALS; i++) {
        DT_TRY(dt_cuda_check(cudaEventRecord(begin, state->stream), "timing attention", err));
        for (int run = 0; run < DT_RUNS; run++)
            DT_TRY(work());
        DT_TRY(dt_cuda_check(cudaEventRecord(end, state->stream), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventSynchronize(end), "timing attention", err));
        DT_TRY(dt_cuda_check(cudaEventElapsedTime(&ms, begin, end), "timing attention", err));
        if (i == 1 || (i > 1 && ms / DT_RUNS < *best_ms))
            *best_ms = ms / DT_RUNS;
    }
out:
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    return st;
}

#endif
