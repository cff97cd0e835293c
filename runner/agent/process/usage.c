/* usage: what a node's processors, memory, disks and network are used for. */
#include "runner/agent/process/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/resources.h"
#include "runner/agent/process/load.h"

#define FILE_BYTES     ((size_t)1 << 20)
#define PATH_BYTES     512
#define PROCESSES_MOST 4096 /* of the run */
#define SECTOR_BYTES   512.0
#define KIB            1024.0

/* --- processors */

static void read_processors(dt_usage *out, const dt_usage_question *question)
{
    double used, limit;
    dt_process_load load;

    if (dt_process_load_read(&load, question->agent, question->root) && load.processor_count > 0 &&
        load.busy_seconds >= 0) {
        out->processors = load.processor_count;
        out->busy_seconds = load.busy_seconds;
    }
    if (dt_cgroups_processors(&used, &limit, question->root) && !(limit >= out->processors)) {
        out->processors = limit;
        out->busy_seconds = used;
    }
}

/* --- memory */

static void read_memory(dt_usage *out, const char *root, dt_strbuf *text)
{
    int64_t used, limit;
    const char *available;
    char path[PATH_BYTES];
    double kib;

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (dt_file_read(text, path, FILE_BYTES, NULL) == DT_OK &&
        sscanf(text->data, "MemTotal: %lf", &kib) == 1) {
        out->memory_bytes = kib * KIB;
        available = strstr(text->data, "\nMemAvailable:");
        if (available != NULL && sscanf(available, " MemAvailable: %lf", &kib) == 1)
            out->used_bytes = out->memory_bytes - kib * KIB;
    }
    if (dt_cgroups_memory(&used, &limit, root) && !((double)limit >= out->memory_bytes)) {
        out->memory_bytes = (double)limit;
        out->used_bytes = (double)used;
    }
}

/* --- processes of the run */

typedef struct listed {
    pid_t pid, parent;
    int64_t ticks; /* with those of its children that have ended */
} listed;

/* Reads the memory of a process that it shares with none: pages of files and of shared memory are left out. */
static double own_bytes(pid_t pid, dt_strbuf *text)
{
    long long resident, shared;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    if (dt_file_read(text, path, 4096, NULL) != DT_OK ||
        sscanf(text->data, "%*s %lld %lld", &resident, &shared) != 2)
        return 0;
    return (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE);
}

static int64_t ticks_with_children(pid_t pid)
{
    dt_proc_stat stat;

    return dt_proc_stat_read(&stat, pid) ? stat.cpu_ticks + stat.children_ticks : 0;
}

/* Adds the processes of the run's control group. Its processor time includes that of processes that have ended. */
static bool read_group(dt_usage *out, const char *cgroup, dt_strbuf *text)
{
    dt_strbuf procs;
    const char *at;
    char path[PATH_BYTES + 64];
    bool known = false;

    if (cgroup == NULL)
        return false;
    dt_strbuf_init(&procs);
    snprintf(path, sizeof(path), "%.*s/cpu.stat", PATH_BYTES, cgroup);
    if (dt_file_read(text, path, FILE_BYTES, NULL) == DT_OK &&
        (at = strstr(text->data, "usage_usec ")) != NULL) {
        out->run_seconds = strtod(at + strlen("usage_usec "), NULL) * 1e-6;
        snprintf(path, sizeof(path), "%.*s/cgroup.procs", PATH_BYTES, cgroup);
        known = dt_file_read(&procs, path, FILE_BYTES, NULL) == DT_OK;
    }
    out->run_bytes = known ? 0 : out->run_bytes;
    for (char *line = procs.data, *end; known; line = end) {
        long pid = strtol(line, &end, 10);

        if (end == line)
            break;
        out->run_bytes += own_bytes((pid_t)pid, text);
    }
    dt_strbuf_release(&procs);
    return known;
}

/* Appends the children of all threads of a process. Returns false if the kernel has no lists of children. */
static bool add_children(listed **all, size_t *count, int64_t *room, pid_t pid, dt_strbuf *text)
{
    struct dirent *entry;
    char path[64];
    bool known;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    known = dir == NULL || access("/proc/thread-self/children", F_OK) == 0;
    while (dir != NULL && known && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%ld/children", (int)pid,
                 strtol(entry->d_name, NULL, 10));
        if (dt_file_read(text, path, FILE_BYTES, NULL) != DT_OK)
            continue;
        for (char *at = text->data, *end; *count < PROCESSES_MOST; at = end) {
            long child = strtol(at, &end, 10);

            if (end == at)
                break;
            *all = dt_array_room(*all, *count + 1, room, sizeof(**all));
            (*all)[(*count)++] = (listed){(pid_t)child, pid, ticks_with_children((pid_t)child)};
        }
    }
    if (dir != NULL)
        closedir(dir);
    return known;
}

/* Lists all processes of this machine. */
static void add_all(listed **all, size_t *count, int64_t *room)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        dt_proc_stat stat;
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || !dt_proc_stat_read(&stat, pid))
            continue;
        *all = dt_array_room(*all, *count + 1, room, sizeof(**all));
        (*all)[(*count)++] =
            (listed){(pid_t)pid, (pid_t)stat.parent, stat.cpu_ticks + stat.children_ticks};
    }
    if (dir != NULL)
        closedir(dir);
}

