#include "base/resources.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cgroups.h"
#include "base/file.h"

int64_t dt_resources_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return 1;
}

/* Returns the number after `key` at the beginning of a line ("MemAvailable: 123 kB"); false if
 * there is no such line. */
static bool number_after(int64_t *out, const char *text, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (strncmp(line, key, length) == 0) {
            *out = strtoll(line + length, NULL, 10);
            return true;
        }
    }
    return false;
}

/* --- memory limits of control groups */

static const struct {
    const char *limit, *used, *cache; /* cache: file pages that the kernel can reclaim */
} files[] = {
    [1] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
    [2] = {"memory.max", "memory.current", "inactive_file "},
};

/* Reads a control file that holds one number; false if it is missing or holds "max". */
static bool cgroup_number(int64_t *out, const char *folder, const char *file, dt_strbuf *text)
{
    char path[DT_CGROUP_PATH_SIZE + 64];
    char *end;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (dt_file_read(text, path, 4096, NULL) != DT_OK)
        return false;
    *out = strtoll(text->data, &end, 10);
    return end != text->data;
}

/* Returns the bytes that one group may still allocate; INT64_MAX if it has no limit. */
static int64_t group_allows(const dt_cgroup_place *place, dt_strbuf *text)
{
    int64_t limit = INT64_MAX, above, used, cache = 0, allows;
    char path[DT_CGROUP_PATH_SIZE + 64];
    bool limited = cgroup_number(&limit, place->folder, files[place->version].limit, text);

    if (!cgroup_number(&used, place->folder, files[place->version].used, text))
        return INT64_MAX;
    snprintf(path, sizeof(path), "%s/memory.stat", place->folder);
    if (dt_file_read(text, path, 65536, NULL) == DT_OK) {
        (void)number_after(&cache, text->data, files[place->version].cache);
        /* Version 1 reports limits of parents that are invisible inside a container. */
        if (number_after(&above, text->data, "hierarchical_memory_limit ") && above > 0 &&
            above < limit) {
            limit = above;
            limited = true;
        }
    }
    if (!limited)
        return INT64_MAX;
    allows = limit - used + cache;
    return allows > 0 ? allows : 0;
}

static int64_t groups_allow(const char *root, dt_strbuf *text)
{
    int64_t least = INT64_MAX;
    dt_cgroup_place place;

    if (!dt_cgroups_find(&place, root, "memory"))
        return least;
    do {
        int64_t allows = group_allows(&place, text);

        least = allows < least ? allows : least;
    } while (dt_cgroups_up(&place));
    return least;
}

dt_status dt_resources_memory_in(int64_t *bytes, const char *root, dt_error *err)
{
    char path[DT_CGROUP_PATH_SIZE];
    int64_t available_kib, allowed;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    DT_TRY(dt_file_read(&text, path, 65536, err));
    if (!number_after(&available_kib, text.data, "MemAvailable:"))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "%s has no MemAvailable", path);
    allowed = groups_allow(root, &text);
    *bytes = available_kib * 1024 < allowed ? available_kib * 1024 : allowed;
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_resources_memory(int64_t *bytes, dt_error *err)
{
    return dt_resources_memory_in(bytes, "", err);
}

dt_status dt_resources_disk(int64_t *bytes, const char *path, dt_error *err)
{
    struct statvfs fs;

    if (statvfs(path, &fs) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot tell the free space at '%s': %s", path,
                       strerror(errno));
    *bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    return DT_OK;
}
