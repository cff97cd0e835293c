/* resources: control groups of processes; processors, memory and disk space that are available; network
 * interfaces. */
#include "base/resources.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"

/* --- control groups */

#define MAX_BYTES ((size_t)4 << 20) /* of a file in /proc or of a control group */

/* Returns true if the comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (;;) {
        size_t next = strcspn(list, ",");

        if (next == length && strncmp(list, word, length) == 0)
            return true;
        if (list[next] == '\0')
            return false;
        list += next + 1;
    }
}

/* --- the group of a process */

/* Returns the path of a line "ID:CONTROLLERS:PATH", which is changed in place; NULL if the line
 * is for another controller. */
static const char *path_in_line(char *line, const char *controller)
{
    char *controllers = strchr(line, ':'), *path;

    if (controllers == NULL)
        return NULL;
    *controllers++ = '\0';
    path = strchr(controllers, ':');
    if (path == NULL)
        return NULL;
    *path++ = '\0';
    if (controller == NULL)
        return strcmp(line, "0") == 0 && controllers[0] == '\0' ? path : NULL;
    return has_word(controllers, controller) ? path : NULL;
}

bool dt_cgroups_path(dt_strbuf *out, const char *root, pid_t pid, const char *controller)
{
    char name[64] = "self", path[DT_CGROUP_PATH_SIZE], *rest, *line;
    const char *found = NULL;
    dt_strbuf text;

    dt_strbuf_reset(out);
    dt_strbuf_init(&text);
    if (pid != 0)
        snprintf(name, sizeof(name), "%d", (int)pid);
    snprintf(path, sizeof(path), "%s/proc/%s/cgroup", root, name);
    if (dt_file_read(&text, path, MAX_BYTES, NULL) == DT_OK) {
        rest = text.data;
        while (found == NULL && (line = strsep(&rest, "\n")) != NULL)
            found = path_in_line(line, controller);
    }
    if (found != NULL)
        dt_strbuf_add_str(out, found);
    dt_strbuf_release(&text);
    return found != NULL;
}

/* --- mount points */

/* Decodes a path of mountinfo in place: blanks and some other characters are written as \ooo. */
static void unescape(char *path)
{
    char *to = path;

    for (const char *from = path; *from != '\0'; to++)
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    *to = '\0';
}

/* Parses a line "ID PARENT DEVICE PART POINT OPTIONS ... - TYPE SOURCE SUPER_OPTIONS" of
 * mountinfo into `out`. Returns true if it mounts the hierarchy of `controller`. */
