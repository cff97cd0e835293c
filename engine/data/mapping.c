#include "engine/data/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

dt_status dt_mapping_open(dt_mapping *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    void *bytes;
    int fd;

    memset(out, 0, sizeof(*out));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size == 0)
        goto out;
    bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        DT_THROW(err, DT_ERR_RECIPE, "cannot map '%s': %s", path, strerror(errno));
    out->bytes = bytes;
    out->length = (size_t)info.st_size;
out:
    if (fd >= 0)
        close(fd); /* the mapping stays valid */
    return st;
}

void dt_mapping_close(dt_mapping *mapping)
{
    if (mapping->bytes != NULL)
        munmap((void *)(uintptr_t)mapping->bytes, mapping->length);
    memset(mapping, 0, sizeof(*mapping));
}
