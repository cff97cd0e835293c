#include "runner/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/cli/report.h"

#define PASS_BYTES ((size_t)256 << 10)

static dt_status check_place(const char *path, bool replace, dt_error *err)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return DT_OK; /* other problems are reported when the file is created */
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not a regular file", path);
    if (!replace)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' exists; use --force to replace it", path);
    return DT_OK;
}

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

dt_status dt_output_open(dt_output *out, const char *path, bool replace, dt_arena *arena,
                         dt_error *err)
{
    char *temporary = NULL;
    dt_status st = DT_OK;

    *out = (dt_output){.path = path, .fd = -1, .replace = replace};
    dt_strbuf_init(&out->text);
    if (path == NULL)
        return DT_OK;
    DT_TRY(check_place(path, replace, err));
    temporary = dt_arena_printf(arena, "%s.XXXXXX", path);
    out->fd = mkostemp(temporary, O_CLOEXEC);
    if (out->fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    out->temporary = temporary;
    (void)fchmod(out->fd, usual_mode()); /* mkostemp makes it readable for its owner only */
out:
    if (st != DT_OK)
        (void)dt_output_close(out, st, NULL);
    return st;
}

static dt_status write_pending(dt_output *out, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (out->path == NULL)
        DT_TRY(dt_report_data(&out->text, err));
    else if (dt_file_write_all(out->fd, out->text.data, out->text.length, &problem) != DT_OK)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    out->passed += out->text.length;
    dt_strbuf_reset(&out->text);
out:
    return st;
}

dt_status dt_output_pass(dt_output *out, dt_error *err)
{
    return out->text.length >= PASS_BYTES ? write_pending(out, err) : DT_OK;
}

size_t dt_output_place(const dt_output *out)
{
    return out->passed + out->text.length;
}

static dt_status name_file(dt_output *out, dt_error *err)
{
    dt_status st = DT_OK;
    int fd = out->fd;

    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    out->fd = -1;
    if (close(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", out->path, strerror(errno));
    DT_TRY(dt_file_name(out->temporary, out->path, out->replace, err));
    out->temporary = NULL;
out:
    return st;
}

dt_status dt_output_close(dt_output *out, dt_status st, dt_error *err)
{
    if (st == DT_OK)
        st = write_pending(out, err);
    if (st == DT_OK && out->path != NULL)
        st = name_file(out, err);
    if (out->fd >= 0)
        close(out->fd);
    if (out->temporary != NULL)
        (void)unlink(out->temporary);
    dt_strbuf_release(&out->text);
    out->fd = -1;
    out->temporary = NULL;
    return st;
}

dt_status dt_output_check(const char *path, bool replace, dt_arena *arena, dt_error *err)
{
    dt_output output;
    dt_status st = dt_output_open(&output, path, replace, arena, err);

    if (st == DT_OK)
        (void)dt_output_close(&output, DT_ERR_USAGE, NULL); /* discards the file */
    return st;
}
