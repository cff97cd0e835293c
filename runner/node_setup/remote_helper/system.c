/* system: finds the cache, checks free space on this machine, and reads the caller's request. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runner/node_setup/remote_helper/remote_helper.h"

dt_status dt_remote_helper_cache(dt_strbuf *out, dt_error *err)
{
    char self[PATH_MAX], *slash = NULL;
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    for (int up = 0; up < 2; up++) {
        slash = strrchr(self, '/');
        DT_ASSERT(slash != NULL);
        *slash = '\0';
    }
    dt_strbuf_reset(out);
    dt_strbuf_add_str(out, self);
    return DT_OK;
}

dt_status dt_remote_helper_check_space(const char *path, int64_t bytes, dt_error *err)
{
    struct statvfs info;

    if (statvfs(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot check '%s': %s", path, strerror(errno));
    if ((int64_t)info.f_bavail < bytes / (int64_t)info.f_frsize + 1)
        return DT_FAIL(
            err, DT_ERR_IO,
            "not enough free space in '%s': %lld MB are needed, %lld MB are free: free some, or "
            "make it a link to a larger disk",
            path, (long long)(bytes >> 20) + 1, (long long)(info.f_bavail * info.f_frsize >> 20));
    return DT_OK;
}

/* Returns false for a pipe without a reader, and for a socket whose other end is closed. */
bool dt_remote_helper_is_heard(void)
{
    struct pollfd out = {STDOUT_FILENO, 0, 0};

    return poll(&out, 1, 0) <= 0 || (out.revents & (POLLERR | POLLHUP)) == 0;
}

dt_status dt_remote_helper_request(json_t **out, const char *operation, size_t most, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf line;
    char c;

    dt_strbuf_init(&line);
    for (;;) {
        ssize_t got = read(STDIN_FILENO, &c, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || line.length > most)
            DT_THROW(err, DT_ERR_PEER, "%s: the request is incomplete", operation);
        if (c == '\n')
            break;
        dt_strbuf_add_char(&line, c);
    }
    DT_TRY(dt_json_parse(out, line.data, line.length, operation, err));
out:
    dt_strbuf_release(&line);
    return st;
}
