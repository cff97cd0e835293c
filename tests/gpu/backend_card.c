/* A card of this machine, through libdtrun-cuda.so as the engine loads it. Memory is pinned host
 * memory, which the card reads and writes at the same address. Nothing moves it, and every card, or
 * share of a card, supports it. */
#include <stdlib.h>

#include "engine/device/device_cuda.h"
#include "tests/ops/backend.h"

const bool bench_backend_guards = false;

dt_status bench_backend_open(dt_device *out, int threads, dt_error *err)
{
    const char *name = getenv("DTRUN_TEST_DEVICE");
    const dt_cuda_entry *entry;
    int count;
    dt_status st = DT_OK;

    DT_TRY(dt_cuda_load(&entry, err));
    DT_TRY(entry->count(&count, err));
    if (count == 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "this machine has an NVIDIA driver and no card");
    DT_TRY(dt_device_open(out, name != NULL ? name : "cuda:0", threads, false, err));
out:
    return st;
}

void *bench_backend_memory(dt_device *device, size_t bytes)
{
    void *memory;

    return device->host_alloc(device, &memory, bytes, NULL) == DT_OK ? memory : NULL;
}

void bench_backend_memory_free(dt_device *device, void *memory)
{
    device->host_free(device, memory);
}
