#include "engine/device/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Declarations from nvml.h of the CUDA toolkit, whose interface is stable; 0 is success everywhere. */
#define LIBRARY            "libnvidia-ml.so.1"
#define TEMPERATURE_OF_GPU 0u

typedef struct utilization {
    unsigned gpu, memory; /* utilization in percent */
} utilization;

typedef struct memory {
    unsigned long long total, free, used;
} memory;

struct dt_nvml {
    void *library, *card;
    int (*shutdown)(void);
    int (*utilization_of)(void *card, utilization *);
    int (*memory_of)(void *card, memory *);
    int (*temperature_of)(void *card, unsigned sensor, unsigned *celsius);
    int (*power_of)(void *card, unsigned *milliwatts);
};

/* Look up a function. POSIX allows copying a symbol's address to a function pointer this way. */
static int find(void *function, void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

dt_status dt_nvml_open(dt_nvml **out, const char *pci, dt_error *err)
{
    int (*init)(void), (*card_at)(const char *, void **);
    dt_nvml *nvml = calloc(1, sizeof(*nvml));
    dt_status st = DT_OK;

    *out = NULL;
    if (nvml == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (nvml->library == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "%s", dlerror());
    if (!find(&init, nvml->library, "nvmlInit_v2") ||
        !find(&card_at, nvml->library, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !find(&nvml->utilization_of, nvml->library, "nvmlDeviceGetUtilizationRates") ||
        !find(&nvml->memory_of, nvml->library, "nvmlDeviceGetMemoryInfo") ||
        !find(&nvml->temperature_of, nvml->library, "nvmlDeviceGetTemperature") ||
        !find(&nvml->power_of, nvml->library, "nvmlDeviceGetPowerUsage"))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "%s", dlerror());
    if (init() != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, LIBRARY ": the driver does not answer");
    find(&nvml->shutdown, nvml->library, "nvmlShutdown");
    if (card_at(pci, &nvml->card) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, LIBRARY ": no GPU at '%s'", pci);
    *out = nvml;
    nvml = NULL;
out:
    dt_nvml_close(nvml);
    return st;
}

void dt_nvml_read(dt_nvml_reading *out, dt_nvml *nvml)
{
    unsigned celsius, milliwatts;
    utilization busy;
    memory bytes;

    *out = (dt_nvml_reading){NAN, NAN, NAN, NAN};
    if (nvml->utilization_of(nvml->card, &busy) == 0)
        out->busy_percent = busy.gpu;
    if (nvml->memory_of(nvml->card, &bytes) == 0)
        out->used_bytes = (double)bytes.used;
    if (nvml->temperature_of(nvml->card, TEMPERATURE_OF_GPU, &celsius) == 0)
        out->temperature_c = celsius;
    if (nvml->power_of(nvml->card, &milliwatts) == 0)
        out->power_watts = milliwatts / 1e3;
}

void dt_nvml_close(dt_nvml *nvml)
{
    if (nvml == NULL)
        return;
    if (nvml->shutdown != NULL)
        nvml->shutdown();
    if (nvml->library != NULL)
        dlclose(nvml->library);
    free(nvml);
}
