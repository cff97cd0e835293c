/* The management library of an emulated card's driver: the card is half busy, and warm. */
#include <string.h>

#define OK        0
#define NOT_FOUND 6

static int here;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **card);
int nvmlDeviceGetUtilizationRates(void *card, unsigned *gpu_and_memory);
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *total_free_used);
int nvmlDeviceGetTemperature(void *card, unsigned sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *card, unsigned *milliwatts);

int nvmlInit_v2(void)
{
    return OK;
}

int nvmlShutdown(void)
{
    return OK;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **card)
{
    *card = &here;
    return strcmp(pci, "00000000:00:00.0") == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(void *card, unsigned *gpu_and_memory)
{
    gpu_and_memory[0] = 50;
    gpu_and_memory[1] = 10;
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *total_free_used)
{
    total_free_used[0] = 1 << 30;
    total_free_used[1] = 1 << 29;
    total_free_used[2] = 1 << 29;
    return OK;
}

int nvmlDeviceGetTemperature(void *card, unsigned sensor, unsigned *celsius)
{
    *celsius = 61;
    return sensor == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetPowerUsage(void *card, unsigned *milliwatts)
{
    *milliwatts = 250500;
    return OK;
}
