#define _GNU_SOURCE
#include "engine/program/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

#define CHUNK_BYTES 65536
#define MOST_BYTES  ((int64_t)4 << 20) /* that are read at once: output and signals wait meanwhile */

static bool is_regular(int fd, struct stat *info)
{
    return fstat(fd, info) == 0 && S_ISREG(info->st_mode);
}

/* Opens the file if it exists. A pipe or a device is left alone. */
static void try_open(dt_metrics_file *file, struct stat *info)
{
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd >= 0 && !is_regular(file->fd, info)) {
        close(file->fd);
        file->fd = -1;
    }
}

void dt_metrics_file_open(dt_metrics_file *out, const char *path)
{
    struct stat info;

    *out = (dt_metrics_file){.path = path, .fd = -1};
    try_open(out, &info);
    if (out->fd >= 0)
        out->offset = info.st_size;
}

void dt_metrics_file_close(dt_metrics_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    *file = (dt_metrics_file){.fd = -1};
}

/* Opens the file that the path names now, if it is not the open one. */
static void follow_path(dt_metrics_file *file)
{
    struct stat named, opened;

    if (stat(file->path, &named) != 0)
        return;
    if (file->fd >= 0 && is_regular(file->fd, &opened) && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev) {
        if (opened.st_size < file->offset)
            file->offset = 0;
        return;
    }
    if (file->fd >= 0)
        close(file->fd);
    file->offset = 0;
    try_open(file, &opened);
}

dt_status dt_metrics_file_read(dt_metrics_file *file, dt_output_metrics *metrics, dt_error *err)
{
    int64_t end = file->offset + MOST_BYTES;
    char chunk[CHUNK_BYTES];
    dt_status st = DT_OK;

    follow_path(file);
    while (file->fd >= 0 && file->offset < end) {
        ssize_t length = pread(file->fd, chunk, sizeof(chunk), (off_t)file->offset);

        if (length <= 0)
            break;
        file->offset += length;
        DT_TRY(dt_output_metrics_read(metrics, chunk, (size_t)length, err));
    }
out:
    return st;
}
