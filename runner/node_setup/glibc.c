#include "runner/node_setup/glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name[] = "GLIBC_2.";

int dt_glibc_compare(const char *a, const char *b)
{
    long major[2], minor[2];
    const char *both[2] = {a, b};

    for (int i = 0; i < 2; i++) {
        char *end = NULL;

        major[i] = strtol(both[i], &end, 10);
        minor[i] = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    }
    if (major[0] != major[1])
        return major[0] < major[1] ? -1 : 1;
    return minor[0] < minor[1] ? -1 : minor[0] > minor[1];
}

static void look(char *version, const char *bytes, size_t length)
{
    const char *at = bytes, *end = bytes + length;
    int highest = -1;

    while ((at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1)) != NULL) {
        int minor = 0;
        int digits = 0;

        for (at += sizeof(name) - 1; at < end && *at >= '0' && *at <= '9' && digits < 4; at++) {
            minor = 10 * minor + (*at - '0');
            digits++;
        }
        if (digits > 0 && minor > highest)
            highest = minor;
    }
    if (highest >= 0)
        snprintf(version, DT_GLIBC_SIZE, "2.%d", highest);
}

dt_status dt_glibc_highest(char *version, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    void *bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    version[0] = '\0';
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size == 0)
        goto out;
    bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    look(version, bytes, (size_t)info.st_size);
    munmap(bytes, (size_t)info.st_size);
out:
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_glibc_here(char *version)
{
    static const char *const places[] = {"/lib/x86_64-linux-gnu/libc.so.6",
                                         "/lib/aarch64-linux-gnu/libc.so.6",
                                         "/lib64/libc.so.6",
                                         "/usr/lib64/libc.so.6",
                                         "/usr/lib/libc.so.6",
                                         "/lib/libc.so.6",
                                         "/run/current-system/sw/lib/libc.so.6"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], R_OK) == 0 && dt_glibc_highest(version, places[i], NULL) == DT_OK &&
            version[0] != '\0')
            return DT_OK;
    return DT_ERR_NOT_FOUND;
}
