#include "engine/train/machine_speed.h"

#include <stdio.h>

#include "base/clock.h"
#include "engine/ops/ops.h"

#define MEASURE_SECONDS  0.08
#define MEASURE_MAX_ROWS 1024
#define CARD_MAX_ROWS    4096 /* fewer rows do not keep a GPU busy */
#define CARD_TRAIN       8 /* products per wait on a GPU, where a wait takes as long as a small product */

/* The parameter (width out, width in) of the largest kind of matrix product: the first of the
 * largest matrices of the blocks. */
static const dt_param *largest_matrix(const dt_model *model)
{
    const dt_param *largest = &model->params[0];

    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];

        if (param->unit > 0 && param->ndim == 2 &&
            (largest->unit == 0 || param->held.elems > largest->held.elems))
            largest = param;
    }
    return largest;
}

dt_status dt_measure_matmul(double *flops_per_second, const dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    const dt_param *matrix = largest_matrix(model);
    dt_device *device = model->device;
    int64_t all_rows = config->batch * config->tokens;
    int64_t most = device->host_reads ? MEASURE_MAX_ROWS : CARD_MAX_ROWS;
    int64_t rows = all_rows < most ? all_rows : most;
    int train = device->host_reads ? 1 : CARD_TRAIN;
    int64_t in = matrix->held.dim[1], out_width = matrix->held.dim[0];
    size_t elem_bytes = dt_dtype_bytes(config->dtype);
    dt_device_arena memory = {0};
    dt_tensor x, w, y, no_bias;
    double begun, start, seconds, best = 0;
    dt_status st = DT_OK;

    *flops_per_second = 0;
    DT_TRY(dt_device_arena_open(
        &memory, device,
        (size_t)(rows * in + out_width * in + rows * out_width) * elem_bytes + 3 * 64, err));
    x = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(rows * in) * elem_bytes), config->dtype,
                     rows, in);
    w = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(out_width * in) * elem_bytes),
                     config->dtype, out_width, in);
    y = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(rows * out_width) * elem_bytes),
                     config->dtype, rows, out_width);
    no_bias = dt_tensor_1d(NULL, config->dtype, out_width);

    DT_TRY(device->ops->matmul_forward(device, &y, &x, &w, &no_bias, err)); /* warm-up */
    DT_TRY(device->synchronize(device, err));
    begun = dt_clock_monotonic_seconds();
    do {
        start = dt_clock_monotonic_seconds();
        for (int i = 0; i < train; i++)
            DT_TRY(device->ops->matmul_forward(device, &y, &x, &w, &no_bias, err));
        DT_TRY(device->synchronize(device, err));
        seconds = dt_clock_monotonic_seconds() - start;
        /* minimum: other processes may take the processor */
        best = best == 0 || seconds < best ? seconds : best;
    } while (start + seconds - begun < MEASURE_SECONDS);
    *flops_per_second = best > 0 ? 2.0 * (double)(train * rows * in * out_width) / best : 0;
out:
    dt_device_arena_close(&memory);
    return st;
}

int64_t dt_measure_free_memory(dt_device *device)
{
    int64_t free_bytes, total_bytes;

    return device->memory_info(device, &free_bytes, &total_bytes, NULL) == DT_OK ? free_bytes : 0;
}

int64_t dt_measure_peak_memory(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    long long kilobytes = 0;
    char line[128];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "VmHWM: %lld kB", &kilobytes);
    fclose(file);
    return kilobytes * 1024;
}
