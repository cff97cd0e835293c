/* device_cuda: opens NVIDIA GPUs. The code is in libdtrun-cuda.so next to dtrun-engine, and is loaded
 * when a GPU is requested, so that the engine starts on machines without CUDA.
 */
#ifndef DT_ENGINE_DEVICE_CUDA_H
#define DT_ENGINE_DEVICE_CUDA_H

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The symbol that the library exports. It must come from the same build as the engine. */
#define DT_CUDA_LIBRARY "libdtrun-cuda.so"
#define DT_CUDA_ENTRY   "dt_cuda_entry_1"

typedef struct dt_cuda_card {
    char name[256];
    char pci[32]; /* PCI address, for example "00000000:3B:00.0" */
    int64_t free_bytes, total_bytes;
    int processors, major, minor;
} dt_cuda_card;

typedef struct dt_cuda_entry {
    size_t device_bytes; /* sizeof(dt_device), to detect a library of another build */
    /* number of GPUs; 0 if there is a driver but no GPU */
    dt_status (*count)(int *out, dt_error *err);
    dt_status (*card)(dt_cuda_card *out, int index, dt_error *err);
    dt_status (*open)(dt_device *out, int index, bool tf32, dt_error *err);
} dt_cuda_entry;

/* Load the library. DT_ERR_UNSUPPORTED naming what is missing: the library or the driver. */
dt_status dt_cuda_load(const dt_cuda_entry **out, dt_error *err);

/* Open "cuda:N". */
dt_status dt_device_open_cuda(dt_device *out, int index, bool tf32, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
