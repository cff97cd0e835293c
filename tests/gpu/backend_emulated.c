/* An emulated card: host memory is its memory. */
#include <stdlib.h>

#include "engine/device/device_cuda.h"
#include "tests/ops/backend.h"

extern const dt_cuda_entry dt_cuda_entry_1;

const bool bench_backend_guards = false;

dt_status bench_backend_open(dt_device *out, int threads, dt_error *err)
{
    return dt_cuda_entry_1.open(out, 0, false, err);
}

void *bench_backend_memory(dt_device *device, size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void bench_backend_memory_free(dt_device *device, void *memory)
{
    free(memory);
}
