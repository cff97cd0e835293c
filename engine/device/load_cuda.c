#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/names.h"
#include "engine/device/device_cuda.h"

/* Load the library from the program's folder, or from the loader's path (its run path contains the
 * bundle's lib). */
static void *load(char *problem, size_t size)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(DT_CUDA_LIBRARY) - 1);
    void *library = NULL;
    const char *why;

    if (length > 0) {
        path[length] = '\0';
        snprintf(strrchr(path, '/') + 1, sizeof(DT_CUDA_LIBRARY), "%s", DT_CUDA_LIBRARY);
        if (access(path, F_OK) == 0)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        else
            library = dlopen(DT_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    why = library == NULL ? dlerror() : NULL;
    snprintf(problem, size, "%s", why != NULL ? why : "");
    return library;
}

/* Set by dt_cuda_load; NULL if the library was built without NCCL. */
static const struct dt_nccl_link *nccl;

dt_status dt_cuda_load(const dt_cuda_entry **out, dt_error *err)
{
    static const dt_cuda_entry *entry;
    char problem[512];
    void *library;

    *out = entry;
    if (entry != NULL)
        return DT_OK;
    library = load(problem, sizeof(problem));
    if (library == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "cannot load the GPU part of dtrun-engine: %s",
                       problem);
    entry = dlsym(library, DT_CUDA_ENTRY);
    if (entry == NULL || entry->device_bytes != sizeof(dt_device)) {
        entry = NULL;
        dlclose(library);
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s' is from another build than this dtrun-engine: reinstall both",
                       DT_CUDA_LIBRARY);
    }
    nccl = dlsym(library, DT_NCCL_ENTRY);
    *out = entry;
    return DT_OK;
}

/* Open "cuda:N". */
static dt_status device_open_cuda(dt_device *out, int index, bool tf32, dt_error *err)
{
    const dt_cuda_entry *entry;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_cuda_load(&entry, err));
    DT_TRY(entry->open(out, index, tf32, err));
    out->nccl = nccl;
out:
    return st;
}

dt_status dt_device_open(dt_device *out, const char *name, int threads, bool tf32, dt_error *err)
{
    int index = dt_device_gpu(name);

    memset(out, 0, sizeof(*out));
    if (strcmp(name, DT_DEVICE_CPU) == 0)
        return dt_device_open_cpu(out, threads, err);
    if (index < 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "unknown device '%s': expected 'cpu' or 'cuda:N'",
                       name);
    return device_open_cuda(out, index, tf32, err);
}