static bool is_mount(dt_cgroup_mount *out, const char *line, const char *controller)
{
    const char *tail = strstr(line, " - ");
    char type[32], options[1024] = "";

    if (tail == NULL || sscanf(tail, " - %31s %*s %1023s", type, options) < 1 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", out->part, out->point) != 2)
        return false;
    unescape(out->part);
    unescape(out->point);
    out->version = controller == NULL ? 2 : 1;
    return controller == NULL ? strcmp(type, "cgroup2") == 0
                              : strcmp(type, "cgroup") == 0 && has_word(options, controller);
}

bool dt_cgroups_mount(dt_cgroup_mount *out, const char *root, const char *controller)
{
    char path[DT_CGROUP_PATH_SIZE], *rest, *line;
    bool found = false;
    dt_strbuf text;

    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    if (dt_file_read(&text, path, MAX_BYTES, NULL) == DT_OK) {
        rest = text.data;
        while (!found && (line = strsep(&rest, "\n")) != NULL)
            found = is_mount(out, line, controller);
    }
    dt_strbuf_release(&text);
    return found;
}

/* Returns the rest of `path` below the mounted part. Returns "" if the part does not contain it:
 * in a container, the mount point is then its own group. */
static const char *below(const char *path, const char *part)
{
    size_t length = strcmp(part, "/") == 0 ? 0 : strlen(part);

    if (strncmp(path, part, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return "";
    return strcmp(path + length, "/") == 0 ? "" : path + length;
}

static bool find_in(dt_cgroup_place *out, const char *root, const char *controller)
{
    dt_cgroup_mount mount;
    dt_strbuf path;
    int written = -1;

    dt_strbuf_init(&path);
    if (dt_cgroups_path(&path, root, 0, controller) && dt_cgroups_mount(&mount, root, controller)) {
        out->version = mount.version;
        out->top_bytes = strlen(root) + strlen(mount.point);
        written = snprintf(out->folder, sizeof(out->folder), "%s%s%s", root, mount.point,
                           below(path.data, mount.part));
        /* The path is in a tree of another namespace. */
        if (written > 0 && !dt_file_exists(out->folder))
            out->folder[out->top_bytes] = '\0';
    }
    dt_strbuf_release(&path);
    return written >= 0 && (size_t)written < sizeof(out->folder);
}

/* Finds the group of this process for a controller: in version 1 if the controller is mounted
 * there, else in version 2. False: neither can be seen. */
static bool cgroups_find(dt_cgroup_place *out, const char *root, const char *controller)
{
    return find_in(out, root, controller) || find_in(out, root, NULL);
}

/* Changes the folder to that of the parent group; false, and unchanged, at the mount point. */
static bool cgroups_up(dt_cgroup_place *place)
{
    char *slash = strrchr(place->folder, '/');

    if (strlen(place->folder) <= place->top_bytes || slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* --- counters of a group */

int64_t dt_cgroups_oom_kills(const char *root)
{
    char path[DT_CGROUP_PATH_SIZE + 64];
    const char *at;
    dt_cgroup_place place;
    int64_t count = -1;
    dt_strbuf text;

    if (!cgroups_find(&place, root, "memory"))
        return -1;
    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/%s", place.folder,
             place.version == 1 ? "memory.oom_control" : "memory.events");
    if (dt_file_read(&text, path, MAX_BYTES, NULL) == DT_OK &&
        (at = strstr(text.data, "oom_kill ")) != NULL) /* but not oom_kill_disable */
        count = strtoll(at + strlen("oom_kill "), NULL, 10);
    dt_strbuf_release(&text);
    return count;
}

/* --- processors, memory, disk */

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

/* Reads what one group uses, without reclaimable file cache, and its limit. Returns false if it has none. */
static bool group_memory(int64_t *used, int64_t *limit, const dt_cgroup_place *place,
                         dt_strbuf *text)
{
    char path[DT_CGROUP_PATH_SIZE + 64];
    int64_t above, cache = 0;
    bool limited;

    *limit = INT64_MAX;
    limited = cgroup_number(limit, place->folder, files[place->version].limit, text);
    if (!cgroup_number(used, place->folder, files[place->version].used, text))
        return false;
    snprintf(path, sizeof(path), "%s/memory.stat", place->folder);
    if (dt_file_read(text, path, 65536, NULL) == DT_OK) {
        (void)number_after(&cache, text->data, files[place->version].cache);
        /* Version 1 reports limits of parents that are invisible inside a container. */
        if (number_after(&above, text->data, "hierarchical_memory_limit ") && above > 0 &&
            above < *limit) {
            *limit = above;
            limited = true;
        }
    }
    *used -= cache;
    return limited;
}

/* Returns the bytes that the groups may still allocate; INT64_MAX if none has a limit. */
static int64_t groups_allow(const char *root, dt_strbuf *text)
{
    int64_t least = INT64_MAX, used, limit;
    dt_cgroup_place place;

    if (!cgroups_find(&place, root, "memory"))
        return least;
    do {
        if (!group_memory(&used, &limit, &place, text))
            continue;
        limit = limit > used ? limit - used : 0;
        least = limit < least ? limit : least;
    } while (cgroups_up(&place));
    return least;
}

bool dt_cgroups_memory(int64_t *used_bytes, int64_t *limit_bytes, const char *root)
{
    int64_t used, limit;
    dt_cgroup_place place;
    dt_strbuf text;

    *limit_bytes = INT64_MAX / 2; /* version 1 shows no limit as about INT64_MAX */
    if (!cgroups_find(&place, root, "memory"))
        return false;
    dt_strbuf_init(&text);
    do
        if (group_memory(&used, &limit, &place, &text) && limit < *limit_bytes) {
            *limit_bytes = limit;
            *used_bytes = used;
        }
    while (cgroups_up(&place));
    dt_strbuf_release(&text);
    return *limit_bytes != INT64_MAX / 2;
}

/* --- limits of processor time */

/* Reads the processor time of one group in seconds, and its limit in processors. Returns false if it has none. */
static bool group_processors(double *used, double *limit, const dt_cgroup_place *place,
                             dt_strbuf *text)
{
    int64_t quota, period = 0, time;
    char path[DT_CGROUP_PATH_SIZE + 64];

    if (place->version == 1) {
        if (!cgroup_number(&quota, place->folder, "cpu.cfs_quota_us", text) || quota <= 0 ||
            !cgroup_number(&period, place->folder, "cpu.cfs_period_us", text) || period <= 0 ||
            !cgroup_number(&time, place->folder, "cpuacct.usage", text))
            return false;
        *used = (double)time * 1e-9;
    } else {
        if (!cgroup_number(&quota, place->folder, "cpu.max", text) || /* "QUOTA PERIOD" */
            sscanf(text->data, "%*s %" SCNd64, &period) != 1 || period <= 0)
            return false;
        snprintf(path, sizeof(path), "%s/cpu.stat", place->folder);
        if (dt_file_read(text, path, 65536, NULL) != DT_OK ||
            !number_after(&time, text->data, "usage_usec "))
            return false;
        *used = (double)time * 1e-6;
    }
    *limit = (double)quota / (double)period;
    return true;
}

bool dt_cgroups_processors(double *used_seconds, double *processors, const char *root)
{
    double used, limit;
    dt_cgroup_place place;
    bool found = false;
    dt_strbuf text;

    if (!cgroups_find(&place, root, "cpu"))
        return false;
    dt_strbuf_init(&text);
    do
        if (group_processors(&used, &limit, &place, &text) && (!found || limit < *processors)) {
            *processors = limit;
            *used_seconds = used;
            found = true;
        }
    while (cgroups_up(&place));
    dt_strbuf_release(&text);
    return found;
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

/* --- network interfaces */

bool dt_interface_name(char out[DT_INTERFACE_SIZE], const char *address)
{
    struct ifaddrs *all;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
        int family = one->ifa_addr != NULL ? one->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t length =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        char text[NI_MAXHOST];

        if (family != AF_INET && family != AF_INET6)
            continue;
        found =
            getnameinfo(one->ifa_addr, length, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
            strcmp(text, address) == 0;
        if (found)
            snprintf(out, DT_INTERFACE_SIZE, "%s", one->ifa_name);
    }
    freeifaddrs(all);
    return found;
}
