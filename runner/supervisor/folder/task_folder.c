#include "runner/supervisor/folder/task_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

#define PARTS   "parts"
#define PARTIAL ".partial"

/* --- writing pieces */

static void add_path(dt_strbuf *out, const char *folder, int64_t part)
{
    dt_strbuf_add_fmt(out, "%s/" PARTS "/part-%08lld", folder, (long long)part);
}

static dt_status put(int fd, int64_t offset, const char *bytes, size_t length, const char *path,
                     dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    struct stat info;

    if (fstat(fd, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot look at '%s': %s", path, strerror(errno));
    if (info.st_size < offset)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' has %lld bytes, but byte %lld comes next", path,
                       (long long)info.st_size, (long long)offset);
    if (ftruncate(fd, offset) != 0 || lseek(fd, offset, SEEK_SET) < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (dt_file_write_all(fd, bytes, length, &problem) != DT_OK)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, problem.message);
    if (fsync(fd) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return DT_OK;
}

static dt_status name_whole(const char *partial, const char *whole, const char *folder,
                            dt_error *err)
{
    dt_strbuf parts;
    dt_status st;

    if (rename(partial, whole) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot rename '%s': %s", partial, strerror(errno));
    dt_strbuf_init(&parts);
    dt_strbuf_add_fmt(&parts, "%s/" PARTS, folder);
    st = dt_file_sync_dir(parts.data, err);
    dt_strbuf_release(&parts);
    return st;
}

dt_status dt_task_folder_write(const char *folder, int64_t part, int64_t offset, bool last,
                               const char *bytes, size_t length, dt_error *err)
{
    dt_strbuf parts, whole, partial;
    dt_status st = DT_OK;
    int fd = -1;

    dt_strbuf_init(&parts);
    dt_strbuf_init(&whole);
    dt_strbuf_init(&partial);
    add_path(&whole, folder, part);
    if (dt_file_exists(whole.data))
        goto out;
    dt_strbuf_add_fmt(&parts, "%s/" PARTS, folder);
    DT_TRY(dt_file_make_dirs(parts.data, 0700, err));
    dt_strbuf_add_fmt(&partial, "%s" PARTIAL, whole.data);
    fd = open(partial.data, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", partial.data, strerror(errno));
    st = put(fd, offset, bytes, length, partial.data, err);
    /* the file was removed: the part is missing, and will be made again */
    if (st == DT_ERR_CORRUPT) {
        dt_log_warn("cannot store part %lld: its beginning is missing", (long long)part);
        dt_error_clear(err);
        st = DT_OK;
        goto out;
    }
    DT_TRY(st);
    if (last)
        DT_TRY(name_whole(partial.data, whole.data, folder, err));
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&parts);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&partial);
    return st;
}

/* --- reading parts */

/* Returns the number in "part-00000012"; -1 for any other name. */
static int64_t part_of(const char *name, int64_t parts)
{
    static const char begin[] = "part-";
    const char *digits = name + sizeof(begin) - 1;
    long long part;
    char *end;

    if (strncmp(name, begin, sizeof(begin) - 1) != 0 || *digits < '0' || *digits > '9')
        return -1;
    part = strtoll(digits, &end, 10);
    return *end == '\0' && part < parts ? part : -1;
}

static dt_status mark_parts(bool *there, const char *folder, int64_t parts, dt_error *err)
{
    struct dirent *entry;
    dt_status st = DT_OK;
    dt_strbuf path;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" PARTS, folder);
    dir = opendir(path.data);
    if (dir == NULL && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path.data, strerror(errno));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int64_t part = part_of(entry->d_name, parts);

        if (part >= 0)
            there[part] = true;
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_task_folder_look(dt_plan_task *task, const char *folder, dt_arena *arena,
                              dt_error *err)
{
    int64_t parts = task->part_count, ranges = 0;
    bool *there = dt_calloc((size_t)parts, sizeof(*there));
    dt_status st = DT_OK;

    DT_TRY(mark_parts(there, folder, parts, err));
    for (int64_t i = 0; i < parts; i++)
        ranges += there[i] && (i == 0 || !there[i - 1]);
    task->done = dt_arena_alloc_array(arena, 2 * (size_t)ranges + 1, sizeof(*task->done));
    task->done_count = 0;
    for (int64_t i = 0; i < parts; i++) {
        int64_t *range = &task->done[2 * task->done_count];

        if (!there[i])
            continue;
        range[0] = i;
        while (i < parts && there[i])
            i++;
        range[1] = i;
        task->done_count++;
    }
out:
    free(there);
    return st;
}

int64_t dt_task_lines_done(const dt_plan_task *task)
{
    int64_t lines = 0;

    for (int64_t i = 0; i < task->done_count; i++)
        for (int64_t part = task->done[2 * i]; part < task->done[2 * i + 1]; part++)
            lines += task->parts[part].lines;
    return lines;
}

/* --- after the end */

void dt_task_folder_clear(const dt_plan *plan, const char *folder)
{
    static const char *const below[] = {PARTS, DT_TASK_INPUT, DT_TASK_TARGET, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (size_t i = 0; below[i] != NULL; i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, below[i]);
        (void)dt_file_remove_tree(path.data, &problem);
    }
    (void)dt_file_remove_tree(plan->directory, &problem);
    if (problem.code != DT_OK)
        dt_log_warn("%s", problem.message); /* only wastes space */
    dt_strbuf_release(&path);
}
