/* device_cuda: NVIDIA cards. The code lies in libdtrun-cuda.so beside dtrun-engine, which is loaded
 * when a card is asked for, so that the engine starts where there is no CUDA.
 */
#ifndef DT_ENGINE_DEVICE_CUDA_H
#define DT_ENGINE_DEVICE_CUDA_H

#include "engine/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the library exports under the name DT_CUDA_ENTRY: changes only together with the engine. */
#define DT_CUDA_LIBRARY "libdtrun-cuda.so"
#define DT_CUDA_ENTRY   "dt_cuda_entry_1"

typedef struct dt_cuda_card {
    char name[256];
    char pci[32]; /* "00000000:3B:00.0" */
    int64_t free_bytes, total_bytes;
    int processors, major, minor;
} dt_cuda_card;

typedef struct dt_cuda_entry {
    size_t device_bytes; /* sizeof(dt_device): the library and the engine must be of one build */
    dt_status (*count)(int *out, dt_error *err); /* 0 where there is a driver and no card */
    dt_status (*card)(dt_cuda_card *out, int index, dt_error *err);
    dt_status (*open)(dt_device *out, int index, bool tf32, dt_error *err);
} dt_cuda_entry;

/* DT_ERR_UNSUPPORTED where the library or the driver is missing: says which. */
dt_status dt_cuda_load(const dt_cuda_entry **out, dt_error *err);

/* "cuda:N" */
dt_status dt_device_open_cuda(dt_device *out, int index, bool tf32, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
