#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES 4096

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

dt_status dt_library_open(void **out, const char *name, const char *variable, dt_error *err)
{
    const char *named = getenv(variable), *why;
    char path[PATH_BYTES];

    if (named != NULL && named[0] == '\0')
        named = NULL;
    if (named == NULL)
        snprintf(path, sizeof(path), "%s", name);
    else
        snprintf(path, sizeof(path), "%s%s%s", named, is_folder(named) ? "/" : "",
                 is_folder(named) ? name : "");
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*out != NULL)
        return DT_OK;
    why = dlerror();
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "%s%s%s", named != NULL ? variable : "",
                   named != NULL ? ": " : "", why != NULL ? why : name);
}

/* Copies the symbol into a function pointer, which POSIX permits. */
dt_status dt_library_find(void *function, void *library, const char *symbol, dt_error *err)
{
    void *found = dlsym(library, symbol);

    memcpy(function, &found, sizeof(found));
    return found != NULL ? DT_OK : DT_FAIL(err, DT_ERR_UNSUPPORTED, "%s", dlerror());
}
