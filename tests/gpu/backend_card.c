/* A card of this machine, through libdtrun-cuda.so as the engine loads it. Memory is managed: one
 * address for the host and the card, moved by the driver to who touches it. It comes from the
 * driver's own interface, so that these tests are built where there is no CUDA. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "engine/device/device_cuda.h"
#include "tests/ops/backend.h"

#include "base/banned.h"

#define ATTACH_GLOBAL 1 /* CU_MEM_ATTACH_GLOBAL: every stream may use it */

typedef int alloc_managed(unsigned long long *out, size_t bytes, unsigned int flags);
typedef int free_managed(unsigned long long memory);

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

static void *driver_function(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    return driver != NULL ? dlsym(driver, name) : NULL;
}

/* The card is opened: its context is current on this thread. */
void *bench_backend_memory(size_t bytes)
{
    void *function = driver_function("cuMemAllocManaged");
    unsigned long long memory = 0;

    if (function == NULL || ((alloc_managed *)function)(&memory, bytes, ATTACH_GLOBAL) != 0)
        return NULL;
    return (void *)(uintptr_t)memory;
}

void bench_backend_memory_free(void *memory)
{
    void *function = driver_function("cuMemFree_v2");

    if (function != NULL && memory != NULL)
        (void)((free_managed *)function)((unsigned long long)(uintptr_t)memory);
}
