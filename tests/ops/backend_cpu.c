#include <stdlib.h>

#include "tests/ops/backend.h"

const bool bench_backend_guards = true;

dt_status bench_backend_open(dt_device *out, int threads, dt_error *err)
{
    return dt_device_open_cpu(out, threads, err);
}

void *bench_backend_memory(dt_device *device, size_t bytes)
{
    return aligned_alloc(4096, bytes);
}

void bench_backend_memory_free(dt_device *device, void *memory)
{
    free(memory);
}
