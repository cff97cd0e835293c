#define _GNU_SOURCE
#include "base/resources.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"

#include "base/banned.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

int64_t dt_resources_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return 1;
}

/* The number after `key` at the beginning of a line ("MemAvailable: 123 kB"); false: not there. */
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

/* A control file that holds one number; false where it is absent or says "max". */
static bool cgroup_number(int64_t *out, const char *directory, const char *file, dt_strbuf *text)
{
    char path[4096 + 64];
    char *end;

    snprintf(path, sizeof(path), "%s/%s", directory, file);
    if (dt_file_read(text, path, 4096, NULL) != DT_OK)
        return false;
    *out = strtoll(text->data, &end, 10);
    return end != text->data;
}

/* What one group still allows; INT64_MAX where it sets no limit. */
static int64_t group_allows(const char *directory, dt_strbuf *text)
{
    int64_t limit, used, cache = 0;
    char path[4096 + 64];

    if (!cgroup_number(&limit, directory, "memory.max", text) ||
        !cgroup_number(&used, directory, "memory.current", text))
        return INT64_MAX;
    snprintf(path, sizeof(path), "%s/memory.stat", directory);
    if (dt_file_read(text, path, 65536, NULL) == DT_OK)
        (void)number_after(&cache, text->data, "inactive_file ");
    return limit - used + cache > 0 ? limit - used + cache : 0;
}

static int64_t groups_allow(dt_strbuf *text)
{
    int64_t least = INT64_MAX;
    char directory[4096];
    char *end, *slash;
    const char *own;

    if (dt_file_read(text, "/proc/self/cgroup", 65536, NULL) != DT_OK)
        return least;
    own = strstr(text->data, "0::/");
    if (own == NULL)
        return least;
    snprintf(directory, sizeof(directory), CGROUP_ROOT "%s", own + strlen("0::"));
    end = strchr(directory, '\n');
    if (end != NULL)
        *end = '\0';
    while (strlen(directory) >= strlen(CGROUP_ROOT)) {
        int64_t allows = group_allows(directory, text);
        least = allows < least ? allows : least;
        slash = strrchr(directory, '/');
        *slash = '\0';
    }
    return least;
}

dt_status dt_resources_memory(int64_t *bytes, dt_error *err)
{
    int64_t available_kib, allowed;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, "/proc/meminfo", 65536, err));
    if (!number_after(&available_kib, text.data, "MemAvailable:"))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "/proc/meminfo has no MemAvailable");
    allowed = groups_allow(&text);
    *bytes = available_kib * 1024 < allowed ? available_kib * 1024 : allowed;
out:
    dt_strbuf_release(&text);
    return st;
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