/* Moves the children of a process behind the first `kept` ones. Returns the new number of these. */
static size_t move_children(listed *all, size_t count, size_t kept, pid_t parent)
{
    for (size_t i = kept; i < count; i++)
        if (all[i].parent == parent) {
            listed found = all[i];

            all[i] = all[kept];
            all[kept++] = found;
        }
    return kept;
}

/* Adds the descendants of the agent. */
static void read_descendants(dt_usage *out, pid_t agent, dt_strbuf *text)
{
    int64_t room = 0, ticks = 0;
    listed *all = NULL;
    size_t count = 0, kept;
    dt_proc_stat stat;

    if (!dt_proc_stat_read(&stat, agent))
        return;
    if (add_children(&all, &count, &room, agent, text)) {
        for (size_t i = 0; i < count; i++)
            (void)add_children(&all, &count, &room, all[i].pid, text);
    } else {
        add_all(&all, &count, &room);
        kept = move_children(all, count, 0, agent);
        for (size_t i = 0; i < kept; i++)
            kept = move_children(all, count, kept, all[i].pid);
        count = kept;
    }
    out->run_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        ticks += all[i].ticks;
        out->run_bytes += own_bytes(all[i].pid, text);
    }
    ticks += stat.children_ticks; /* of ranks that have ended */
    out->run_seconds = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    free(all);
}

/* --- disks */

/* Adds the disks of /proc/diskstats that are devices: not their partitions, and nothing that is stored on another one. */
static void read_disks(dt_usage *out, const dt_usage_question *question, dt_strbuf *text)
{
    char path[PATH_BYTES], name[64];
    double read, written;
    int64_t free_bytes;

    if (dt_resources_disk(&free_bytes, question->folder, NULL) == DT_OK)
        out->free_bytes = (double)free_bytes;
    snprintf(path, sizeof(path), "%s/proc/diskstats", question->root);
    if (dt_file_read(text, path, FILE_BYTES, NULL) != DT_OK)
        return;
    for (char *line = text->data; line != NULL && *line != '\0';) {
        if (sscanf(line, "%*d %*d %63s %*f %*f %lf %*f %*f %*f %lf", name, &read, &written) == 3) {
            snprintf(path, sizeof(path), "%s/sys/block/%s/device", question->root, name);
            if (access(path, F_OK) == 0) {
                out->read_bytes =
                    (isnan(out->read_bytes) ? 0 : out->read_bytes) + read * SECTOR_BYTES;
                out->written_bytes =
                    (isnan(out->written_bytes) ? 0 : out->written_bytes) + written * SECTOR_BYTES;
            }
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
}

static double thread_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void dt_usage_read(dt_usage *out, const dt_usage_question *question)
{
    double begun = thread_seconds();
    dt_strbuf text;

    *out = (dt_usage){.seconds = dt_clock_monotonic_seconds(),
                      .processors = NAN,
                      .busy_seconds = NAN,
                      .run_seconds = NAN,
                      .memory_bytes = NAN,
                      .used_bytes = NAN,
                      .run_bytes = NAN,
                      .read_bytes = NAN,
                      .written_bytes = NAN,
                      .free_bytes = NAN,
                      .received_bytes = NAN,
                      .sent_bytes = NAN};
    dt_strbuf_init(&text);
    read_processors(out, question);
    read_memory(out, question->root, &text);
    if (!read_group(out, question->cgroup, &text))
        read_descendants(out, question->agent, &text);
    read_disks(out, question, &text);
    if (!dt_network_bytes(&out->received_bytes, &out->sent_bytes, question->root))
        out->received_bytes = out->sent_bytes = NAN;
    dt_strbuf_release(&text);
    out->cost_seconds = thread_seconds() - begun;
}

/* --- values */

static void add(json_t *out, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(out, name, json_real(value));
}

/* A counter can fall: a process that nobody waited for takes its time along, a device is removed. */
static double rise(double before, double now)
{
    return now < before ? 0 : now - before;
}

json_t *dt_usage_values(const dt_usage *before, const dt_usage *now)
{
    double seconds = now->seconds - before->seconds, percent = 100 / (seconds * now->processors);
    json_t *out = json_object();

    if (!(seconds > 0))
        return out;
    if (before->processors == now->processors) {
        double busy = rise(before->busy_seconds, now->busy_seconds) * percent;

        add(out, "cpu_percent", busy > 100 ? 100 : busy); /* both clocks have their own ticks */
    }
    add(out, "run_cpu_percent", rise(before->run_seconds, now->run_seconds) * percent);
    add(out, "memory_used_bytes", now->used_bytes);
    add(out, "memory_total_bytes", now->memory_bytes);
    add(out, "run_memory_bytes", now->run_bytes);
    add(out, "disk_read_bytes_per_second", rise(before->read_bytes, now->read_bytes) / seconds);
    add(out, "disk_written_bytes_per_second",
        rise(before->written_bytes, now->written_bytes) / seconds);
    add(out, "disk_free_bytes", now->free_bytes);
    add(out, "received_bytes_per_second",
        rise(before->received_bytes, now->received_bytes) / seconds);
    add(out, "sent_bytes_per_second", rise(before->sent_bytes, now->sent_bytes) / seconds);
    return out;
}
