#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/device/device_cuda.h"

#include "base/banned.h"

/* Beside the program, then where the loader looks (its run path holds the bundle's lib). */
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
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "this dtrun-engine has no code for GPUs here: %s",
                       problem);
    entry = dlsym(library, DT_CUDA_ENTRY);
    if (entry == NULL) {
        dlclose(library);
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s' is of another build than this dtrun-engine: install both anew",
                       DT_CUDA_LIBRARY);
    }
    *out = entry;
    return DT_OK;
}

dt_status dt_device_open_cuda(dt_device *out, int index, bool tf32, dt_error *err)
{
    const dt_cuda_entry *entry;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_cuda_load(&entry, err));
    DT_TRY(entry->open(out, index, tf32, err));
out:
    return st;
}
