/* nvml: reads utilization, memory, temperature and power of a GPU from the driver (NVIDIA Management
 * Library, which is part of the driver).
 *
 * The library is loaded on use; the agent, which is linked statically, runs nvidia-smi instead
 * (runner/agent/rank/devices.h).
 * Threads  one
 * Errors   DT_ERR_UNSUPPORTED if the library or the GPU does not exist
 */
#ifndef DT_ENGINE_DEVICE_NVML_H
#define DT_ENGINE_DEVICE_NVML_H

#include <stdint.h>

#include "base/error.h"

typedef struct dt_nvml dt_nvml;

/* A sample of a GPU's metrics. NaN: not reported by the GPU. */
typedef struct dt_nvml_reading {
    double busy_percent;  /* share of the last second or less in which a kernel ran */
    double used_bytes;    /* GPU memory used by all processes */
    double temperature_c; /* temperature of the GPU chip */
    double power_watts;
} dt_nvml_reading;

/* Open the GPU with the PCI address `pci`, "00000000:3B:00.0". */
dt_status dt_nvml_open(dt_nvml **out, const char *pci, dt_error *err);
void dt_nvml_read(dt_nvml_reading *out, dt_nvml *nvml);
void dt_nvml_close(dt_nvml *nvml); /* accepts NULL */

#endif
